"""What earlier runs tell of a category, taught before its first task is sized.

To look it up takes I/O: the driver does it, and says so when it is here. Until then the tasks
of the category wait, and so do those behind them: tasks may wait for each other, so that one
that has overtaken another could have its worker for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from parsl_sizer.model import TaskInfo
from parsl_sizer.placement import Gate, Policy

from .categories import Categories
from .messages import Load, Loaded


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
        self._is_loaded: dict[str, bool] = {}

    def meet(self, task: TaskInfo) -> Sequence[Load]:
        """What is to be loaded before this task, which is about to wait, is sized."""
        if self._is_none or task.category in self._is_loaded:
            return ()
        self._is_loaded[task.category] = False
        return (Load(task),)

    def is_loading(self, category: str) -> bool:
        """Whether tasks of this category wait for what earlier runs know of it."""
        return not self._is_loaded.get(category, True)

    def teach(self, loaded: Loaded) -> bool:
        """Teach what has come, asked for or not; False if it came before."""
        category = loaded.category
        if self._is_none or self._is_loaded.get(category):
            return False
        self._is_loaded[category] = True
        earlier = self._categories.recall(category, loaded.outcomes)
        if self._policy is not None:
            for outcome in earlier:
                self._policy.learn(outcome)
        if self._gate is not None and earlier and self._gate.is_new(category):
            self._gate.open(category)
        return True
