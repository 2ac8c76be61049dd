"""Every category's strategy, asked and taught in one place.

A task is sized by the strategy of its category; an outcome goes back to the same
one, at once or, for replays, `lag` tasks later. Whatever a strategy does wrong
ends here: the proposal is checked, mended and, if need be, replaced.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence

from parsl_sizer.model import Kind, Outcome, Resources, TaskInfo
from parsl_sizer.strategies import Family, Proposal, Strategy

MAX_ATTEMPTS = 40
"""After so many failed attempts the next one is the largest node. Papers' strategies
that take buckets in order need up to 30; ours stay below 12."""


class Categories:
    """The strategies of a run, by category.

    `lag` holds every lesson back until so many further tasks were first sized: what
    a sequential replay needs to stand for tasks in flight. `warn` is called once per
    category and fault of its strategy.
    """

    def __init__(
        self, family: Family, *, lag: int = 0, warn: Callable[[str], None] | None = None
    ) -> None:
        if lag < 0:
            raise ValueError(f"lag must be 0 or more, not {lag}")
        self._family = family
        self._lag = lag
        self._warn = warn
        self._strategies: dict[str, Strategy] = {}
        self._held: deque[tuple[int, Outcome]] = deque()
        self._sized = 0
        self._said: set[tuple[str, str]] = set()

    def propose(
        self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources
    ) -> Proposal | None:
        """The allocation for the task's next attempt; None if none larger exists."""
        if failures:
            return self._larger(task, failures, largest)
        proposal = self._ask(task, failures, largest)
        amounts = proposal.amounts
        for kind, amount in amounts.items():
            if not 0 <= amount <= largest[kind]:
                proposal = self._mended(task, proposal, largest)
                break
        self._sized += 1
        if self._held:
            self._release()
        return proposal

    def learn(self, outcome: Outcome) -> None:
        """Teach the outcome to its category's strategy, `lag` tasks from now."""
        if self._lag:
            self._held.append((self._sized + self._lag, outcome))
        else:
            self._teach(outcome)

    def _release(self) -> None:
        while self._held and self._held[0][0] <= self._sized:
            self._teach(self._held.popleft()[1])

    def _teach(self, outcome: Outcome) -> None:
        category = outcome.attempt.task.category
        try:
            self._strategy(category).learn(outcome)
        except Exception as error:
            self._say(category, f"could not learn ({error!r}), so this outcome is left out")

    def _strategy(self, category: str) -> Strategy:
        strategy = self._strategies.get(category)
        if strategy is None:
            strategy = self._strategies[category] = self._family(category)
        return strategy

    def _ask(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        try:
            return self._strategy(task.category).propose(task, failures, largest)
        except Exception as error:
            self._say(
                task.category,
                f"raised {error!r}, so the user's request or the largest node is used instead",
            )
            return _fallback(task, failures, largest)

    def _mended(self, task: TaskInfo, proposal: Proposal, largest: Resources) -> Proposal:
        """The proposal with every amount a number between 0 and the largest node."""
        amounts = dict(proposal.amounts)
        for kind, amount in amounts.items():
            if not 0 <= amount <= largest[kind]:
                if not amount > largest[kind] or math.isinf(amount):
                    self._say(
                        task.category,
                        f"proposed {amount!r} for {kind.value}, so the "
                        "largest node is used instead",
                    )
                amounts[kind] = largest[kind]
        return Proposal(amounts, proposal.why)

    def _larger(
        self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources
    ) -> Proposal | None:
        last = failures[-1]
        held = last.attempt.allocation
        if any(held.get(kind, 0.0) >= largest[kind] for kind in last.exhausted):
            return None
        proposal = self._mended(task, self._ask(task, failures, largest), largest)
        amounts = dict(proposal.amounts)
        for kind in last.exhausted:
            amount = amounts.get(kind, math.nan)
            if not amount > held[kind]:
                self._say(
                    task.category,
                    f"proposed {amount!r} for {kind.value} after "
                    f"{held[kind]!r} ran out, so the largest node is used instead",
                )
                amounts[kind] = largest[kind]
            if len(failures) >= MAX_ATTEMPTS - 1:
                amounts[kind] = largest[kind]
        return Proposal(amounts, proposal.why)

    def _say(self, category: str, fault: str) -> None:
        key = (category, fault.split("(")[0].split(" ")[0])
        if self._warn is not None and key not in self._said and len(self._said) < 1000:
            self._said.add(key)
            self._warn(f"The strategy of category {category[:80]!r} {fault}.")


def _fallback(task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
    """What a task gets whose strategy is broken: the request, then the largest node."""
    if failures:
        held = dict(failures[-1].attempt.allocation)
        held.update({kind: largest[kind] for kind in failures[-1].exhausted})
        return Proposal(held, "the strategy failed: the largest node")
    amounts = {
        kind: min(task.requested.get(kind, largest[kind]), largest[kind])
        for kind in (Kind.CORES, Kind.MEMORY, Kind.DISK)
    }
    return Proposal(amounts, "the strategy failed: the user's request or the largest node")
