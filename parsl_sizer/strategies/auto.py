"""auto: the ladder that would have cost least, chosen anew after every task.

When a task ends, its peak and time are known, and with them what *every* ladder
would have cost for it, run or not. So several ladders are kept side by side (all
tasks alike, recent tasks first, tasks of like features), each with its discounted
cost, and the best is followed.
"""

from __future__ import annotations

import math

from parsl_sizer.model import Kind, TaskInfo

from .base import Family, Setting
from .cold_start import Pool
from .conditioned_ladder import on_log_scale
from .evidence import TIME_FLOOR
from .like_tasks import LikeTasks
from .optimal_ladder import OptimalLadder, ladders
from .views import (
    ALWAYS_REFIT,
    RETRY_PRICE,
    VERY_MANY,
    Found,
    RecentTasks,
    View,
)

DISCOUNT = 0.99
"""Per task: what happened 70 tasks ago counts half."""
CLEARLY_BETTER = 0.9
"""The plain ladder is left only for one that wasted less than this share of it..."""
SURE = 0.5
"""...and by more than so many standard errors of the difference."""
GIANT = 10.0
"""A task weighs at most as if it took so many mean times: one giant does not decide."""
MANY = 2000
"""From so many tasks on every third is judged by, from `VERY_MANY` every eighth: a sample
is enough."""
HALF_LIVES = (200.0, 50.0)
REACHES = (1.0, 4.0)
"""Neighbours that count, in multiples of n^0.6: one narrow view and one wide."""
MOST_FEATURES = 3
REQUESTED = ""
"""Stands for the user's request among the names of features."""


class Candidate:
    """A view of the evidence, with what it would have cost."""

    __slots__ = ("loss", "name", "squares", "view")

    def __init__(self, name: str, view: View, loss: float = 0.0) -> None:
        self.name = name
        self.view = view
        self.loss = loss
        self.squares = 0.0


class Auto(OptimalLadder):
    """The best of several ladders for one kind in one category.

    >>> auto = Auto(Kind.MEMORY, Pool(Kind.MEMORY))
    >>> for number in range(250):
    ...     task = TaskInfo(number, "sort", features={"input_size": (1 + number % 50) * 1e8})
    ...     auto.observe(task, 1e9 + number % 50 * 3e8, 60.0)
    >>> amount, why = auto.first(TaskInfo(250, "sort", features={"input_size": 2.1e9}), 64e9)
    >>> 7.0 <= amount / 1e9 <= 7.2, why.basis
    (True, 'tasks of like input_size')
    """

    def __init__(self, kind: Kind, pool: Pool, *, price: float = RETRY_PRICE) -> None:
        super().__init__(kind, pool, price=price)
        self._price = price
        self._loss = 0.0
        self._others = [
            Candidate(
                f"tasks, recent ones first (half-life {half_life:.0f})",
                RecentTasks(half_life, price),
            )
            for half_life in HALF_LIVES
        ]
        self._due_at = 0.0
        self._choice: Candidate | None = None
        self._names: tuple[str, ...] = ()

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        evidence = self._evidence
        features = self._features(task) if self._names else ()
        # With one bin all ladders are the same.
        if len(evidence.bins) > 1 and evidence.tasks % _stride(evidence.tasks) == 0:
            self._judge(features, peak, wall_s)
        if len(self._names) < MOST_FEATURES and self._has_new(task):
            self._adopt(task)
            features = self._features(task)
        self._take(task, peak, wall_s, features)
        if evidence.tasks >= self._due_at and not self.is_hurried:
            self._refit_others(1 if evidence.tasks > ALWAYS_REFIT else None)

    def fit(self) -> None:
        super().fit()
        self._refit_others(None)

    def _found(self, task: TaskInfo) -> tuple[str, Found]:
        if self._choice is not None:
            found = self._choice.view.ladder(self._features(task))
            if found is not None:
                return self._choice.name, found
        return super()._found(task)

    def _judge(self, features: tuple[float, ...], peak: float, wall_s: float) -> None:
        """Charge every candidate what the task would have cost with it, and choose."""
        fitted = self._all.ladder(())
        if fitted is None:  # in a hurry
            return
        theta, known, mean = self._evidence.theta, self._evidence.known, self._evidence.mean_s
        weight = min(wall_s, GIANT * mean) + TIME_FLOOR * mean
        plain = fitted[0].cost(peak, theta, known)
        self._loss = self._loss * DISCOUNT + (plain - peak) * weight
        choice, lowest = None, self._loss * CLEARLY_BETTER
        for candidate in self._others:
            found = candidate.view.ladder(features)
            cost = plain
            candidate.squares *= DISCOUNT**2
            if found is not None:
                ladder, scale = found
                cost = ladder.cost(peak / scale, theta, known) * scale
                difference = (cost - plain) * weight
                candidate.squares += difference * difference
            candidate.loss = candidate.loss * DISCOUNT + (cost - peak) * weight
            if candidate.loss < lowest and (
                self._loss - candidate.loss > SURE * math.sqrt(candidate.squares)
            ):
                choice, lowest = candidate, candidate.loss
        self._choice = choice

    def _refit_others(self, most: int | None) -> None:
        """Refit `most` of the views that are due: not all at once, or a task would wait long."""
        evidence = self._evidence
        if len(evidence.bins) == 1:
            return  # all ladders are the same
        waiting = sorted(self._others, key=lambda candidate: candidate.view.due_at)
        for candidate in waiting[:most]:
            if evidence.tasks >= candidate.view.due_at:
                candidate.view.refit(evidence)
        self._due_at = min([candidate.view.due_at for candidate in self._others])

    def _has_new(self, task: TaskInfo) -> bool:
        names = self._names
        for name in task.features:
            if name not in names:
                return True
        return REQUESTED not in names and self._kind in task.requested

    def _adopt(self, task: TaskInfo) -> None:
        """Start to look at features that the task has and no task before it had."""
        offered = sorted(task.features, key=lambda name: (name != "input_size", name))
        if self._kind in task.requested:
            offered.append(REQUESTED)
        for name in offered:
            if name not in self._names and len(self._names) < MOST_FEATURES:
                basis = f"tasks of like {name or 'requests'}"
                for reach in REACHES:
                    view = LikeTasks(len(self._names), reach, self._price)
                    self._others.append(Candidate(basis, view, self._loss))
                self._names = (*self._names, name)
                self._due_at = 0.0

    def _features(self, task: TaskInfo) -> tuple[float, ...]:
        return tuple(
            [
                on_log_scale(task.features.get(name) if name else task.requested.get(self._kind))
                for name in self._names
            ]
        )


def build(setting: Setting, price: float = RETRY_PRICE) -> Family:
    """The cheapest of several learned ladders, chosen by what each would have cost; the default."""
    return ladders(setting, price, lambda kind, pool: Auto(kind, pool, price=price))


def _stride(tasks: int) -> int:
    return 1 if tasks < MANY else 3 if tasks < VERY_MANY else 8
