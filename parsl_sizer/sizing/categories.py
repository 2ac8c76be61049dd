"""Every category's strategy, asked and taught in one place.

A task is sized by the strategy of its category; an outcome goes back to the same
one, at once or, for replays, `lag` tasks later. Whatever a strategy does wrong
ends here: the proposal is checked, mended and, if need be, replaced.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence

from parsl_sizer.model import Kind, Outcome, Resources, TaskInfo, are_possible, is_possible
from parsl_sizer.strategies import Family, Proposal, Strategy, recall

MAX_ATTEMPTS = 40
"""A task's last attempt, if it comes to that, has all of the largest node. Papers'
strategies that take buckets in order need up to 30; ours stay below 12."""

MAX_WARNINGS = 1000
"""A broken family with a category per task would otherwise fill memory with what it said."""

NUMBERS = frozenset({int, float})
"""Amounts cross to workers, which may lack the library that others are from."""

USUAL_KINDS = (Kind.CORES, Kind.MEMORY, Kind.DISK)

_INSTEAD = "the user's request or the largest node is used instead"


class Categories:
    """The strategies of a run, by category.

    `kinds` are those that every proposal must have; where they are not known, what a
    proposal leaves out is not controlled. `lag` holds every lesson back until so many
    further tasks were first sized: what a sequential replay needs to stand for tasks
    in flight. `warn` is called once per category and fault of its strategy.
    """

    def __init__(
        self,
        family: Family,
        *,
        kinds: Collection[Kind] | None = None,
        lag: int = 0,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        if lag < 0:
            raise ValueError(f"lag must be 0 or more, not {lag}")
        self._family = family
        self._demanded = frozenset(kinds or ())
        self._kinds = tuple(kinds or USUAL_KINDS)
        self._lag = lag
        self._warn = warn
        self._strategies: dict[str, Strategy] = {}
        # Checked against a dictionary a proposal takes 2 us here, against `Resources` 4 us.
        self._largest: Resources | None = None
        self._limits: dict[Kind, float] = {}
        self._held: deque[tuple[int, Outcome]] = deque()
        self._sized = 0
        self._said: set[tuple[str, str]] = set()

    def propose(
        self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources
    ) -> Proposal | None:
        """The allocation for the task's next attempt; None if none larger exists."""
        if failures:
            return self._larger(task, failures, largest)
        # Before the task is sized, not after: its retries know what its first attempt knew.
        if self._held:
            self._release()
        self._sized += 1
        return self._sound(task, failures, largest)

    def recall(self, category: str, earlier: Iterable[Outcome]) -> Sequence[Outcome]:
        """Teach what a category did in earlier runs; what was taught, as far as it can be."""
        sound = [o for o in earlier if is_possible(o.usage) and are_possible(o.attempt.allocation)]
        try:
            recall(self._strategy(category), sound)
        except Exception as error:
            self._say(category, "recall", f"could not learn all of earlier runs ({error!r:.200})")
        return sound

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
            self._say(
                category, "learn", f"could not learn ({error!r:.200}), so the outcome is left out"
            )

    def _strategy(self, category: str) -> Strategy:
        strategy = self._strategies.get(category)
        if strategy is None:
            strategy = self._strategies[category] = self._family(category)
        return strategy

    def _sound(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        """The strategy's proposal, with every amount a number between 0 and the largest node."""
        if largest is not self._largest:
            self._largest, self._limits = largest, dict(largest)
        limits = self._limits
        try:
            proposal = self._strategy(task.category).propose(task, failures, largest)
            amounts = proposal.amounts
            for kind, amount in amounts.items():
                if not 0 <= amount <= limits[kind] or type(amount) not in NUMBERS:
                    break
            else:
                if amounts.keys() >= self._demanded:
                    return proposal
            return self._mended(task, proposal, largest)
        except Exception as error:
            self._say(
                task.category,
                "propose",
                f"could not propose ({error!r:.200}), so {_INSTEAD}",
            )
            return self._fallback(task, failures, largest)

    def _mended(self, task: TaskInfo, proposal: Proposal, largest: Resources) -> Proposal:
        amounts = dict.fromkeys(self._demanded, math.nan) | dict(proposal.amounts)
        for kind, amount in amounts.items():
            amounts[kind] = amount = float(amount)
            if 0 <= amount <= largest[kind]:
                continue
            if largest[kind] < amount < math.inf:  # the node may have shrunk; not a fault
                amounts[kind] = largest[kind]
                continue
            amounts[kind] = _requested(task, kind, largest)
            said = repr(amount) if kind in proposal.amounts else "nothing"
            self._say(
                task.category, "amount", f"proposed {said} for {Kind(kind).value}, so {_INSTEAD}"
            )
        return Proposal(amounts, proposal.why)

    def _larger(
        self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources
    ) -> Proposal | None:
        last = failures[-1]
        held = last.attempt.allocation
        if any(held.get(kind, 0.0) >= largest[kind] for kind in last.exhausted):
            return None
        if len(failures) >= MAX_ATTEMPTS:
            return None
        if len(failures) >= MAX_ATTEMPTS - 1:
            whole = {kind: largest[kind] for kind in (*held, *sorted(last.exhausted))}
            return Proposal(whole, f"{len(failures)} attempts failed: the largest node")
        proposal = self._sound(task, failures, largest)
        amounts = dict(proposal.amounts)
        for kind in dict.fromkeys((*held, *sorted(last.exhausted))):
            least = min(held.get(kind, 0.0), largest[kind])
            if kind not in amounts and kind not in last.exhausted:  # given as requested
                amounts[kind] = least
                continue
            amount = amounts.get(kind, math.nan)
            if amount > least or (amount == least and kind not in last.exhausted):
                continue
            amounts[kind] = largest[kind] if kind in last.exhausted else least
            self._say(
                task.category,
                "amount",
                f"proposed {amount!r} for {Kind(kind).value} after an attempt with {least!r} "
                f"ran out of {_listed(last)}, so {amounts[kind]!r} is used instead",
            )
        return Proposal(amounts, proposal.why)

    def _fallback(
        self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources
    ) -> Proposal:
        """What a task gets whose strategy is broken: the request, then the largest node."""
        if failures:
            allocation = failures[-1].attempt.allocation
            held = {kind: min(amount, largest[kind]) for kind, amount in allocation.items()}
            held.update({kind: largest[kind] for kind in failures[-1].exhausted})
            return Proposal(held, "the strategy failed: the largest node")
        amounts = {kind: _requested(task, kind, largest) for kind in self._kinds}
        return Proposal(amounts, "the strategy failed: the user's request or the largest node")

    def _say(self, category: str, fault: str, sentence: str) -> None:
        key = (category, fault)
        if self._warn is None or key in self._said or len(self._said) >= MAX_WARNINGS:
            return
        self._said.add(key)
        self._warn(f"The strategy of category {category[:80]!r} {sentence}.")


def _requested(task: TaskInfo, kind: Kind, largest: Resources) -> float:
    """What the user asked for, if that is an amount that a node has, else all of it."""
    requested = task.requested.get(kind)
    if isinstance(requested, (int, float)) and 0 < requested <= largest[kind]:
        return requested
    return largest[kind]


def _listed(outcome: Outcome) -> str:
    return " and ".join(sorted(Kind(kind).value for kind in outcome.exhausted)) or "nothing"
