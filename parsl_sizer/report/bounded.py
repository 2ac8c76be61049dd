"""What is kept of attempts, however many there are: sums over time, allocations, extremes.

Nothing depends on the order in which attempts come, but for ties, and for runs with very
many tasks that never finish; then the newest first, as archives give them, is best.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from parsl_sizer.model import Ending, Kind, Outcome
from parsl_sizer.strategies.sketches import SortedPoints

from .figures import Bin, Course, Peaks, Rung, Rungs

SHORTEST_S = 2.0**-10
"""The narrowest step of a timeline."""
MOST_DISTINCT = 256
"""Allocations kept apart; with more, they are rounded further: to two digits, to one."""
SHOWN_RUNGS = 12
MOST_OPEN = 20_000
"""Tasks of which more attempts may come; with more, the one that waits longest is closed."""
BINS = 24
QUANTILES = {"p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "max": 1.0}

T = TypeVar("T")


class Timeline:
    """Allocated and used memory over time, in at most so many steps.

    A step's mean rate is what all steps up to it have added for good, plus a correction
    for what began or ended within it: an attempt costs the same however long it ran. With
    more steps than there may be, pairs of them become one.

    >>> timeline = Timeline(4)
    >>> timeline.add(0.0, 8.0, 10.0, 5.0)
    >>> timeline.add(4.0, 6.0, 10.0, 10.0)
    >>> course = timeline.course()
    >>> course.step_s, course.allocated, course.used
    (4.0, (10.0, 15.0, 0.0), (5.0, 10.0, 0.0))
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._step_s = SHORTEST_S
        self._steps: dict[int, list[float]] = {}
        self._first, self._last = 0, -1

    def add(self, started_at: float, ended_at: float, allocated: float, used: float) -> None:
        """Take in an attempt that held and used so much from then to then."""
        for at, sign in ((started_at, 1.0), (ended_at, -1.0)):
            self._make_room(at)
            step = math.floor(at / self._step_s)
            within = at / self._step_s - step
            found = self._steps.setdefault(step, [0.0] * 6)
            for place, amount in enumerate((allocated, used, 1.0)):
                found[2 * place] += sign * amount
                found[2 * place + 1] -= sign * amount * within

    def _make_room(self, at: float) -> None:
        while True:
            step = math.floor(at / self._step_s)
            first = min(self._first, step) if self._steps else step
            last = max(self._last, step) if self._steps else step
            if last - first < self._most:
                self._first, self._last = first, last
                return
            self._widen()

    def _widen(self) -> None:
        """Make one step of each pair."""
        self._step_s *= 2
        old, self._steps = self._steps, {}
        for step, values in old.items():
            found = self._steps.setdefault(step // 2, [0.0] * 6)
            for place in (0, 2, 4):
                found[place] += values[place]
                late = values[place] / 2 if step % 2 else 0.0
                found[place + 1] += values[place + 1] / 2 - late
        self._first, self._last = self._first // 2, self._last // 2

    def course(self) -> Course | None:
        """What there is; None if nothing was added."""
        if not self._steps:
            return None
        rates: list[list[float]] = [[], [], []]
        steady = [0.0, 0.0, 0.0]
        for step in range(self._first, self._last + 1):
            values = self._steps.get(step, [0.0] * 6)
            for place in range(3):
                steady[place] += values[2 * place]
                # Rounded, or what is left of sums that cancel would be shown.
                mean = steady[place] + values[2 * place + 1]
                rates[place].append(max(0.0, round(mean, 3 if place == 2 else 0)))
        allocated, used, running = map(tuple, rates)
        return Course(self._first * self._step_s, self._step_s, allocated, used, running)


class Allocations:
    """Distinct allocations, to three digits: each with how often and from when to when.

    >>> found = Allocations()
    >>> for at, memory in enumerate([1e9, 2e9, 1e9]):
    ...     found.add(memory, float(at))
    >>> [(rung.memory, rung.attempts, rung.last_at) for rung in found.rungs().rungs]
    [(1000000000.0, 2, 2.0), (2000000000.0, 1, 1.0)]
    """

    def __init__(self) -> None:
        self._found: dict[float, Rung] = {}
        self._digits = 3

    def add(self, memory: float, at: float) -> None:
        """An attempt was launched with this."""
        self._merge(Rung(memory, 1, at, at))
        while len(self._found) > MOST_DISTINCT and self._digits != 1:
            self._digits -= 1
            old, self._found = self._found, {}
            for rung in old.values():
                self._merge(rung)

    def _merge(self, rung: Rung) -> None:
        memory = float(f"{rung.memory:.{self._digits - 1}e}")
        other = self._found.get(memory, Rung(memory, 0, math.inf, -math.inf))
        self._found[memory] = Rung(
            memory,
            rung.attempts + other.attempts,
            min(rung.first_at, other.first_at),
            max(rung.last_at, other.last_at),
        )

    def rungs(self) -> Rungs:
        """The most frequent ones."""
        ranked = sorted(self._found.values(), key=lambda rung: (-rung.attempts, rung.memory))
        shown = sorted(ranked[:SHOWN_RUNGS], key=lambda rung: (rung.first_at, rung.memory))
        others = sum(rung.attempts for rung in ranked[SHOWN_RUNGS:])
        return Rungs(tuple(shown), len(ranked), others)


class Largest(Generic[T]):
    """The items with the largest scores.

    >>> largest = Largest(2)
    >>> for score, item in (1.0, "a"), (3.0, "b"), (2.0, "c"):
    ...     largest.add(score, item)
    >>> largest.items()
    ['b', 'c']
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[float, int, T]] = []
        self._count = 0

    def add(self, score: float, item: T) -> None:
        """Keep the item if it is among the largest; of equals the first."""
        self._count += 1
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, (score, -self._count, item))
        elif score > self._heap[0][0]:
            heapq.heapreplace(self._heap, (score, -self._count, item))

    def items(self) -> list[T]:
        """The largest first."""
        return [item for _, _, item in sorted(self._heap, key=lambda kept: kept[:2], reverse=True)]


@dataclass(slots=True)
class Gathered:
    """The attempts at a task as far as they have come."""

    last: Outcome
    attempts: int = 0
    is_done: bool = False
    wall_s: float = 0.0
    wasted: float | None = None
    """Byte-seconds; None if no attempt's is known."""

    def add(self, outcome: Outcome, wall_s: float) -> None:
        """Take in one more attempt."""
        self.attempts += 1
        self.wall_s += wall_s
        if outcome.attempt.number > self.last.attempt.number:
            self.last = outcome
        self.is_done |= outcome.ending is Ending.DONE
        held = outcome.attempt.allocation.get(Kind.MEMORY)
        kept = outcome.usage.peak.get(Kind.MEMORY) if outcome.ending is Ending.DONE else 0.0
        if held is not None and kept is not None:
            self.wasted = (self.wasted or 0.0) + (held - kept) * wall_s

    @property
    def is_whole(self) -> bool:
        """Whether no further attempt can come."""
        return self.is_done and self.attempts >= self.last.attempt.number


class OpenTasks:
    """Puts the attempts at each task together."""

    def __init__(self) -> None:
        self._open: dict[int | str, Gathered] = {}

    def add(self, outcome: Outcome, wall_s: float) -> Iterator[Gathered]:
        """Take an attempt in, and give the tasks that are whole by it."""
        task_id = outcome.attempt.task.task_id
        task = self._open.get(task_id) or Gathered(outcome)
        task.add(outcome, wall_s)
        if task.is_whole:
            self._open.pop(task_id, None)
            yield task
            return
        self._open[task_id] = task
        if len(self._open) > MOST_OPEN:
            yield self._open.pop(next(iter(self._open)))

    def rest(self) -> Iterator[Gathered]:
        """The tasks that never finished, or of which attempts are missing."""
        yield from self._open.values()
        self._open = {}


def peaks_of(points: SortedPoints) -> Peaks | None:
    """The distribution of what was added with weight 1; None if nothing was."""
    values, counts = list(points.values), [int(count) for count in points.sums[0]]
    measured = sum(counts)
    if not measured:
        return None
    quantiles, below, at = {}, 0, 0
    for name, share in QUANTILES.items():
        while below + counts[at] < share * measured and at + 1 < len(values):
            below += counts[at]
            at += 1
        quantiles[name] = values[at]
    return Peaks(measured, quantiles, tuple(_bins(values, counts)))


def _bins(values: list[float], counts: list[int]) -> Iterator[Bin]:
    """Bins of equal width in logarithms; a peak of nothing is in the first."""
    least, most = max(values[0], values[-1] / 1e6), values[-1]
    if least == most:
        yield Bin(values[0], most, sum(counts))
        return
    tasks, width = [0] * BINS, math.log(most / least) / BINS
    for value, count in zip(values, counts, strict=True):
        place = math.ceil(math.log(max(value, least) / least) / width - 1e-9) - 1
        tasks[min(max(place, 0), BINS - 1)] += count
    edges = [values[0], *(least * math.exp(width * step) for step in range(1, BINS)), most]
    for low, high, count in zip(edges[:-1], edges[1:], tasks, strict=True):
        yield Bin(low, high, count)
