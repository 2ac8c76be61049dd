"""Quantized bucketing: even slices of the peaks seen so far, in order (seed 000, V.B.2).

What k-means bucketing shares with it is here too: the cold start, the three levels
of information, and the paper's way of stepping all kinds together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from parsl_sizer.model import Kind, Outcome, Resources, TaskInfo, UnknownStrategy

from .base import Family, Predictor, Proposal, Setting, Strategy
from .per_kind import PerKind
from .sketches import SortedPoints

COLD_START = 10
"""Finished tasks, of all categories together, before the first bucket is used."""


class ColdStart:
    """Counts the finished tasks of all categories down to the end of the cold start."""

    def __init__(self, tasks: int = COLD_START) -> None:
        self.left = tasks

    @property
    def is_over(self) -> bool:
        return self.left <= 0

    def count_down(self) -> None:
        self.left = max(0, self.left - 1)


class QuantizedBuckets(Predictor):
    """The sorted peaks, cut into `n` buckets of equally many tasks.

    A task first gets what the lowest bucket ends with, after a failure what the next
    one does, above all of them the largest node. Of k sorted peaks bucket j ends with
    the one at index floor(j (k - 1) / n). Until the cold start is over, and until the
    category has a peak, a task gets the user's request, else the largest node.

    >>> buckets, task = QuantizedBuckets(2, ColdStart(0)), TaskInfo(1, "align")
    >>> for peak in 5, 1, 4, 2, 3:
    ...     buckets.observe(task, peak, 60)
    >>> buckets.ends
    (3.0, 5.0)
    >>> buckets.predict(task, 64), buckets.grow(task, [3], 64), buckets.grow(task, [5], 64)
    (3.0, 5.0, None)

    T. S. Phung et al., "Not All Tasks Are Created Equal", WORKS 2021, section V.B.
    """

    def __init__(self, n: int, cold_start: ColdStart) -> None:
        self.n = n
        self.tasks = 0
        self.ends: tuple[float, ...] = ()
        """What each bucket ends with, in increasing order."""
        self._cold_start = cold_start
        self._points = SortedPoints()

    @property
    def is_ready(self) -> bool:
        return self._cold_start.is_over and self.tasks > 0

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        return self._lowest_above(-math.inf)

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float | None:
        return self._lowest_above(failed[-1])

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        self._points.add(peak, 1)
        self.tasks += 1
        self._cold_start.count_down()
        self.ends = (self._points.largest,) if self.n == 1 else self._cut()

    def why(self, task: TaskInfo, amount: float) -> str:
        return f"the lowest of {self.n} buckets over {self.tasks} tasks"

    def _lowest_above(self, amount: float) -> float | None:
        if not self.is_ready:
            return None
        return next((end for end in self.ends if end > amount), None)

    def _cut(self) -> tuple[float, ...]:
        values, counts = self._points.columns()
        return tuple(values[np.searchsorted(np.cumsum(counts), self._even_sizes())].tolist())

    def _even_sizes(self) -> list[int]:
        """How many tasks the first, the first two, ... of `n` even buckets hold."""
        return [j * (self.tasks - 1) // self.n + 1 for j in range(1, self.n + 1)]


class InStep(PerKind):
    """Buckets of which every kind takes the next one when any kind runs out, as in the paper.

    A kind that is in its last bucket stays there, unless it ran out there: then the
    task gets the largest node in every kind. Where two buckets end alike the paper
    tries the same amount again, and its tables count that attempt; here it is larger
    by the least number there is, as what is proposed after a failure must be larger.

    >>> from parsl_sizer.model import Attempt, Ending
    >>> task, buckets = TaskInfo(1, "align"), QuantizedBuckets(2, ColdStart(0))
    >>> for peak in 1, 3, 5:
    ...     buckets.observe(task, peak, 60)
    >>> strategy, node = InStep({Kind.MEMORY: buckets, Kind.DISK: buckets}), Resources(1, 9, 9)
    >>> first = Attempt(task, 1, strategy.propose(task, [], node).amounts)
    >>> failed = Outcome(first, Ending.EXHAUSTED, exhausted=frozenset({Kind.DISK}))
    >>> strategy.propose(task, [failed], node)
    Proposal(amounts={<Kind.MEMORY: 'memory'>: 5.0, <Kind.DISK: 'disk'>: 5.0}, why='bucket 2')
    """

    def __init__(self, buckets: Mapping[Kind, QuantizedBuckets]) -> None:
        super().__init__(buckets)
        self.buckets = dict(buckets)

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        if not failures or not failures[-1].exhausted:
            return super().propose(task, failures, largest)
        last = failures[-1]
        ends = {kind: b.ends if b.is_ready else () for kind, b in self.buckets.items()}
        step = sum(1 for outcome in failures if outcome.exhausted)
        if any(step >= len(ends.get(kind, ())) for kind in last.exhausted):
            return Proposal({kind: largest[kind] for kind in ends}, "above all buckets")
        amounts = {}
        for kind, of_kind in ends.items():
            held = last.attempt.allocation.get(kind, largest[kind])
            least = math.nextafter(held, math.inf) if kind in last.exhausted else held
            end = of_kind[min(step, len(of_kind) - 1)] if of_kind else held
            amounts[kind] = min(max(end, least), largest[kind])
        return Proposal(amounts, f"bucket {step + 1}")


def bucketing(
    make: Callable[[int, ColdStart], QuantizedBuckets],
    setting: Setting,
    level: int,
    n: int | None,
    together: bool,
) -> Family:
    """The family for what is known: 1 nothing, 2 the number of types, 3 the type of each task."""
    if level not in (1, 2, 3):
        raise UnknownStrategy(f"level must be 1, 2 or 3, not {level!r}.")
    if n is None:
        types = setting.hindsight.categories if setting.hindsight else 2
        n = types if level == 2 else 1
    if not isinstance(n, int) or n < 1:
        raise UnknownStrategy(f"n, the number of buckets, must be 1 or more, not {n!r}.")
    buckets = n
    cold_starts = {kind: ColdStart() for kind in setting.kinds}

    def strategy() -> Strategy:
        per_kind = {kind: make(buckets, cold_starts[kind]) for kind in setting.kinds}
        return InStep(per_kind) if together else PerKind(per_kind)

    if level == 3:
        return lambda category: strategy()
    pooled = strategy()
    return lambda category: pooled


def build(
    setting: Setting, *, level: int = 3, n: int | None = None, together: bool = False
) -> Family:
    """The finished tasks' peaks cut into n even buckets, tried from the lowest.

    At `level` 3 each category has its own buckets (`n` is 1 unless given), at 1 and 2
    all categories share them: `n` is 1, or at level 2 the number of categories where
    the trace is known beforehand, else 2. Only the kind that ran out takes its next
    bucket; `together=True` is the paper's way, all kinds at once.
    """
    return bucketing(QuantizedBuckets, setting, level, n, together)
