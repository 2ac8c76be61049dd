"""Tasks that need more than they are given, and what else takes a Work Queue of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl import File
from sizer_runs import wait_until
from sizer_workers import LARGE, SMALL, Size, workqueue

from parsl_sizer import Kind, ResourcesExhausted, SizedExecutor, sizing_of
from parsl_sizer.model import Ending
from parsl_sizer.monitor.claims import Ledger

LIMIT_S = 100


def sized(inner: object) -> SizedExecutor:
    return SizedExecutor(inner, report=False)


def strict(inner: object) -> SizedExecutor:
    return SizedExecutor(inner, grow=False, report=False)


def test_a_task_that_needs_more_memory_is_stopped_and_has_more(tmp_path: Path) -> None:
    with workqueue(tmp_path, LARGE, SMALL, wrap=strict):
        future = tasks.hold(600, 8, parsl_resource_specification={"memory": 200})
        assert future.result(LIMIT_S) == 600
        first, *others = sizing_of(future).attempts
        assert first.ending is Ending.EXHAUSTED
        assert first.allocation[Kind.MEMORY] == 200e6
        assert first.peak[Kind.MEMORY] > 200e6
        assert others[-1].ending is Ending.DONE
        assert others[-1].allocation[Kind.MEMORY] > 600e6
        assert others[-1].allocation[Kind.CORES] == first.allocation[Kind.CORES]


def test_a_task_that_needs_more_memory_grows_where_its_worker_has_room(tmp_path: Path) -> None:
    with workqueue(tmp_path, Size(4, 2000, 4000), wrap=sized):
        future = tasks.hold(600, 3, parsl_resource_specification={"memory": 200})
        fixed = tasks.hold(
            60, 3, parsl_resource_specification={"memory": 20, "fixed": True, "category": "fixed"}
        )
        assert future.result(LIMIT_S) == 600
        [only] = sizing_of(future).attempts
        assert only.ending is Ending.DONE
        assert 600e6 < only.allocation[Kind.MEMORY] < 2000e6
        assert "given 200 MB at first, it grew" in only.why
        with pytest.raises(ResourcesExhausted):
            fixed.result(LIMIT_S)


def test_as_many_grow_as_there_is_room_for_and_the_others_wait(tmp_path: Path) -> None:
    """Three of 300 MB fit into 1000 MB; what they were given would let ten begin."""
    until = tmp_path / "until"
    hints = {"memory": 100, "disk": 10, "category": "growing"}
    with workqueue(tmp_path, Size(10, 1000, 4000), wrap=sized) as cluster:
        folder = cluster.crew.workers[0].folder

        def ledgers() -> list[Ledger]:
            return [Ledger(path) for path in folder.rglob("parsl_sizer-ledger-*")]

        def held() -> list[float]:
            return [claim["memory"] for one in ledgers() for claim in one.table().held.values()]

        first = [
            tasks.hold_until(str(until), 300, parsl_resource_specification=hints) for _ in range(3)
        ]
        wait_until(lambda: sum(amount > 300e6 for amount in held()) == 3, "three have grown")
        others = [
            tasks.hold_until(str(until), 300, parsl_resource_specification=hints) for _ in range(2)
        ]
        wait_until(lambda: sum(len(one.living()) for one in ledgers()) == 5, "two wait")
        assert len(held()) == 3
        assert sum(held()) <= 1000e6
        until.touch()
        assert [future.result(LIMIT_S) for future in first + others] == [300] * 5
        for future in first:
            assert [attempt.ending for attempt in sizing_of(future).attempts] == [Ending.DONE]


def test_without_growth_a_task_is_stopped_although_there_is_room(tmp_path: Path) -> None:
    with workqueue(tmp_path, Size(4, 2000, 4000), wrap=strict):
        future = tasks.hold(600, 3, parsl_resource_specification={"memory": 200})
        assert future.result(LIMIT_S) == 600
        assert sizing_of(future).attempts[0].ending is Ending.EXHAUSTED


def test_a_task_that_is_too_large_for_every_worker_tells_all_its_attempts(tmp_path: Path) -> None:
    with workqueue(tmp_path, Size(1, 400, 1000), wrap=sized):
        future = tasks.hold(900, 60)
        with pytest.raises(ResourcesExhausted) as caught:
            future.result(LIMIT_S)
        outcomes = caught.value.outcomes
        assert outcomes[-1].attempt.allocation[Kind.MEMORY] == 400e6
        assert all(outcome.exhausted == {Kind.MEMORY} for outcome in outcomes)


def test_files_go_to_the_worker_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # Work Queue carries files whose names are relative
    Path("one.txt").write_text("x" * 1000)
    Path("two.txt").write_text("x" * 234)
    with workqueue(tmp_path, SMALL, wrap=sized):
        size = tasks.size_of_inputs(inputs=[File("one.txt"), File("two.txt")])
        said = tasks.echo("hello", stdout="said.txt")
        assert size.result(LIMIT_S) == 1234
        assert said.result(LIMIT_S) == 0
    assert Path("said.txt").read_text().split()[0] == "hello"
