"""Where a task is in Parsl's graph, on a real Parsl."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parsl import File, python_app
from parsl.executors import ThreadPoolExecutor
from sizer_runs import running

from parsl_sizer.executor.graph import Place, TaskGraph, calling_record


class Watching(ThreadPoolExecutor):
    """Notes the place of every task that it is given."""

    def __init__(self) -> None:
        super().__init__(label="watching", max_threads=1)
        self.graph = TaskGraph()
        self.places: dict[int, Place] = {}

    def submit(self, func: Any, resource_specification: Any, *args: Any, **kwargs: Any) -> Any:
        record = calling_record()
        assert record is not None
        self.places[record["id"]] = self.graph.place(record)
        return super().submit(func, resource_specification, *args, **kwargs)


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Watching]:
    executor = Watching()
    with running(executor, tmp_path):
        yield executor


@python_app
def after(*others: object, gate: object = None, outputs: object = ()) -> int:
    if gate is not None:
        gate.wait(60)  # type: ignore[attr-defined]
    for file in outputs:  # type: ignore[attr-defined]
        Path(file.filepath).touch()
    return len(others)


def test_ways_to_and_from_a_task_are_counted(watching: Watching) -> None:
    """All is called before anything starts: 0 -> 1 -> 2 -> 3, 0 -> 3, and 4 alone."""
    gate = threading.Event()
    stopper = after(gate=gate)
    first = after(stopper)
    second = after(first)
    third = after(second)
    last = after(third, first)
    alone = after()
    gate.set()
    assert [future.result(60) for future in (last, alone)] == [2, 0]
    places = [watching.places[future.tid] for future in (first, second, third, last, alone)]
    assert places == [Place(1, 3), Place(2, 2), Place(3, 1), Place(4, 0), Place(0, 0)]


def test_what_is_called_later_is_not_known_of(watching: Watching) -> None:
    first = after()
    first.result(60)
    second = after(first)
    second.result(60)
    assert watching.places[first.tid] == Place(0, 0)
    assert watching.places[second.tid] == Place(1, 0)


def test_files_connect_tasks_too(watching: Watching, tmp_path: Path) -> None:
    made = after(outputs=[File(str(tmp_path / "made"))])
    using = after(made.outputs[0])
    assert using.result(60) == 1
    assert watching.places[using.tid].depth == 1


def test_a_chain_of_thousands_is_no_trap(watching: Watching) -> None:
    gate = threading.Event()
    future = after(gate=gate)
    for _ in range(3000):
        future = after(future)
    gate.set()
    future.result(60)
    assert watching.places[future.tid] == Place(3000, 0)
    assert watching.places[1] == Place(1, 2999)


def test_who_is_not_called_by_parsl_has_no_record() -> None:
    def submit() -> object:
        return calling_record()

    assert submit() is None
