"""Wrappers that change what any strategy proposes: a margin, a floor, a cap, a warm-up.

They keep the laws of a :class:`~parsl_sizer.strategies.base.Strategy`, so they can be
put around each other and around strategies of third parties. The idea of wrapping
instead of options inside each estimator is the Kubernetes vertical pod autoscaler's.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from parsl_sizer.model import Amounts, Ending, Kind, Outcome, Resources, TaskInfo

from .base import Family, Proposal, Strategy, in_whole_cores, recall


class Amended(NamedTuple):
    """The reason of the strategy inside, and what was done to its proposal."""

    why: object
    how: str

    def __str__(self) -> str:
        return f"{self.why}; {self.how}"


class Modifier(ABC):
    """A strategy that changes what another proposes, and lets it learn as before.

    What the inner strategy left as the last attempt had it stays so: a retry changes
    only the kinds that the inner strategy changes.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    @abstractmethod
    def amended(self, kind: Kind, amount: float, held: float) -> float:
        """What to take for `amount`; `held`, the last attempt's, is 0 before the first."""

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        proposal = self.strategy.propose(task, failures, largest)
        before = failures[-1].attempt.allocation if failures else {}
        amounts = {
            kind: amount
            if amount == before.get(kind) or not 0 <= amount < math.inf  # others mend nonsense
            else min(self.amended(kind, amount, before.get(kind, 0.0)), largest[kind])
            for kind, amount in proposal.amounts.items()
        }
        if amounts == proposal.amounts:
            return proposal
        return Proposal(amounts, Amended(proposal.why, str(self)))

    def learn(self, outcome: Outcome) -> None:
        self.strategy.learn(outcome)

    def recall(self, outcomes: Sequence[Outcome]) -> None:
        recall(self.strategy, outcomes)


class Margin(Modifier):
    """A share more than the strategy asks for.

    >>> from parsl_sizer.strategies.user_declared import UserDeclared
    >>> from parsl_sizer.strategies import PerKind
    >>> strategy = Margin(PerKind({Kind.MEMORY: UserDeclared(2e9)}), 0.15)
    >>> strategy.propose(TaskInfo(1, "align"), [], Resources(memory=64e9)).amounts
    {<Kind.MEMORY: 'memory'>: 2300000000.0}
    """

    def __init__(self, strategy: Strategy, share: float) -> None:
        super().__init__(strategy)
        if not 0 <= share < math.inf:
            raise ValueError(f"A margin must be a share of 0 or more, such as 0.15, not {share!r}.")
        self.share = share

    def amended(self, kind: Kind, amount: float, held: float) -> float:
        return amount * (1 + self.share)

    def __str__(self) -> str:
        return f"{self.share:.0%} added"


class Floor(Modifier):
    """Never less than these amounts.

    >>> from parsl_sizer.strategies.user_declared import UserDeclared
    >>> from parsl_sizer.strategies import PerKind
    >>> strategy = Floor(PerKind({Kind.MEMORY: UserDeclared(5e6)}), {Kind.MEMORY: 100e6})
    >>> strategy.propose(TaskInfo(1, "align"), [], Resources(memory=64e9)).amounts
    {<Kind.MEMORY: 'memory'>: 100000000.0}
    """

    def __init__(self, strategy: Strategy, amounts: Amounts) -> None:
        super().__init__(strategy)
        self.amounts = _checked("floor", amounts)

    def amended(self, kind: Kind, amount: float, held: float) -> float:
        return max(amount, self.amounts.get(kind, 0.0))

    def __str__(self) -> str:
        return "raised to the floor"


