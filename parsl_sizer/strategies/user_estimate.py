"""User estimate, then doubling: what seed 003 compares its predictors with."""

from __future__ import annotations

from collections.abc import Sequence

from parsl_sizer.model import TaskInfo

from .base import Family, Predictor, Setting
from .per_kind import PerKind


class UserEstimate(Predictor):
    """What the user requested for the task, twice as much after each failure.

    A task without a request gets the largest node. Nothing is learned.

    >>> estimate, task = UserEstimate(), TaskInfo(1, "align")
    >>> estimate.predict(task, 64e9) is None
    True
    >>> estimate.grow(task, [4e9], 64e9)
    8000000000.0

    C. Witt, D. Wagner and U. Leser, "Feedback-Based Resource Allocation for Batch
    Scheduling of Scientific Workflows", HPCS 2019, sections III.B and V.C.
    """

    def predict(self, task: TaskInfo, largest: float) -> None:
        return None

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float:
        return 2 * failed[-1]


def build(setting: Setting) -> Family:
    """What the user requested for the task, doubled after every failure."""
    return lambda category: PerKind.of(setting.kinds, lambda kind: UserEstimate())
