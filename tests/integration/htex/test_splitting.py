"""A task that no node is large enough for is done in parts, on a real engine."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
import sizer_tasks as tasks
from parsl.executors import ThreadPoolExecutor
from sizer_runs import htex, running, sized, wait_until

from parsl_sizer import Exhaustion, Kind, Part, ResourcesExhausted, SizedExecutor, Split, sizing_of
from parsl_sizer.archive.base import Query
from parsl_sizer.archive.open import open_archive
from parsl_sizer.executor.driver import ShutDown
from parsl_sizer.model import Ending

LIMIT_S = 100
NODE = "cores=2,memory=500MB"
"""Room for the numbers of four, not for those of five."""
NUMBERS = list(range(16))


class Halving:
    """Splits where no node has more, and keeps what it was asked."""

    def __init__(self, combine: Any = sum) -> None:
        self.combine = combine
        self.asked: list[Exhaustion] = []

    def __call__(self, exhaustion: Exhaustion) -> Split | None:
        self.asked.append(exhaustion)
        numbers, *others = exhaustion.args
        if exhaustion.larger is not None or len(numbers) < 2:
            return None
        middle = len(numbers) // 2
        parts = [
            Part(half, *others, **exhaustion.kwargs)
            for half in (numbers[:middle], numbers[middle:])
        ]
        return Split(parts, self.combine)


def splitting(
    hook: Any, strategy: str = "whole-machine", *, inner: Any = None, **options: Any
) -> SizedExecutor:
    return sized(inner, node=NODE, on_exhausted=hook, strategy=strategy, **options)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "on_exhausted" in record.message]


def test_it_is_split_again_and_again_until_the_parts_fit(tmp_path: Path) -> None:
    hook = Halving()
    with running(splitting(hook, "auto"), tmp_path):
        future = tasks.total(NUMBERS, s=0.5)
        small = tasks.total([1, 2])
        assert future.result(LIMIT_S) == sum(NUMBERS)
        assert small.result(LIMIT_S) == 3
        attempts = sizing_of(future).attempts
        assert {attempt.ending for attempt in attempts} == {Ending.EXHAUSTED}
        assert attempts[-1].allocation == {Kind.MEMORY: 500e6}
        assert [attempt.ending for attempt in sizing_of(small).attempts][-1] is Ending.DONE
    split = [tuple(asked.args[0]) for asked in hook.asked if asked.larger is None]
    assert sorted(split) == [tuple(NUMBERS[:8]), tuple(NUMBERS), tuple(NUMBERS[8:])]
    for asked in hook.asked:
        assert asked.category == "total"
        assert asked.function.__name__ == "total"
        assert asked.outcomes[-1].exhausted == {Kind.MEMORY}


def test_a_function_may_split_before_a_node_is_full(tmp_path: Path) -> None:
    """Where parts are cheaper than a larger allocation, say."""

    def at_once(exhaustion: Exhaustion) -> Split:
        [numbers] = exhaustion.args
        return Split([Part(numbers[:1], **kwargs), Part(numbers[1:], **kwargs)], sum)

    kwargs = {"parsl_resource_specification": {"memory": 150}}
    with running(splitting(at_once, "auto", grow=False), tmp_path):
        future = tasks.total([3, 4], **kwargs)
        assert future.result(LIMIT_S) == 7
        [attempt] = sizing_of(future).attempts
        assert attempt.allocation == {Kind.MEMORY: 150e6}


def test_a_function_that_raises_leaves_the_task_to_us(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(exhaustion: Exhaustion) -> Split:
        raise ValueError("no idea")

    with running(splitting(broken, "auto", grow=False), tmp_path):
        grows = tasks.total([1, 2, 3], parsl_resource_specification={"memory": 150})
        fails = tasks.total(NUMBERS, s=60)
        assert grows.result(LIMIT_S) == 6
        assert [attempt.ending for attempt in sizing_of(grows).attempts][-1] is Ending.DONE
        assert len(sizing_of(grows).attempts) > 1
        with pytest.raises(ResourcesExhausted):
            fails.result(LIMIT_S)
    [warning] = warnings(caplog)
    assert "no idea" in warning


def test_an_answer_that_makes_no_sense_leaves_the_task_to_us(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(splitting(lambda exhaustion: Split([Part(1)], sum)), tmp_path):
        with pytest.raises(ResourcesExhausted):
            tasks.total(NUMBERS, s=60).result(LIMIT_S)
        assert tasks.total([1]).result(LIMIT_S) == 1
    assert len(warnings(caplog)) == 1


def test_parts_with_arguments_that_the_function_does_not_take_raise(tmp_path: Path) -> None:
    wrong = Split([Part(nothing=1), Part(nothing=2)], sum)
    with running(splitting(lambda exhaustion: wrong), tmp_path):
        future = tasks.total(NUMBERS, s=60)
        with pytest.raises(TypeError, match="nothing"):
            future.result(LIMIT_S)


def test_an_exception_in_a_part_is_the_users(tmp_path: Path) -> None:
    def one_by_one(exhaustion: Exhaustion) -> Split:
        return Split([Part([number], **exhaustion.kwargs) for number in exhaustion.args[0]], sum)

    with running(splitting(one_by_one, inner=htex(2)), tmp_path):  # other parts still run
        future = tasks.total(NUMBERS, s=0.5, fails_at=5)
        with pytest.raises(ValueError, match="5 is not to be summed"):
            future.result(LIMIT_S)


def test_a_part_that_fits_nowhere_is_told_of(tmp_path: Path) -> None:
    with running(splitting(Halving()), tmp_path):
        future = tasks.total([1, 2], mb=700, s=60)
        with pytest.raises(ResourcesExhausted):
            future.result(LIMIT_S)


def divide(results: list[int]) -> float:
    return sum(results) / 0


def greedy(results: list[int]) -> int:
    data = tasks.held(800)
    tasks.linger()
    return len(data)


def test_what_combines_may_raise(tmp_path: Path) -> None:
    with running(splitting(Halving(divide)), tmp_path):
        future = tasks.total(NUMBERS[:8], s=0.5)
        with pytest.raises(ZeroDivisionError):
            future.result(LIMIT_S)


def test_what_combines_may_run_out(tmp_path: Path) -> None:
    def once(exhaustion: Exhaustion) -> Split | None:
        asked.append(exhaustion.category)
        return Halving(greedy)(exhaustion) if exhaustion.category == "total" else None

    asked: list[str] = []
    with running(splitting(once), tmp_path):
        future = tasks.total(NUMBERS[:8], s=0.5)
        with pytest.raises(ResourcesExhausted, match="greedy"):
            future.result(LIMIT_S)
    assert "greedy" in asked


def test_when_it_is_shut_down_neither_parts_nor_what_waits_for_them_stay_pending(
    tmp_path: Path,
) -> None:
    made = splitting(Halving(), inner=htex(2))
    with running(made, tmp_path) as dfk:
        future = tasks.total_of_files([1, 2, 3, 4], str(tmp_path), str(tmp_path / "never"))
        wait_until(lambda: list(tmp_path.glob("begun*")), "a part that runs")
        dfk.cleanup()
        with pytest.raises(ShutDown):
            future.result(LIMIT_S)


def test_when_it_is_shut_down_nobody_waits_for_a_function_that_thinks(tmp_path: Path) -> None:
    entered, goes_on = threading.Event(), threading.Event()

    def think(exhaustion: Exhaustion) -> Split | None:
        entered.set()
        goes_on.wait(LIMIT_S)
        return Halving()(exhaustion)

    with running(splitting(think, inner=htex(2)), tmp_path) as dfk:
        try:
            future = tasks.total(NUMBERS, s=60)
            assert entered.wait(LIMIT_S)
            assert tasks.total([1]).result(LIMIT_S) == 1, "others are not held up"
            dfk.cleanup()
            with pytest.raises(ShutDown):
                future.result(LIMIT_S)
        finally:
            goes_on.set()


def test_the_table_and_the_archive_know_parts_as_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "archive.db"
    made = splitting(Halving(), report=True, archive=file)
    with running(made, tmp_path):
        assert tasks.total(NUMBERS[:8], s=0.5).result(LIMIT_S) == sum(NUMBERS[:8])
    table = capsys.readouterr().err
    [row] = [line.split() for line in table.splitlines() if line.startswith("total ")]
    tasks_made, failed, retries = map(int, row[1:4])
    assert (tasks_made, failed) == (3, 0)
    assert retries >= 1
    assert "1 task needed more than 500 MB of memory" in table
    archive = open_archive(file, read_only=True)
    last = {
        entry.outcome.attempt.task.task_id: entry.outcome.ending
        for entry in reversed(list(archive.entries(Query(category="total"))))
    }
    archive.close()
    assert sorted(last.values()) == [Ending.DONE, Ending.DONE, Ending.EXHAUSTED]


def test_the_word_split_leaves_tasks_of_no_framework_as_they_were(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), running(splitting("split"), tmp_path):
        assert tasks.total([1, 2, 3]).result(LIMIT_S) == 6
        with pytest.raises(ResourcesExhausted):
            tasks.total(NUMBERS, s=60).result(LIMIT_S)
    [told] = warnings(caplog)
    assert told.startswith("Tasks of 'total' run out, and nobody knows how to split them")


def test_where_nothing_is_measured_nothing_is_split(tmp_path: Path) -> None:
    made = SizedExecutor(ThreadPoolExecutor(label="threads"), on_exhausted=Halving(), report=False)
    with running(made, tmp_path):
        assert tasks.total([1, 2]).result(LIMIT_S) == 3
