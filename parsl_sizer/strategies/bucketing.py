"""What greedy and exhaustive bucketing share: points, buckets and the draw among them.

T. S. Phung and D. Thain, "Adaptive Task-Oriented Resource Allocation for Large Dynamic
Workflows on Opportunistic Resources", IPDPS 2024; as in Work Queue and TaskVine.
"""

from __future__ import annotations

import math
import random
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from parsl_sizer.model import MB, Kind, TaskInfo, is_bytes

from .base import Predictor
from .sketches import SortedPoints

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

LEAST_TASKS = 10
"""Finished tasks before there are buckets."""

EXACT_TASKS = 2000
"""Up to here the buckets are computed anew after each task, then whenever the number of
tasks has grown by one in so many."""


class Bucketing(Predictor):
    """Peaks sorted into buckets; a task gets as much as the largest peak in one of them.

    Each finished task is a point with its number in the category as significance, so
    that newer ones count more. The first bucket is drawn by its share of the
    significance, after a failure one of the larger ones likewise; the `deterministic`
    variants take them in order. Above all buckets, and before there are any, powers
    of two times 1000 MB or one core are tried.

    The draw is a function of seed, task and number of failures: asked twice, the
    answer is the same.
    """

    def __init__(self, kind: Kind, *, deterministic: bool = False, seed: str = "0") -> None:
        self.deterministic = deterministic
        self.seed = f"{seed}/{kind.value}"
        self.unit = MB if is_bytes(kind) else 1.0
        self.start = 1000 * MB if is_bytes(kind) else 1.0
        self.tasks = 0
        self.values: list[float] = []
        self.shares: list[float] = []
        self._points = SortedPoints(1)
        self._computed_at = 0

    @abstractmethod
    def ends(self, peaks: Column, significance: Column) -> Sequence[int]:
        """The indices of the largest point in each bucket, rising; the last is the last point.

        The `peaks` are distinct and rise.
        """

    def predict(self, task: TaskInfo, largest: float) -> float:
        return self._choose(task, 0, 0) if self.values else self.start

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float:
        larger = bisect_right(self.values, failed[-1])
        if larger < len(self.values):
            return self._choose(task, larger, len(failed))
        return next_power_of_two(failed[-1], self.start)

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        self._points.add(peak, self.tasks + 1)
        self.tasks += 1
        # A schedule in terms of what was learned alone, so that proposing changes nothing.
        if self.tasks >= max(LEAST_TASKS, self._computed_at + self.tasks / EXACT_TASKS):
            self._compute()

    def why(self, task: TaskInfo, amount: float) -> str:
        if not self.values:
            return f"{self.tasks} of {LEAST_TASKS} tasks seen"
        number = bisect_right(self.values, amount)
        return f"bucket {number} of {len(self.values)} over {self.tasks} tasks"

    def _choose(self, task: TaskInfo, lowest: int, failures: int) -> float:
        """The value of one of the buckets from number `lowest` on."""
        if self.deterministic or lowest == len(self.values) - 1:
            return self.values[lowest]
        draw = random.Random(f"{self.seed}/{task.category}/{task.task_id}/{failures}")
        return draw.choices(self.values[lowest:], self.shares[lowest:])[0]

    def _compute(self) -> None:
        import numpy as np

        peaks, significance = self._points.columns()
        ends = self.ends(peaks, significance)
        below = np.cumsum(significance)
        self.values = peaks[ends].tolist()
        self.shares = (np.diff(below[ends], prepend=0.0) / below[-1]).tolist()
        self._computed_at = self.tasks


def next_power_of_two(amount: float, start: float) -> float:
    """The least power of two times `start` that is above `amount`; fractions count too.

    >>> next_power_of_two(3000.0, 1000.0), next_power_of_two(300.0, 1000.0)
    (4000.0, 500.0)
    """
    if amount <= 0:
        return start
    return start * 2.0 ** (math.floor(math.log2(amount / start)) + 1)
