"""What earlier runs tell of a category, taught before its first task is sized.

To look it up takes I/O: the driver does it, and says so when it is here. Until then the tasks
of the category wait. Those behind them wait for `HOLDS_UP_S` at most: tasks may wait for each
other, so that one that has overtaken another could have its worker for ever, and an archive
mostly answers sooner; but one that does not must not hold up what it has nothing to say of.
"""

from __future__ import annotations

from collections.abc import Sequence

from parsl_sizer.model import TaskInfo
from parsl_sizer.placement import Gate, Policy

from .categories import Categories
from .messages import Load, Loaded

HOLDS_UP_S = 0.2
"""The time for which tasks of a category that is being loaded hold back the tasks behind them."""


class Past:
    """Has the past of each category loaded once; never, if there `is_none`."""

    def __init__(
        self,
        categories: Categories,
        gate: Gate | None,
        policy: Policy | None,
        *,
        is_none: bool,
    ) -> None:
        self._categories = categories
        self._gate = gate
        self._policy = policy
        self._is_none = is_none
        self._loaded: set[str] = set()
        self._asked_at: dict[str, float] = {}  # of categories that are being loaded

    def meet(self, task: TaskInfo, now: float) -> Sequence[Load]:
        """Return what is to be loaded before this task, which is about to wait, is sized."""
        category = task.category
        if self._is_none or category in self._loaded or category in self._asked_at:
            return ()
        self._asked_at[category] = now
        return (Load(task),)

    def is_loading(self, category: str) -> bool:
        """Return whether tasks of this category wait for what earlier runs know of it."""
        return category in self._asked_at

    def holds_up(self, category: str, now: float) -> bool:
        """Return whether the tasks behind one of this category, which is loading, wait with it."""
        return now - self._asked_at[category] < HOLDS_UP_S

    def teach(self, loaded: Loaded) -> bool:
        """Teach what has come, asked for or not; False if it came before."""
        category = loaded.category
        if self._is_none or category in self._loaded:
            return False
        self._loaded.add(category)
        self._asked_at.pop(category, None)
        earlier = self._categories.recall(category, loaded.outcomes)
        if self._policy is not None:
            for outcome in earlier:
                self._policy.learn(outcome)
        if self._gate is not None and earlier and self._gate.is_new(category):
            self._gate.open(category)
        return True
