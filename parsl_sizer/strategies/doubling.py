"""Double allocation: start small, double after every failure (seed 000, V.A.2)."""

from __future__ import annotations

from collections.abc import Sequence

from parsl_sizer.model import TaskInfo, UnknownStrategy

from .base import Family, Predictor, Setting
from .per_kind import PerKind

INITIAL = 1 / 8
"""The share of the largest node that a task gets first, as in the paper's evaluation."""


class Doubling(Predictor):
    """A fixed share of the largest node, twice as much after each failure.

    >>> doubling, task = Doubling(), TaskInfo(1, "align")
    >>> doubling.predict(task, 64e9)
    8000000000.0
    >>> doubling.grow(task, [8e9], 64e9)
    16000000000.0

    T. S. Phung et al., "Not All Tasks Are Created Equal", WORKS 2021, section V.A.
    """

    def __init__(self, initial: float = INITIAL) -> None:
        self.initial = initial

    def predict(self, task: TaskInfo, largest: float) -> float:
        return self.initial * largest

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float:
        return 2 * failed[-1]

    def why(self, task: TaskInfo, amount: float) -> str:
        return f"{self.initial:.3g} of the largest node"


def build(setting: Setting, *, initial: float = INITIAL, together: bool = False) -> Family:
    """An eighth of the largest node first, doubled after every failure."""
    if not isinstance(initial, (int, float)) or not 0 < initial <= 1:
        raise UnknownStrategy(f"initial must be a share above 0 and up to 1, not {initial!r}.")
    return lambda category: PerKind.of(
        setting.kinds, lambda kind: Doubling(initial), together=together
    )
