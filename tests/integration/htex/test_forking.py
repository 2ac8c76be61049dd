"""Tasks that fork on a real engine: each has its own result, however its children end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sizer_tasks as tasks
from sizer_runs import htex, running, sized, wait_until

from parsl_sizer import SizedExecutor, sizing_of
from parsl_sizer.model import Ending

LIMIT_S = 100
TASKS = 20
STATUS = {
    "return": 0,
    "raise": 1,
    "exit": 0,
    "exit 3": 3,
    "exit message": 1,
    "_exit": 4,
    "double fork": 5,
    "thread": 0,
    "multiprocessing": 6,
}
"""What the parent's `waitpid` gives for each way to end a child, as with plain Python."""
WAYS = ["no fork", *STATUS]


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedExecutor]:
    made = sized(htex())
    with running(made, tmp_path_factory.mktemp("forking")):
        yield made


def expected(number: int, way: str) -> Any:
    return number if way == "no fork" else ("parent", number, STATUS[way])


@pytest.mark.parametrize("keep_caches", [False, True])
@pytest.mark.parametrize("isolation", ["runner", "fork", "inline"])
def test_all_results_are_those_of_plain_python(
    executor: SizedExecutor, isolation: str, keep_caches: bool
) -> None:
    spec = {"isolation": isolation, "keep_caches": keep_caches}
    ways = [WAYS[number % len(WAYS)] for number in range(TASKS)]
    futures = [
        tasks.fork(number, way, parsl_resource_specification=spec)
        for number, way in enumerate(ways)
    ]
    results = [future.result(LIMIT_S) for future in futures]
    assert results == [expected(number, way) for number, way in enumerate(ways)]
    for future in futures:
        assert [attempt.ending for attempt in sizing_of(future).attempts] == [Ending.DONE]


@pytest.mark.parametrize("isolation", ["runner", "inline"])
def test_a_child_that_returns_after_its_task_answers_nothing(
    executor: SizedExecutor, tmp_path: Path, isolation: str
) -> None:
    spec = {"isolation": isolation, "keep_caches": True}
    go, note = tmp_path / "go", tmp_path / "note"
    for number in range(4):
        future = tasks.leave_child(
            number, str(go), f"{note}{number}", parsl_resource_specification=spec
        )
        assert future.result(LIMIT_S) == ("parent", number)
    futures = []
    for number in range(TASKS):
        futures.append(tasks.fork(number, "no fork", parsl_resource_specification=spec))
        if number == TASKS // 2:
            go.touch()
        time.sleep(0.01)
    assert [future.result(LIMIT_S) for future in futures] == list(range(TASKS))


def test_a_child_that_is_left_running_is_ended(executor: SizedExecutor, tmp_path: Path) -> None:
    note = tmp_path / "note"
    future = tasks.leave_child(1, str(tmp_path / "never"), str(note))
    assert future.result(LIMIT_S) == ("parent", 1)
    if note.exists():  # it is killed at once, perhaps before its first step
        child = Path("/proc", note.read_text() or "none")
        wait_until(lambda: not child.exists(), "the end of the child")


def test_a_result_is_that_of_its_task_when_many_fork(executor: SizedExecutor) -> None:
    futures = [tasks.fork(number, ("no fork", "return")[number % 2]) for number in range(2 * TASKS)]
    for number, future in enumerate(futures):
        assert future.result(LIMIT_S) == expected(number, ("no fork", "return")[number % 2])
