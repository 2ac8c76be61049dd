"""A task's place in Parsl's graph of tasks, as far as it is known when it is submitted.

All that it waited for is known by then. What waits for it is known if it was called by then,
as in programs that call everything and then wait; a rank of what is called later, from a
result or a join app, is too low.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

CALLER = "launch_task"
"""The function of Parsl's that gives a task to an executor, and knows its record."""


class Place(NamedTuple):
    """How long the longest ways are to a task and from it, in tasks."""

    depth: int
    rank: int


def calling_record() -> Mapping[str, Any] | None:
    """Parsl's record of the task that is being given to the executor which asks.

    Executors are not told; but the caller of the one that calls this knows.
    """
    frame = sys._getframe(2)
    record = frame.f_locals.get("task_record") if frame.f_code.co_name == CALLER else None
    return record if isinstance(record, dict) else None


class TaskGraph:
    """The tasks of one run. What nobody holds a future of any more is forgotten."""

    def __init__(self) -> None:
        self._depth: WeakKeyDictionary[Future[Any], int] = WeakKeyDictionary()
        self._rank: WeakKeyDictionary[Future[Any], int] = WeakKeyDictionary()
        self._next = 0

    def place(self, record: Mapping[str, Any]) -> Place:
        """Where a task is."""
        new = [found["app_fu"] for found in self._new(record["dfk"])]
        for task in new:
            self._depth_of(task)
            self._rank.setdefault(task, 0)
        # Children come after their parents: from the last one on, few are passed twice.
        waiting = new
        while waiting:
            waiting += self._raised_by(waiting.pop())
        task = record["app_fu"]
        return Place(self._depth_of(task), self._rank.get(task, 0))

    def _raised_by(self, child: Future[Any]) -> Iterator[Future[Any]]:
        """The older tasks whose rank is higher than it was because of this one."""
        rank = self._rank[child] + 1
        for parent in _parents(child):
            if self._rank.get(parent, 0) < rank:
                self._rank[parent] = rank
                yield parent

    def _new(self, kernel: Any) -> Iterator[Mapping[str, Any]]:
        """The records of tasks that were called since the last time."""
        while self._next < kernel.task_count:
            found = kernel.tasks.get(self._next)
            if found is None and self._next == kernel.task_count - 1:
                return  # it is being made
            self._next += 1
            if found is not None:
                yield found

    def _depth_of(self, task: Future[Any]) -> int:
        waiting = [task]
        while waiting:
            one = waiting[-1]
            missing = [parent for parent in _parents(one) if parent not in self._depth]
            if missing:
                waiting += missing
            else:
                depths = [self._depth[parent] + 1 for parent in _parents(one)]
                self._depth[waiting.pop()] = max(depths, default=0)
        return self._depth[task]


def _parents(task: Future[Any]) -> Iterator[Future[Any]]:
    """The app futures that a task waits for, itself or for a file of theirs."""
    for waited_for in getattr(task, "task_record", {}).get("depends") or ():
        parent = waited_for
        while parent is not None and not hasattr(parent, "task_record"):
            parent = getattr(parent, "parent", None)  # a file's future may be that of a file
        if parent is not None:
            yield parent
