"""Oracle: exactly what each task will need, for the limit."""

from __future__ import annotations

from parsl_sizer.model import Kind, TaskInfo, UnknownStrategy

from .base import Family, Hindsight, Predictor, Setting
from .per_kind import PerKind


class Oracle(Predictor):
    """The task's own peak, which only a replay can know.

    >>> hindsight = Hindsight(lambda task: {Kind.MEMORY: 3e9}, {Kind.MEMORY: 3e9}, 1)
    >>> Oracle(Kind.MEMORY, hindsight).predict(TaskInfo(1, "align"), 64e9)
    3000000000.0

    The limit to which B. Tovar et al., "A Job Sizing Strategy for High-Throughput
    Scientific Workflows", IEEE TPDS 2018, Fig. 12, compare.
    """

    def __init__(self, kind: Kind, hindsight: Hindsight) -> None:
        self.kind = kind
        self.hindsight = hindsight

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        return self.hindsight.peak(task).get(self.kind)

    def why(self, task: TaskInfo, amount: float) -> str:
        return "its peak, known beforehand"


def build(setting: Setting) -> Family:
    """Exactly what each task will need: the limit, for replays only."""
    hindsight = setting.hindsight
    if hindsight is None:
        raise UnknownStrategy(
            "Strategy 'oracle' knows every task's peak beforehand, which only a replay of a "
            "trace can offer; choose another one, such as 'auto', for a live run."
        )
    return lambda category: PerKind.of(setting.kinds, lambda kind: Oracle(kind, hindsight))
