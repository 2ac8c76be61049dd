"""A recorded run in figures: entries of an archive in, a `Summary` out.

Entries are taken one by one; what is kept of them does not grow with their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from parsl_sizer.archive.base import Entry, Run
from parsl_sizer.model import Ending, Kind, Outcome, format_amount, parse_amount
from parsl_sizer.strategies.sketches import SortedPoints

from .bounded import Allocations, Gathered, Largest, OpenTasks, Timeline, peaks_of
from .figures import Category, Facts, Ladder, Part, Rest, Saving, Summary, TaskLine
from .run import MOST_CATEGORIES, OTHERS, CategoryCost, not_enough_for, specification
from .sums import GB_H, Sums, finite

STEPS, CATEGORY_STEPS = 300, 100
STANDING_OUT = 10
SHOWN = 12
"""Categories beyond the largest so many are summed up where they are shown one by one."""
EXACT = 1024
"""Distinct peaks of a category that are kept as they are."""
NODE_MEMORY = "node_memory"
"""The label of a run that says how much memory its nodes have: 64GB, or bytes."""


def summary_of(run: Run, entries: Iterable[Entry]) -> Summary:
    """What a run's entries come to; the newest come first, as archives give them."""
    whole, categories, tasks = _Part(STEPS), dict[str, _Category](), OpenTasks()
    span = _Span()
    for _, recorded in entries:
        outcome = _sound(recorded)
        wall_s = finite(outcome.usage.wall_s)
        span.add(outcome, wall_s)
        category = _category_of(outcome, categories)
        whole.add(outcome, wall_s)
        category.add(outcome, wall_s)
        for task in tasks.add(outcome, wall_s):
            whole.settle(task)
            _category_of(task.last, categories).settle(task)
    for task in tasks.rest():
        whole.settle(task)
        _category_of(task.last, categories).settle(task)
    whole.sums = _together(categories.values())
    baseline = _baseline(run, whole)
    ranked = sorted(categories.items(), key=lambda item: item[1].rank)
    return Summary(
        **whole.told(baseline),
        run=_facts(run, span),
        categories=tuple(category.category(name, baseline) for name, category in ranked),
        rest=_rest([category for _, category in ranked[SHOWN:]]),
    )


def _sound(outcome: Outcome) -> Outcome:
    """The outcome without amounts that cannot be: those are not known."""
    attempt, usage = outcome.attempt, outcome.usage
    amounts = (*attempt.allocation.values(), *usage.peak.values())
    if all(0 <= amount < math.inf for amount in amounts):
        return outcome
    allocation, peak = (
        {kind: amount for kind, amount in found.items() if 0 <= amount < math.inf}
        for found in (attempt.allocation, usage.peak)
    )
    return outcome._replace(
        attempt=attempt._replace(allocation=allocation), usage=usage._replace(peak=peak)
    )


def _category_of(outcome: Outcome, categories: dict[str, _Category]) -> _Category:
    name = outcome.attempt.task.category
    if name not in categories and len(categories) >= MOST_CATEGORIES:
        name = OTHERS
    found = categories.get(name)
    if found is None:
        found = categories[name] = _Category(CATEGORY_STEPS)
    return found


def _rest(categories: list[_Category]) -> Rest | None:
    if not categories:
        return None
    return Rest(len(categories), _together(categories).totals())


def _together(categories: Iterable[_Category]) -> Sums:
    sums = Sums()
    for category in categories:
        sums.absorb(category.sums)
    return sums


def _facts(run: Run, span: _Span) -> Facts:
    known = math.isfinite(span.first)
    started_at = run.started_at or (span.first if known else None)
    took_s = span.last - min(started_at, span.first) if known and started_at is not None else None
    return Facts(
        run_id=run.run_id,
        workflow=run.workflow,
        user=run.user,
        host=run.host,
        source=run.source,
        started_at=started_at,
        ended_at=span.last if known else None,
        took_s=took_s,
        versions=dict(run.versions),
        labels={name: str(value) for name, value in run.labels.items()},
    )


class Baseline(NamedTuple):
    """What every task might have been given, and what that is in words."""

    memory: float
    against: str


def _baseline(run: Run, whole: _Part) -> Baseline | None:
    """A node, where a label says how large they are; else the largest allocation."""
    label, labelled = run.labels.get(NODE_MEMORY), 0.0
    if label is not None:
        with suppress(ValueError):
            labelled = parse_amount(Kind.MEMORY, str(label))
    memory = labelled or whole.sums.kinds[Kind.MEMORY].largest_allocation
    if not memory:
        return None
    what = (
        f"the memory of a node, as the run's label {NODE_MEMORY} has it"
        if labelled
        else "the largest allocation that any task of the run had"
    )
    return Baseline(memory, f"{format_amount(Kind.MEMORY, memory)}, {what}")


