"""What a strategy is, and what it may rely on.

A *strategy* decides the allocations of one category of tasks. A *family* makes
one strategy per category and holds what the categories of a run share. Most
authors write neither but a :class:`Predictor`, one number for one kind, and let
:class:`~parsl_sizer.strategies.per_kind.PerKind` lift it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from parsl_sizer.model import Amounts, Kind, Outcome, Resources, TaskInfo


@dataclass(frozen=True, slots=True)
class Proposal:
    """An allocation and the evidence for it: the `str` of `why` is one sentence.

    It is written out only when somebody reads it, so it may hold no mutable state.
    """

    amounts: Amounts
    why: object


class Strategy(Protocol):
    """How large? One instance per category.

    Laws (``parsl_sizer.testing.check_strategy`` runs them): `propose` never
    mutates and works before any `learn`; after a failure the proposal is larger in
    the kinds that ran out (up to the largest node) and unchanged in the others; it
    is never above the largest node; the same outcomes learned in the same order
    give the same proposals; memory is bounded however much is learned.

    It may also have ``recall(outcomes)``, to learn those of earlier runs all at once and
    faster than one by one; see :func:`recall`.
    """

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        """The allocation for the next attempt, `failures` being the earlier ones."""
        ...

    def learn(self, outcome: Outcome) -> None:
        """Take an outcome in. The only method that mutates."""
        ...


def recall(strategy: Strategy, outcomes: Sequence[Outcome]) -> None:
    """Teach outcomes of earlier runs, at once if the strategy can."""
    at_once = getattr(strategy, "recall", None)
    if at_once is not None:
        at_once(outcomes)
        return
    for outcome in outcomes:
        strategy.learn(outcome)


Family = Callable[[str], Strategy]
"""Gives the strategy of a category; called once per category."""


class Predictor(ABC):
    """One number for one kind of resource in one category.

    Amounts are in the kind's own unit (bytes or counts). None means "I don't know
    yet": the user's request is then taken, else the largest node.
    """

    @abstractmethod
    def predict(self, task: TaskInfo, largest: float) -> float | None:
        """The first allocation for the task. Must not mutate."""

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float | None:
        """The next allocation after those that `failed`, in order. Must not mutate.

        Whatever is not larger than the last failed one is read as `largest`.
        """
        return None

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:  # noqa: B027
        """A task of the category finished with this peak."""

    def observe_failure(  # noqa: B027
        self, task: TaskInfo, allocated: float, wall_s: float
    ) -> None:
        """An attempt ran out of this kind after `wall_s`: the peak is above `allocated`."""

    def why(self, task: TaskInfo, amount: float) -> object:
        """The evidence for `amount`: whatever has the few words as its `str`."""
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class Hindsight:
    """What only a replay can know: the whole trace beforehand."""

    peak: Callable[[TaskInfo], Amounts]
    maximum: Mapping[Kind, float]
    categories: int


@dataclass(frozen=True, slots=True)
class Setting:
    """What every strategy is made for.

    `objective` is ``"waste"`` (allocation x time, as in the papers) or
    ``"throughput"`` (the dominant share of the node).
    """

    kinds: tuple[Kind, ...] = (Kind.CORES, Kind.MEMORY, Kind.DISK)
    objective: str = "throughput"
    seed: int = 0
    hindsight: Hindsight | None = None


def in_whole_cores(kind: Kind, amount: float) -> float:
    """The amount; of cores a whole number, at least one: a tenth is not worth another core.

    >>> in_whole_cores(Kind.CORES, 2.05), in_whole_cores(Kind.CORES, 0.3)
    (2, 1)
    """
    return max(1, math.ceil(amount - SLIGHT)) if kind is Kind.CORES else amount


SLIGHT = 0.1
