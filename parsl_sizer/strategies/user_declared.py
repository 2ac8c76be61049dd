"""User declaration: one amount for every task, the machine after a failure (seed 000, V.B.1)."""

from __future__ import annotations

from parsl_sizer.model import Kind, TaskInfo

from .base import Family, Predictor, Setting
from .per_kind import PerKind

ERROR = 0.05
"""By how much the paper's users overestimate the largest task."""


class UserDeclared(Predictor):
    """What the user declared for all tasks, else what was requested for this one.

    Nothing is learned; a task that runs out of it gets the largest node.

    >>> UserDeclared(2e9).predict(TaskInfo(1, "align"), 64e9)
    2000000000.0
    >>> UserDeclared().predict(TaskInfo(1, "align"), 64e9) is None
    True

    T. S. Phung et al., "Not All Tasks Are Created Equal", WORKS 2021, section V.B.
    """

    def __init__(self, declared: float | None = None) -> None:
        self.declared = declared

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        return self.declared

    def why(self, task: TaskInfo, amount: float) -> str:
        return "the user's declaration for all tasks"


def build(setting: Setting) -> Family:
    """What the user declared for all tasks (in a replay the maximum + 5 %), then the largest node.

    Where the trace is known beforehand the declaration is the largest memory of any
    task plus 5 %; the paper declares memory only. Elsewhere, and for the other
    kinds, it is the request that comes with the task, or the largest node.
    """
    declared: dict[Kind, float] = {}
    if setting.hindsight and Kind.MEMORY in setting.hindsight.maximum:
        declared[Kind.MEMORY] = (1 + ERROR) * setting.hindsight.maximum[Kind.MEMORY]
    return lambda category: PerKind.of(setting.kinds, lambda kind: UserDeclared(declared.get(kind)))