@dataclass(slots=True)
class _Span:
    """From when to when attempts ran."""

    first: float = math.inf
    last: float = -math.inf

    def add(self, outcome: Outcome, wall_s: float) -> None:
        if math.isfinite(outcome.ended_at):
            self.first = min(self.first, outcome.ended_at - wall_s)
            self.last = max(self.last, outcome.ended_at)


class _Part:
    """What is kept for a run and for each of its categories alike."""

    def __init__(self, steps: int) -> None:
        self.sums = Sums()
        self._ran_s = self._unlimited_s = 0.0
        self._timeline = Timeline(steps)
        self._slowest: Largest[Gathered] = Largest(STANDING_OUT)
        self._most_wasteful: Largest[Gathered] = Largest(STANDING_OUT)

    @property
    def rank(self) -> tuple[float, float, int]:
        """Those that held, else used, most memory come first."""
        memory = self.sums.kinds[Kind.MEMORY]
        return -memory.allocated, -memory.used, -self.sums.counts["attempts"]

    def add(self, outcome: Outcome, wall_s: float) -> None:
        """Take in an attempt."""
        if Kind.MEMORY not in outcome.attempt.allocation:
            self._unlimited_s += wall_s
        if wall_s and math.isfinite(outcome.ended_at):
            held = outcome.attempt.allocation.get(Kind.MEMORY, 0.0)
            peak = outcome.usage.peak.get(Kind.MEMORY, 0.0)
            self._timeline.add(outcome.ended_at - wall_s, outcome.ended_at, held, peak)

    def settle(self, task: Gathered) -> None:
        """Take in a task all of whose attempts were added."""
        self._ran_s += finite(task.last.usage.wall_s)
        self._slowest.add(task.wall_s, task)
        if task.wasted is not None and task.wasted > 0:
            self._most_wasteful.add(task.wasted, task)

    def told(self, baseline: Baseline | None) -> dict[str, Any]:
        """The arguments of `Part`."""
        part = Part(
            totals=self.sums.totals(),
            saving=self._saving(baseline),
            course=self._timeline.course(),
            slowest=tuple(map(_line, self._slowest.items())),
            most_wasteful=tuple(map(_line, self._most_wasteful.items())),
        )
        return {name: getattr(part, name) for name in Part.__dataclass_fields__}

    def _saving(self, baseline: Baseline | None) -> Saving | None:
        """As in the table at the end of a run, `run.CategoryCost`."""
        memory = self.sums.kinds[Kind.MEMORY]
        if baseline is None or not memory.allocations or not self._ran_s:
            return None
        whole = baseline.memory * self._ran_s / GB_H
        allocated = (memory.allocated + baseline.memory * self._unlimited_s) / GB_H
        if not whole:  # a time so short that nothing is left of it
            return None
        saved = whole - allocated
        return Saving(*baseline, whole, allocated, saved, saved / whole)


class _Category(_Part):
    """What is kept for a category besides."""

    def __init__(self, steps: int) -> None:
        super().__init__(steps)
        self._peaks = SortedPoints(exact=EXACT)
        self._first, self._later = Allocations(), Allocations()
        self._final: tuple[float, float] | None = None
        self._cost = CategoryCost()

    def add(self, outcome: Outcome, wall_s: float) -> None:
        """Take in an attempt."""
        super().add(outcome, wall_s)
        self.sums.add(outcome, wall_s)
        attempt = outcome.attempt
        given = attempt.given_memory
        if given is not None:
            at = attempt.launched_at or outcome.ended_at - wall_s
            (self._first if attempt.number == 1 else self._later).add(given, at)
            if attempt.number == 1 and (self._final is None or at > self._final[0]):
                self._final = at, given
        if outcome.ending is Ending.DONE:
            self._cost.add([outcome], {})
            peak = outcome.usage.peak.get(Kind.MEMORY)
            if peak is not None:
                self._peaks.add(peak, 1)

    def settle(self, task: Gathered) -> None:
        """Take in a task all of whose attempts were added."""
        super().settle(task)
        self.sums.counts["tasks"] += 1
        self.sums.counts["failed"] += not task.is_done
        if not task.is_done:
            self._cost.add([task.last], {})

    def category(self, name: str, baseline: Baseline | None) -> Category:
        """What is told of it."""
        is_measured = any(use.measured for use in self._cost.kinds.values())
        final = self._final[1] if self._final else None
        return Category(
            **self.told(baseline),
            name=name,
            peaks=peaks_of(self._peaks),
            ladder=Ladder(self._first.rungs(), self._later.rungs(), final),
            specification=specification(self._cost) if is_measured else None,
            not_enough_for=not_enough_for(self._cost),
        )


def _line(task: Gathered) -> TaskLine:
    last = task.last
    return TaskLine(
        task_id=last.attempt.task.task_id,
        category=last.attempt.task.category,
        attempts=task.attempts,
        ending=last.ending.value,
        wall_s=task.wall_s,
        allocated=last.attempt.allocation.get(Kind.MEMORY),
        peak=last.usage.peak.get(Kind.MEMORY),
        wasted=None if task.wasted is None else task.wasted / GB_H,
    )
