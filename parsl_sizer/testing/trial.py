"""A strategy on trial: taught, asked, and made to fail, as a run would do it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.strategies import Family, Proposal, Setting, Strategy
from parsl_sizer.strategies.catalog import family

from .lessons import CATEGORIES, NODE, SETTING, task

Subject = str | Callable[[Setting], Family]
"""What the laws are checked on: a name of the catalog, options and all, or a builder."""

PROBES: tuple[TaskInfo, ...] = (
    *(task(10**6 + number, category) for category in CATEGORIES for number in range(4)),
    TaskInfo("no features", "align"),
    TaskInfo("input of nothing", "align", features={"input_size": 0.0}),
    TaskInfo("a request", "call", requested={Kind.MEMORY: 1e9, Kind.CORES: 2, Kind.DISK: 1e9}),
    TaskInfo("a request above every node", "merge", requested={Kind.MEMORY: 1e15}),
    TaskInfo("a category never seen", "Ströme 流れ"),
    TaskInfo("a category of 10 kB", "x" * 10_000),
)
"""Tasks to ask about; none of them is in the lessons."""

WAYS_TO_FAIL: tuple[tuple[frozenset[Kind], ...], ...] = (
    (frozenset({Kind.CORES}),),
    (frozenset({Kind.MEMORY}),),
    (frozenset({Kind.DISK}),),
    (frozenset({Kind.MEMORY, Kind.DISK}),),
    (frozenset({Kind.MEMORY}), frozenset({Kind.DISK})),
)
"""What runs out in one attempt after the other, over and over."""

PATIENCE = 100
"""Attempts after which a ladder is taken to have no end."""


def name_of(subject: Subject) -> str:
    if isinstance(subject, str):
        return f"Strategy {subject!r}"
    module = getattr(subject, "__module__", "")
    return f"Strategy {module}.{getattr(subject, '__qualname__', repr(subject))}"


class Trial:
    """A new family of the subject, with one strategy per category."""

    def __init__(self, subject: Subject, setting: Setting = SETTING) -> None:
        self.family = family(subject, setting) if isinstance(subject, str) else subject(setting)
        self.strategies: dict[str, Strategy] = {}

    def strategy(self, category: str) -> Strategy:
        if category not in self.strategies:
            self.strategies[category] = self.family(category)
        return self.strategies[category]

    def propose(
        self, info: TaskInfo, failures: Sequence[Outcome] = (), largest: Resources = NODE
    ) -> Proposal:
        return self.strategy(info.category).propose(info, failures, largest)

    def learn(self, outcomes: Iterable[Outcome]) -> Trial:
        for outcome in outcomes:
            self.strategy(outcome.attempt.task.category).learn(outcome)
        return self

    def proposals(self, largest: Resources = NODE) -> list[Proposal]:
        """What is proposed for each of the probes, and after its first failure."""
        found = []
        for info in PROBES:
            first = self.propose(info, (), largest)
            failure = failed(info, 1, first, frozenset({Kind.MEMORY}))
            found += [first, self.propose(info, (failure,), largest)]
        return found

    def climb(
        self,
        info: TaskInfo,
        way: Sequence[frozenset[Kind]],
        largest: Resources = NODE,
        *,
        learning: bool = False,
    ) -> Iterator[tuple[list[Outcome], Proposal]]:
        """Attempts that fail in this way, each with the failures before it.

        The last one has all there is of a kind that would run out next.
        """
        failures: list[Outcome] = []
        for exhausted in cycle(way):
            proposal = self.propose(info, tuple(failures), largest)
            yield list(failures), proposal
            at_the_top = any(proposal.amounts[kind] >= largest[kind] for kind in exhausted)
            if at_the_top or len(failures) >= PATIENCE:
                return
            failures.append(failed(info, len(failures) + 1, proposal, exhausted))
            if learning:
                self.learn(failures[-1:])


def failed(info: TaskInfo, number: int, proposal: Proposal, kinds: frozenset[Kind]) -> Outcome:
    """The attempt with that proposal, having run out of `kinds`."""
    attempt = Attempt(info, number, dict(proposal.amounts), why=proposal.why)
    usage = Usage({kind: proposal.amounts[kind] for kind in kinds}, wall_s=10.0)
    return Outcome(attempt, Ending.EXHAUSTED, usage=usage, exhausted=kinds)
