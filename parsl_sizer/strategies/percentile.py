"""Percentile: as much as p percent of the finished tasks needed."""

from __future__ import annotations

from collections.abc import Sequence

from parsl_sizer.model import Kind, TaskInfo, UnknownStrategy

from .base import Family, Predictor, Setting
from .per_kind import PerKind
from .sketches import SortedPoints


class Percentile(Predictor):
    """The p-th percentile of the peaks seen, doubled after each failure.

    It is ready after one task; before that the user's estimate is used, and if that
    fails and a larger prediction has become possible meanwhile, the prediction.
    Between two peaks the percentile is interpolated linearly.

    >>> strategy, task = Percentile(Kind.MEMORY, p=50), TaskInfo(1, "align")
    >>> for peak in 1e9, 2e9, 4e9, 8e9:
    ...     strategy.observe(task, peak, 60.0)
    >>> strategy.predict(task, 64e9), strategy.grow(task, [3e9], 64e9)
    (3000000000.0, 6000000000.0)

    C. Witt, D. Wagner and U. Leser, "Feedback-Based Resource Allocation for Batch
    Scheduling of Scientific Workflows", HPCS 2019, sections III.B and IV.A.
    """

    def __init__(self, kind: Kind, *, p: float = 95.0) -> None:
        self.kind = kind
        self.p = p
        self.tasks = 0
        self._points = SortedPoints(1)

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        return self._percentile() if self.tasks else None

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float:
        was_estimate = len(failed) == 1 and failed[0] == task.requested.get(self.kind)
        if was_estimate and self.tasks:
            prediction = self._percentile()
            if prediction > failed[0]:
                return prediction
        return 2.0 * failed[-1]

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        self._points.add(peak, 1.0)
        self.tasks += 1

    def why(self, task: TaskInfo, amount: float) -> str:
        return f"percentile {self.p:g} of {self.tasks} seen"

    def _percentile(self) -> float:
        """Linear between the two peaks nearest to rank p (n - 1), as numpy has it."""
        import numpy as np

        peaks, (counts,) = self._points.values, self._points.sums
        rank = self.p / 100.0 * (self.tasks - 1)
        at = np.searchsorted(np.cumsum(counts), [int(rank), int(rank) + 1], side="right")
        lower: float = peaks[at[0]]
        upper: float = peaks[min(at[1], len(peaks) - 1)]
        return lower + (rank - int(rank)) * (upper - lower)


def build(setting: Setting, *, p: float = 95.0) -> Family:
    """The p-th percentile of the peaks seen, then doubling; the user's estimate first."""
    if not isinstance(p, (int, float)) or not 0 <= p <= 100:
        raise UnknownStrategy(f"percentile: p must be a number from 0 to 100, not {p!r}.")
    return lambda category: PerKind.of(setting.kinds, lambda kind: Percentile(kind, p=p))
