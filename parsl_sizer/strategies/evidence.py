"""What one category has shown of one kind of resource, in bounded memory.

Finished tasks go into log-spaced bins (all of them) and into a window (the last
ones, with what was known of each beforehand); attempts that ran out wait as lower
bounds until their task finishes. The ladders are computed from this and nothing
else, and nothing in it depends on the nodes.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from .ladder import Point

WINDOW = 512
"""Finished tasks kept one by one: 10 half-lives of 50 tasks, 2.5 of 200."""
MOST_BINS = 256
"""Bins start 0.1 % wide and are paired whenever there are more than this."""
MOST_FAILING = 1024
"""Tasks that ran out and have not finished yet; older ones are forgotten."""
MOST_TOP = 64
"""Largest peaks kept, to see how fast the tail falls."""
LEAST = 1e-3
"""Peaks below this (bytes, cores) are taken for this: ladders step by factors."""

NEAR_TAIL = (0.066, 0.219, 0.412, 0.667, 1.024, 1.578, 2.619, 6.0)
"""Where the next maximum may lie, in mean excesses above the present one: the middles of
eight equally likely parts of a generalised Pareto tail of shape 1/2."""
FAR = 0.2
"""Share of the tail that is spread over multiples of the maximum instead, each doubling
half as likely as the one before. Without it a second, far mode costs many small steps."""
FAR_TAIL = (
    *((2.0 ** (third / 3), FAR * 0.26 * 0.5 ** (third / 3)) for third in range(1, 13)),
    *((2.0**doubling, FAR * 0.5**doubling) for doubling in range(5, 11)),
)
TIME_FLOOR = 0.1
"""Every task weighs as if it took this share of the mean time more: tasks of no
(measured) time still tell about peaks."""
SLOW_PEAKS = 3.0
"""The prior of theta: so many failures that died at the very end of their time."""
DOUBT = 2.0
"""The prior of how often a failure tells the peak: so many failures that did not."""


class Seen(NamedTuple):
    """A finished task."""

    peak: float
    wall_s: float
    features: tuple[float, ...]


class Evidence:
    """Everything learned of one kind in one category."""

    __slots__ = (
        "_failed_shares",
        "_failed_tasks",
        "_failures",
        "_fineness",
        "_level_failures",
        "bins",
        "failing",
        "maximum",
        "recent",
        "tasks",
        "time_s",
        "top",
    )

    def __init__(self) -> None:
        self.tasks = 0
        self.time_s = 0.0
        self.maximum = 0.0
        self.bins: dict[int, list[float]] = {}
        self._fineness = 1000.0
        self.top: list[float] = []
        self.recent: deque[Seen] = deque(maxlen=WINDOW)
        self.failing: dict[int | str, tuple[float, float, int]] = {}
        self._failed_tasks = 0
        self._failed_shares = 0.0
        self._failures = self._level_failures = 0

    @property
    def mean_s(self) -> float:
        """The mean time of a task, 1 if no time was ever measured."""
        return self.time_s / self.tasks if self.time_s > 0 else 1.0

    @property
    def theta(self) -> float:
        """The part of its time after which a failing attempt dies.

        It is learned from those that did, and from how soon others came near their peak.
        """
        return (SLOW_PEAKS + self._failed_shares) / (SLOW_PEAKS + self._failed_tasks)

    @property
    def known(self) -> float:
        """The share of tasks whose peak is known once they have failed."""
        return self._level_failures / (DOUBT + self._failures)

    def add(
        self, task_id: int | str, peak: float, wall_s: float, features: tuple[float, ...]
    ) -> None:
        """A task finished."""
        peak = max(peak, LEAST)
        self.tasks += 1
        self.time_s += wall_s
        key = math.floor(math.log(peak) * self._fineness)
        found = self.bins.get(key)
        if found is None:
            self.bins[key] = [peak, wall_s, 1.0]
            while len(self.bins) > MOST_BINS:
                self._pair_bins()
        else:
            if peak > found[0]:
                found[0] = peak
            found[1] += wall_s
            found[2] += 1.0
        top = self.top
        if len(top) < MOST_TOP:
            insort(top, peak)
        elif peak > top[0]:
            del top[0]
            insort(top, peak)
        self.maximum = top[-1]
        self.recent.append(Seen(peak, wall_s, features))
        if self.failing:
            failed = self.failing.pop(task_id, None)
            if failed is not None and wall_s > 0:
                self._failed_tasks += 1
                self._failed_shares += min(failed[1] / wall_s, 1.0)

    def add_rise(self, share: float) -> None:
        """A task came near its peak after this share of its time: it would have died by then."""
        self._failed_tasks += 1
        self._failed_shares += min(share, 1.0)

    def add_level(self, *, is_level: bool) -> None:
        """An attempt was stopped; whether it had all the memory that it was going to have."""
        self._failures += 1
        self._level_failures += is_level

    def add_failure(self, task_id: int | str, allocated: float, wall_s: float) -> None:
        """An attempt ran out: the peak of this task is above `allocated`."""
        self.failing.pop(task_id, None)
        if len(self.failing) >= MOST_FAILING:
            self.failing.pop(next(iter(self.failing)))
        self.failing[task_id] = (allocated, wall_s, self.tasks)

    def points(self) -> list[Point]:
        """All finished tasks, the failing ones' bounds, and one more task above them all."""
        least = TIME_FLOOR * self.mean_s
        points = [
            (peak, time + least * count, count)
            for _, (peak, time, count) in sorted(self.bins.items())
        ]
        share = self.tasks / (self.tasks + 1.0)
        mean = sum([time for _, time, _ in points]) / self.tasks
        points += tail(self.top, self.tasks, share, share * mean)
        if self.failing:
            points = with_bounds(points, self.bounds(), mean)
        return points

    def bounds(self) -> list[float]:
        """What the tasks that ran out and have not finished are known to exceed.

        One that is not back after as many tasks as the window has is given up.
        """
        oldest = self.tasks - WINDOW
        return [bound for bound, _, since in self.failing.values() if since >= oldest]

    def _pair_bins(self) -> None:
        self._fineness /= 2.0
        paired: dict[int, list[float]] = {}
        for key, (peak, time, count) in self.bins.items():
            found = paired.setdefault(key // 2, [0.0, 0.0, 0.0])
            found[0] = max(found[0], peak)
            found[1] += time
            found[2] += count
        self.bins = paired


def tail(top: Sequence[float], tasks: int, count: float, time: float) -> list[Point]:
    """`count` tasks of `time` in all, spread over what may lie above the largest of `top`.

    Near the maximum as the largest sqrt(`tasks`) peaks fall off (their mean excess, as
    in extreme value statistics), farther away by doublings.
    """
    maximum = top[-1]
    used = min(len(top) - 1, max(1, round(math.sqrt(tasks))))
    excess = sum(top[-used:]) / used - top[-1 - used] if used else 0.0
    excess = max(excess, 0.01 * maximum, 0.25 * maximum / tasks if tasks < 6 else 0.0)
    near = (1.0 - FAR) / len(NEAR_TAIL)
    points = [(maximum + excess * step, time * near, count * near) for step in NEAR_TAIL]
    points += [(maximum * far, time * share, count * share) for far, share in FAR_TAIL]
    points.sort()
    return points


def with_bounds(points: list[Point], bounds: Iterable[float], time: float) -> list[Point]:
    """The points with one more task above each bound, spread as those above it are.

    The Kaplan-Meier estimate gives the weight of a censored observation to the
    observations right of it.
    """
    peaks = [peak for peak, _, _ in points]
    weights = list(accumulate((count for _, _, count in reversed(points)), initial=0.0))
    shares = [0.0] * (len(points) + 1)
    for bound in bounds:
        right = bisect_right(peaks, bound)
        if right < len(points):
            shares[right] += 1.0 / weights[len(points) - right]
    return [
        (peak, own + time * count * share, count + count * share)
        for (peak, own, count), share in zip(points, accumulate(shares), strict=False)
    ]
