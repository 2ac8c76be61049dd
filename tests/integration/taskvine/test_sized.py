"""SizedExecutor around TaskVine with workers of two sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl import File
from sizer_workers import LARGE, SMALL, Size, taskvine

from parsl_sizer import Kind, ResourcesExhausted, SizedExecutor, sizing_of
from parsl_sizer.engines import CannotWrap
from parsl_sizer.model import Ending

LIMIT_S = 100


def sized(inner: object) -> SizedExecutor:
    return SizedExecutor(inner, report=False)


def strict(inner: object) -> SizedExecutor:
    return SizedExecutor(inner, grow=False, report=False)


def test_a_task_that_needs_more_memory_grows_where_its_worker_has_room(tmp_path: Path) -> None:
    with taskvine(tmp_path, Size(4, 2000, 4000), wrap=sized):
        future = tasks.hold(600, 3, parsl_resource_specification={"memory": 200})
        assert future.result(LIMIT_S) == 600
        [only] = sizing_of(future).attempts
        assert only.ending is Ending.DONE
        assert 600e6 < only.allocation[Kind.MEMORY] < 2000e6


def test_tasks_are_sized_measured_and_given_more(tmp_path: Path) -> None:
    with taskvine(tmp_path, LARGE, SMALL, wrap=strict):
        grows = tasks.hold(600, 8, parsl_resource_specification={"memory": 200})
        small = [
            tasks.hold(50 + n, parsl_resource_specification={"category": "s"}) for n in range(4)
        ]
        assert [future.result(LIMIT_S) for future in small] == [50, 51, 52, 53]
        assert grows.result(LIMIT_S) == 600
        for future in small:
            last = sizing_of(future).attempts[-1]
            assert last.peak[Kind.MEMORY] == pytest.approx(52e6, abs=15e6)
        first, *others = sizing_of(grows).attempts
        assert first.ending is Ending.EXHAUSTED
        assert first.allocation[Kind.MEMORY] == 200e6
        assert others[-1].ending is Ending.DONE
        with pytest.raises(ValueError, match="as it should"):
            tasks.fail().result(LIMIT_S)


def test_a_task_that_is_too_large_for_every_worker_tells_all_its_attempts(tmp_path: Path) -> None:
    with taskvine(tmp_path, Size(1, 400, 1000), wrap=sized):
        with pytest.raises(ResourcesExhausted) as caught:
            tasks.hold(900, 60).result(LIMIT_S)
        assert caught.value.outcomes[-1].attempt.allocation[Kind.MEMORY] == 400e6


def test_tasks_wait_for_the_first_worker_and_files_travel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # TaskVine carries files whose names are relative
    Path("one.txt").write_text("x" * 1000)
    with taskvine(tmp_path, wrap=sized) as cluster:
        size = tasks.size_of_inputs(inputs=[File("one.txt")])
        said = tasks.echo("hello", stdout="said.txt")
        cluster.crew.add(SMALL)
        assert size.result(LIMIT_S) == 1000
        assert said.result(LIMIT_S) == 0
    assert Path("said.txt").read_text().split()[0] == "hello"


def test_functions_in_a_shared_process_are_refused(tmp_path: Path) -> None:
    with taskvine(tmp_path, SMALL, wrap=sized):
        future = tasks.hold(10, parsl_resource_specification={"exec_mode": "serverless"})
        with pytest.raises(CannotWrap, match="exec_mode='serverless'"):
            future.result(LIMIT_S)