class RoundedUp(Modifier):
    """Whole cores, as many as a task has used at most, and never less than these amounts.

    A task is never stopped for its use of cores, so more of them than were ever used gain nothing:
    a margin above one core would take a second one from other tasks. Below some tens of MB what a
    task holds is its interpreter's whim: who allocates less is retried for nothing.

    >>> from parsl_sizer.strategies.user_declared import UserDeclared
    >>> from parsl_sizer.strategies import PerKind
    >>> strategy = RoundedUp(PerKind({Kind.CORES: UserDeclared(2.3)}), {})
    >>> strategy.propose(TaskInfo(1, "align"), [], Resources(cores=16)).amounts
    {<Kind.CORES: 'cores'>: 3}
    """

    def __init__(self, strategy: Strategy, least: Amounts) -> None:
        super().__init__(strategy)
        self.least = _checked("least amount", least)
        self._most_cores = 0.0

    def learn(self, outcome: Outcome) -> None:
        self._note_cores(outcome)
        super().learn(outcome)

    def recall(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            self._note_cores(outcome)
        super().recall(outcomes)

    def _note_cores(self, outcome: Outcome) -> None:
        used = outcome.usage.peak.get(Kind.CORES, 0.0)
        self._most_cores = max(self._most_cores, used)

    def amended(self, kind: Kind, amount: float, held: float) -> float:
        if kind is Kind.CORES and self._most_cores and not held:
            amount = min(amount, self._most_cores)
        return max(in_whole_cores(kind, amount), self.least.get(kind, 0.0))

    def __str__(self) -> str:
        return "rounded up"


class Cap(Modifier):
    """Not more than these amounts, until a task has run out of them.

    A task that ran out of the cap gets what the strategy asks for: refusing it would
    lose the task.

    >>> from parsl_sizer.strategies.user_declared import UserDeclared
    >>> from parsl_sizer.strategies import PerKind
    >>> strategy = Cap(PerKind({Kind.MEMORY: UserDeclared(9e9)}), {Kind.MEMORY: 4e9})
    >>> strategy.propose(TaskInfo(1, "align"), [], Resources(memory=64e9)).amounts
    {<Kind.MEMORY: 'memory'>: 4000000000.0}
    """

    def __init__(self, strategy: Strategy, amounts: Amounts) -> None:
        super().__init__(strategy)
        self.amounts = _checked("cap", amounts)

    def amended(self, kind: Kind, amount: float, held: float) -> float:
        cap = self.amounts.get(kind, math.inf)
        return min(amount, cap) if held < cap else amount

    def __str__(self) -> str:
        return "lowered to the cap"


class WarmUp:
    """The user's request, else the largest node, until some tasks have finished.

    A task that runs out of its request meanwhile gets what the strategy asks for.

    >>> from parsl_sizer.strategies.user_declared import UserDeclared
    >>> from parsl_sizer.strategies import PerKind
    >>> strategy = WarmUp(PerKind({Kind.MEMORY: UserDeclared(2e9)}), 3)
    >>> strategy.propose(TaskInfo(1, "align"), [], Resources(memory=64e9))
    Proposal(amounts={<Kind.MEMORY: 'memory'>: 64000000000.0}, why='warming up: 3 more tasks')
    """

    def __init__(self, strategy: Strategy, tasks: int) -> None:
        if tasks < 0:
            raise ValueError(f"A warm-up must last 0 tasks or more, not {tasks!r}.")
        self.strategy = strategy
        self.left = tasks

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        proposal = self.strategy.propose(task, failures, largest)
        if failures or not self.left:
            return proposal
        amounts = {
            kind: min(task.requested.get(kind, largest[kind]), largest[kind])
            for kind in proposal.amounts
        }
        return Proposal(amounts, f"warming up: {self.left} more tasks")

    def learn(self, outcome: Outcome) -> None:
        self._count(outcome)
        self.strategy.learn(outcome)

    def recall(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            self._count(outcome)
        recall(self.strategy, outcomes)

    def _count(self, outcome: Outcome) -> None:
        if outcome.ending is Ending.DONE:
            self.left = max(0, self.left - 1)


def modified(
    family: Family,
    *,
    margin: float = 0.0,
    floor: Amounts | None = None,
    cap: Amounts | None = None,
    warm_up: int = 0,
) -> Family:
    """The family with a margin on each strategy, then a floor, a cap and a warm-up.

    >>> from parsl_sizer.strategies import Setting
    >>> from parsl_sizer.strategies.catalog import family
    >>> doubling = family("doubling", Setting(kinds=(Kind.MEMORY,)))
    >>> strategy = modified(doubling, margin=0.05, cap={Kind.MEMORY: 8e9})("align")
    >>> str(strategy.propose(TaskInfo(1, "align"), [], Resources(memory=64e9)).why)
    'memory 8 GB: 0.125 of the largest node; 5% added; lowered to the cap'
    """

    def strategy(category: str) -> Strategy:
        wrapped = family(category)
        if margin:
            wrapped = Margin(wrapped, margin)
        if floor:
            wrapped = Floor(wrapped, floor)
        if cap:
            wrapped = Cap(wrapped, cap)
        return WarmUp(wrapped, warm_up) if warm_up else wrapped

    return strategy


def _checked(what: str, amounts: Amounts) -> dict[Kind, float]:
    for kind, amount in amounts.items():
        if not 0 <= amount < math.inf:
            raise ValueError(f"A {what} must be 0 or more, not {kind.value}={amount!r}.")
    return dict(amounts)
