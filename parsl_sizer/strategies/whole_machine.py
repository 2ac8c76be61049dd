"""Whole machine: every task gets the largest node (seed 000, V.A.1)."""

from __future__ import annotations

from parsl_sizer.model import TaskInfo

from .base import Family, Predictor, Setting
from .per_kind import PerKind


class WholeMachine(Predictor):
    """The largest node, always.

    >>> WholeMachine().predict(TaskInfo(1, "align"), 64e9)
    64000000000.0

    T. S. Phung et al., "Not All Tasks Are Created Equal", WORKS 2021, section V.A.
    """

    def predict(self, task: TaskInfo, largest: float) -> float:
        return largest

    def why(self, task: TaskInfo, amount: float) -> str:
        return "the whole machine"


def build(setting: Setting) -> Family:
    """The largest node for every task."""
    return lambda category: PerKind.of(setting.kinds, lambda kind: WholeMachine())
