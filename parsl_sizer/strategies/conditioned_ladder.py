"""The conditioned ladder: a curve of peak on input size, and a ladder around it.

See :class:`~parsl_sizer.strategies.like_tasks.LikeTasks`. A straight line in logarithms
over all tasks was tried first: real tools have plateaus and thresholds (an index
that is loaded whole, a buffer that fills up), and a local line follows them.
"""

from __future__ import annotations

import math

from parsl_sizer.model import Kind, TaskInfo

from .base import Family, Setting
from .cold_start import Pool
from .like_tasks import LikeTasks
from .optimal_ladder import OptimalLadder, ladders
from .views import RETRY_PRICE, Found

WIDE = 4.0
"""Neighbours that count, in multiples of n^0.6, where no narrower view is beside it."""


def on_log_scale(value: float | None) -> float:
    """Any number on a scale where factors are steps; not a number if it is not known.

    >>> round(on_log_scale(1e9), 2), on_log_scale(-1e9) == -on_log_scale(1e9)
    (20.72, True)
    """
    if value is None or not math.isfinite(value):
        return math.nan
    if value >= 0.0:
        return math.log1p(value)
    return -math.log1p(-value)


class ConditionedLadder(OptimalLadder):
    """The cheapest ladder around what a feature of the task predicts.

    >>> ladder = ConditionedLadder(Kind.MEMORY, Pool(Kind.MEMORY))
    >>> for number in range(1, 100):
    ...     task = TaskInfo(number, "sort", features={"input_size": number * 1e8})
    ...     ladder.observe(task, number * 3e8, 60.0)
    >>> task = TaskInfo(100, "sort", features={"input_size": 2e9})
    >>> 6.0 <= ladder.predict(task, largest=64e9) / 1e9 <= 6.3
    True
    """

    def __init__(
        self, kind: Kind, pool: Pool, *, feature: str = "input_size", price: float = RETRY_PRICE
    ) -> None:
        super().__init__(kind, pool, price=price)
        self._feature = feature
        self._like = LikeTasks(0, WIDE, price)

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        self._take(task, peak, wall_s, (on_log_scale(task.features.get(self._feature)),))
        if self._evidence.tasks >= self._like.due_at and not self.is_hurried:
            self._like.refit(self._evidence)

    def fit(self) -> None:
        super().fit()
        self._like.refit(self._evidence)

    def _found(self, task: TaskInfo) -> tuple[str, Found]:
        found = self._like.ladder((on_log_scale(task.features.get(self._feature)),))
        if found is None:
            return super()._found(task)
        return f"tasks of like {self._feature}", found


def build(setting: Setting, feature: str = "input_size", price: float = RETRY_PRICE) -> Family:
    """The cheapest ladder around what the input size predicts."""
    return ladders(
        setting,
        price,
        lambda kind, pool: ConditionedLadder(kind, pool, feature=feature, price=price),
    )
