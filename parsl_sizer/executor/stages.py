"""Which stage is a task of, and how far is each stage?

A stage is what the user calls so, or else all tasks of one category. Parsl knows of tasks
before they can run, while they wait for others: from its records the stages to come are known.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import parsl

from parsl_sizer.model import SizerError, TaskInfo

from . import intake


class BadStage(SizerError, ValueError):
    """A stage that cannot be."""


@dataclass(slots=True, eq=False)
class _Section:
    """The tasks that were called inside of one `stage`, by their numbers in Parsl."""

    name: str
    nodes: int | None
    first: int
    end: int | None = None

    def has(self, number: int) -> bool:
        return self.first <= number and (self.end is None or number < self.end)


_sections: WeakKeyDictionary[Any, list[_Section]] = WeakKeyDictionary()


@contextmanager
def stage(name: str, *, nodes: int | None = None) -> Iterator[None]:
    """All apps that are called inside are one stage of the workflow; it may need so many nodes.

    For ``SizedExecutor(scaling="asa")``, which asks for the blocks of a stage before it begins.
    Call everything and then wait, so that a stage is known while the one before it runs::

        with stage("align"):
            aligned = [align(sample) for sample in samples]
        with stage("merge", nodes=1):
            merged = merge(aligned)
        merged.result()

    What other threads call meanwhile counts as well.
    """
    if not isinstance(name, str) or not name:
        raise BadStage(f"stage({name!r}): a stage is called by a text.")
    if nodes is not None and (not isinstance(nodes, int) or nodes < 1):
        raise BadStage(f"stage({name!r}, nodes={nodes!r}): a stage needs 1 node or more.")
    kernel = parsl.dfk()
    section = _Section(name, nodes, kernel.task_count)
    _sections.setdefault(kernel, []).append(section)
    try:
        yield
    finally:
        section.end = kernel.task_count


@dataclass(slots=True, eq=False)
class Progress:
    """How far a stage is; `tasks` are those that were called."""

    name: str
    category: str
    nodes: int | None = None
    tasks: int = 0
    over: int = 0
    sections: list[_Section] = field(default_factory=list)
    changed_at: float = -math.inf
    slots: int = 1
    """How many of its tasks run at once on the blocks that it needs."""
    earlier_s: float | None = None
    """How long such tasks took in earlier runs; None if that is not known."""
    walls: int = 0
    wall_s: float = 0.0
    is_planned: bool = False
    is_open: bool = False
    """Whether its tasks may be run: not on the blocks of a stage that is over."""
    held: list[Callable[[], None]] = field(default_factory=list)
    """What lets those go that were given too early."""
    has_started: bool = False
    has_ended: bool = False

    @property
    def left(self) -> int:
        """How many tasks are not over."""
        return self.tasks - self.over

    @property
    def mean_s(self) -> float | None:
        """How long its tasks took, if some have ended."""
        return self.wall_s / self.walls if self.walls else None

    def is_whole(self, now: float, quiet_s: float) -> bool:
        """Whether all its tasks are likely to have been called."""
        if self.sections and all(section.end is not None for section in self.sections):
            return True
        return now >= self.changed_at + quiet_s


class Stages:
    """The stages of one workflow on one executor, in the order in which they were called."""

    def __init__(self, label: str) -> None:
        self._label = label
        self.lock = threading.RLock()  # who is done already is so at once
        self._stages: dict[str, Progress] = {}
        self._names: dict[str, str] = {}
        """Of stages that have ended and have got new tasks: what they are called now."""
        self._by_task: dict[int | str, Progress] = {}
        self._loose: set[int | str] = set()
        self._kernel: Any = None
        self._next = 0

    def given(self, task: TaskInfo, record: Mapping[str, Any] | None, now: float) -> Progress:
        """A task is given to the executor; its stage."""
        with self.lock:
            if record is not None:
                self._kernel = record["dfk"]
                stage = self._named(record, task.category, now)
            else:  # not through Parsl's kernel
                stage = self._stage(task.category, task.category, now)
                stage.tasks += 1
                stage.changed_at = now
                self._loose.add(task.task_id)
            self._by_task[task.task_id] = stage
            return stage

    def settled(self, task_id: int | str, wall_s: float) -> None:
        """A task has ended that took so long."""
        with self.lock:
            stage = self._by_task.pop(task_id, None)
            if stage is not None and 0 <= wall_s < math.inf:
                stage.walls += 1
                stage.wall_s += wall_s
            if stage is not None and task_id in self._loose:
                self._loose.discard(task_id)
                stage.over += 1

    def stage_of(self, task_id: int | str) -> Progress | None:
        """The stage of a task that has not ended."""
        return self._by_task.get(task_id)

    def look(self, now: float) -> list[Progress]:
        """All stages, with what was called since the last time."""
        with self.lock:
            kernel = self._kernel
            while kernel is not None and self._next < kernel.task_count:
                found = kernel.tasks.get(self._next)
                if found is None and self._next == kernel.task_count - 1:
                    break  # it is being made
                self._next += 1
                if found is not None and found["executor"] == self._label:
                    self._add(found, now)
            return list(self._stages.values())

    def _add(self, record: Mapping[str, Any], now: float) -> None:
        stage = self._named(record, _category(record), now)
        stage.tasks += 1
        stage.changed_at = now
        record["app_fu"].add_done_callback(lambda _: self._done(stage))

    def _done(self, stage: Progress) -> None:
        with self.lock:
            stage.over += 1

    def _named(self, record: Mapping[str, Any], category: str, now: float) -> Progress:
        number = record["id"]
        for section in reversed(_sections.get(record["dfk"], ())):
            if section.has(number):
                stage = self._stage(section.name, category, now)
                stage.nodes = stage.nodes or section.nodes
                if section not in stage.sections:
                    stage.sections.append(section)
                return stage
        return self._stage(_category(record), category, now)

    def _stage(self, name: str, category: str, now: float) -> Progress:
        now_called = self._names.get(name, name)
        found = self._stages.get(now_called)
        if found is None:
            found = self._stages[now_called] = Progress(now_called, category, changed_at=now)
        elif found.has_ended:
            return self._again(name, category, now)
        return found

    def _again(self, name: str, category: str, now: float) -> Progress:
        count = sum(one.partition(" #")[0] == name for one in self._stages) + 1
        self._names[name] = f"{name} #{count}"
        return self._stage(name, category, now)


def _category(record: Mapping[str, Any]) -> str:
    """What a task is going to be counted as, as far as that is known before it can run."""
    return intake.category_before(record["func"], record.get("resource_specification") or {})
