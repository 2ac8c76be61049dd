"""The optimal ladder: as many steps as pay, at the amounts that cost least.

The distribution of peaks is learned (bins, a tail above the largest seen, attempts
that ran out as lower bounds, theta from how early they died) and the exact program
of :mod:`parsl_sizer.strategies.ladder` is run on it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from parsl_sizer.model import (
    Amounts,
    Ending,
    Kind,
    Outcome,
    Resources,
    TaskInfo,
    UnknownStrategy,
    Usage,
    format_amount,
)

from .base import Family, Predictor, Proposal, Setting, in_whole_cores
from .cold_start import PER_CATEGORY, Pool
from .evidence import Evidence
from .ladder import HEADROOM, Ladder
from .per_kind import Because, PerKind
from .views import RETRY_PRICE, AllTasks, Found

LIKELY = 0.99
"""Rungs above the first that is enough for this share are not counted when explaining."""
ROUNDED = 1.0 + 1e-9
"""Amounts are scaled back and forth: without it a rung could follow itself."""
NEAR_PEAK = 0.8
"""A task is near its peak at this share of it: most allocations that are too small are less."""
STOPPED_AFTER_S = 0.25
"""So long after a task has run out of memory it has been stopped."""
LEVEL, SLOWED, LEVEL_FOR_S = 0.005, 0.1, 0.04
"""A task's memory is level if in so long it grew by less than the first share of its peak, and
than the second share of what it grew before."""
NEARLY_SHORT = 0.25
"""Nodes may be short of a kind that fills up to this share of the one that fills first: tasks
that have not finished yet may need more of it."""
FORGOTTEN = 0.999
"""What a task counts less for each that follows, when the load is added up."""
FITTED_TO = 0.75
"""Of outcomes that are learned at once, the share that ladders are fitted to, to be judged by
the rest."""
NEARLY = 0.9
"""A guess above all peaks seen becomes the largest node from this share of it on."""


class Rung(NamedTuple):
    """Why an amount was proposed; its `str` is the sentence."""

    basis: str
    ladder: Ladder
    amount: float
    tasks: int

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # whoever keeps it wants the sentence, not the ladder

    def __str__(self) -> str:
        ladder = self.ladder
        number = bisect_left(ladder.rungs, self.amount) + 1
        if not self.tasks:
            return self.basis
        likely = bisect_left(ladder.rungs, LIKELY, key=ladder.covered)
        return (
            f"rung {number} of {max(number, likely + 1)}, expected to be enough for "
            f"{ladder.covered(self.amount):.0%}, from {self.tasks} {self.basis}"
        )


class Idle(NamedTuple):
    """Why more was proposed than a task is expected to need."""

    kind: Kind
    enough: float
    share: float
    reason: object

    def __str__(self) -> str:
        return (
            f"{self.reason}, where {format_amount(self.kind, self.enough)} would do: more would "
            f"lie idle beside its {self.share:.0%} of a node"
        )


class OptimalLadder(Predictor):
    """The cheapest ladder for one kind in one category, from all its tasks.

    >>> ladder = OptimalLadder(Kind.MEMORY, Pool(Kind.MEMORY))
    >>> for number in range(100):
    ...     ladder.observe(TaskInfo(number, "align"), 2e9 if number % 10 else 8e9, 60.0)
    >>> task = TaskInfo(100, "align")
    >>> amount, why = ladder.first(task, largest=64e9)
    >>> amount, ladder.grow(task, [amount], 64e9), str(why)
    (2000000000.0, 8000000000.0,
     'rung 1 of 2, expected to be enough for 89%, from 100 tasks')

    B. Tovar et al., "A Job Sizing Strategy for High-Throughput Scientific Workflows",
    TPDS 2018, has the cost model and two steps; more steps are left open there.
    """

    def __init__(self, kind: Kind, pool: Pool, *, price: float = RETRY_PRICE) -> None:
        self._kind = kind
        self._pool = pool
        self._evidence = Evidence()
        self._all = AllTasks(price)
        self.is_hurried = False
        """While this is set, nothing is fitted but by `fit`."""

    def predict(self, task: TaskInfo, largest: float) -> float:
        return self.first(task, largest)[0]

    def first(self, task: TaskInfo, largest: float, floor: float = 0.0) -> tuple[float, Rung]:
        """The first allocation, if anything below `floor` is free, and why."""
        basis, (ladder, scale) = self._found(task)
        amount = ladder.first_at_least(floor / scale) if floor else ladder.rungs[0]
        if not self._evidence.tasks:
            amount = max(amount, self._known_too_small(ladder, scale))
        why = Rung(basis, ladder, amount, self._evidence.tasks)
        return self._whole_if_nearly(amount * scale, largest), why

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float | None:
        _, (ladder, scale) = self._found(task)
        amount = ladder.after(failed[-1] / scale * ROUNDED)
        return None if amount is None else self._whole_if_nearly(amount * scale, largest)

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        self._take(task, peak, wall_s, ())

    def observe_rise(self, usage: Usage) -> None:
        """A task finished whose memory was watched: how soon was it near its peak?"""
        near = NEAR_PEAK * usage.peak.get(self._kind, math.inf)
        risen_s = next((at for at, used in usage.series if used >= near), usage.wall_s)
        if usage.wall_s > 0:
            self._evidence.add_rise((risen_s + STOPPED_AFTER_S) / usage.wall_s)

    def observe_stop(self, failure: Outcome) -> None:
        """A task was stopped for its memory: did that tell its peak?"""
        self._evidence.add_level(is_level=level_reached([failure]) is not None)

    def observe_growth(self) -> None:
        """A task needed more than it was given, and had just that: as if its peak were known."""
        self._evidence.add_level(is_level=True)

    def observe_failure(self, task: TaskInfo, allocated: float, wall_s: float) -> None:
        evidence = self._evidence
        evidence.add_failure(task.task_id, allocated, wall_s)
        if evidence.tasks and not self.is_hurried and self._all.due(evidence):
            self._all.refit(evidence)

    def fit(self) -> None:
        """Fit everything to what is known now."""
        if self._evidence.tasks:
            self._all.refit(self._evidence)

    def _found(self, task: TaskInfo) -> tuple[str, Found]:
        """The ladder for the task, and what it is based on."""
        if not self._evidence.tasks:
            requested = task.requested.get(self._kind)
            return self._pool.basis(requested), self._pool.ladder(requested)
        return "tasks", self._all.found

    def _take(
        self, task: TaskInfo, peak: float, wall_s: float, features: tuple[float, ...]
    ) -> None:
        evidence = self._evidence
        if evidence.tasks < PER_CATEGORY:
            self._pool.add(peak, task.requested.get(self._kind), wall_s)
        evidence.add(task.task_id, peak, wall_s, features)
        if not self.is_hurried and self._all.due(evidence):
            self._all.refit(evidence)

    def _known_too_small(self, ladder: Ladder, scale: float) -> float:
        """Before any task finished: the rung above what most attempts ran out of.

        One may be an odd one, so it takes two.
        """
        bounds = sorted(self._evidence.bounds())
        if len(bounds) < 2:
            return 0.0
        following = ladder.after(bounds[len(bounds) // 2] / scale * ROUNDED)
        return math.inf if following is None else following

    def _whole_if_nearly(self, amount: float, largest: float) -> float:
        if amount > NEARLY * largest and amount > self._evidence.maximum:
            return largest
        return amount


class Levelled(NamedTuple):
    """The reason for a retry of a task whose memory was not growing any more."""

    level: float

    def __str__(self) -> str:
        return f"it was level at {format_amount(Kind.MEMORY, self.level)} when it was stopped"


def level_reached(failures: Sequence[Outcome]) -> float | None:
    """The memory at which a task was level when it was stopped; None if it was still growing.

    Tasks that share a busy machine grow slowly, and some pause: level is what has nearly
    ceased to grow as it had before, and whom we took for level once and wrongly is growing.
    """
    failure = failures[-1]
    peak, allocation = _memory(failure)
    if not failure.usage.series or peak <= allocation:
        return None
    if any(_was_taken_for_level(*two) for two in pairwise(failures)):
        return None
    stopped_s = failure.usage.series[-1][0]
    before = [(at, used) for at, used in failure.usage.series if at <= stopped_s - LEVEL_FOR_S]
    if not before or before[-1][0] <= 0:
        return None
    at, used = before[-1]
    usual = used / at * (stopped_s - at)
    return peak if peak - used <= min(LEVEL * peak, SLOWED * usual) else None


def _was_taken_for_level(failure: Outcome, following: Outcome) -> bool:
    """Whether an attempt was given just what the one before it had used, which was too little."""
    given = following.attempt.given_memory
    return given is not None and given <= _memory(failure)[0] * HEADROOM


def _memory(failure: Outcome) -> tuple[float, float]:
    """What was used, and what was given."""
    peak = failure.usage.peak.get(Kind.MEMORY, 0.0)
    return peak, failure.attempt.allocation.get(Kind.MEMORY, math.inf)


class Load:
    """What the tasks of a run have used of each kind, recent ones first."""

    def __init__(self) -> None:
        self._used: dict[Kind, float] = {}

    def add(self, usage: Usage) -> None:
        """A task finished."""
        for kind in self._used:
            self._used[kind] *= FORGOTTEN
        for kind, peak in usage.peak.items():
            used = in_whole_cores(kind, peak) * usage.wall_s
            self._used[kind] = self._used.get(kind, 0.0) + used

    def is_short_of(self, kind: Kind, node: Amounts) -> bool:
        """Whether tasks fill nodes like this one in this kind, or nearly so, before others.

        Before anything is known they may.
        """
        shares = {k: used / node[k] for k, used in self._used.items() if node[k] > 0}
        return shares.get(kind, 0.0) >= NEARLY_SHORT * max(shares.values(), default=0.0)


class Ladders(PerKind):
    """One ladder per kind, and what an allocation costs in all.

    With ``objective="throughput"`` a kind is free up to the task's dominant share of the
    node: there a larger allocation saves retries and costs nothing. That is so unless
    this very kind is what nodes are short of: then another category could have it.
    """

    def __init__(
        self, ladders: Mapping[Kind, OptimalLadder], load: Load, *, objective: str
    ) -> None:
        super().__init__(ladders)
        self._ladders = dict(ladders)
        self._load = load
        self._objective = objective
        self._most_cores = 0.0  # that a task has used

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        proposal = super().propose(task, failures, largest)
        if failures or self._objective != "throughput" or not isinstance(proposal.why, Because):
            return proposal
        amounts = dict(proposal.amounts)
        reasons = dict(zip(amounts, proposal.why.reasons, strict=True))
        # The room above what was ever used is for being stopped less often, and no task is stopped
        # for cores: a task that uses one core fills one, not two.
        most = self._most_cores or math.inf
        used = {**amounts, Kind.CORES: min(amounts.get(Kind.CORES, 0.0), most)}
        shares = {
            kind: in_whole_cores(kind, used[kind]) / largest[kind]
            for kind in amounts
            if largest[kind] > 0
        }
        for kind, share in shares.items():
            if kind is Kind.CORES:  # nobody is stopped for cores, so more of them saves nothing
                continue
            others = max((own for other, own in shares.items() if other is not kind), default=0.0)
            if others > share and not self._load.is_short_of(kind, largest):
                floor = others * largest[kind]
                amount, reason = self._ladders[kind].first(task, largest[kind], floor)
                is_more = amount > amounts[kind]
                reasons[kind] = Idle(kind, amounts[kind], others, reason) if is_more else reason
                amounts[kind] = min(amount, largest[kind])
        return Proposal(amounts, Because(tuple(amounts.items()), tuple(reasons.values())))

    def learn(self, outcome: Outcome) -> None:
        if Kind.MEMORY in outcome.exhausted and Kind.MEMORY in self._ladders:
            self._ladders[Kind.MEMORY].observe_stop(outcome)
        super().learn(outcome)
        if outcome.ending is Ending.DONE:
            usage = outcome.usage
            self._load.add(usage)
            self._most_cores = max(self._most_cores, usage.peak.get(Kind.CORES, 0.0))
            if usage.series and Kind.MEMORY in self._ladders:
                self._ladders[Kind.MEMORY].observe_rise(usage)
            if outcome.attempt.grown_from is not None and Kind.MEMORY in self._ladders:
                self._ladders[Kind.MEMORY].observe_growth()

    def recall(self, outcomes: Sequence[Outcome]) -> None:
        """Learn them all, fitting twice: to most of them, to judge by the rest; and to all."""
        most = math.ceil(FITTED_TO * len(outcomes))
        for part in (outcomes[:most], outcomes[most:]):
            self._hurry(True)
            try:
                for outcome in part:
                    self.learn(outcome)
            finally:
                self._hurry(False)
            for ladder in self._ladders.values():
                ladder.fit()

    def _hurry(self, is_hurried: bool) -> None:
        for ladder in self._ladders.values():
            ladder.is_hurried = is_hurried

    def _amount(
        self,
        kind: Kind,
        predictor: Predictor,
        task: TaskInfo,
        failures: Sequence[Outcome],
        largest: float,
    ) -> tuple[float, object]:
        if failures and kind is Kind.MEMORY and kind in failures[-1].exhausted:
            level = level_reached(failures)
            if level is not None and level * HEADROOM < largest:
                return level * HEADROOM, Levelled(level)
        return super()._amount(kind, predictor, task, failures, largest)

    def _first(
        self, kind: Kind, predictor: Predictor, task: TaskInfo, largest: float
    ) -> tuple[float, object]:
        amount, why = self._ladders[kind].first(task, largest)
        return min(amount, largest), why


def ladders(setting: Setting, price: float, make: Callable[[Kind, Pool], OptimalLadder]) -> Family:
    """The family with `make(kind, pool)` for every kind and category."""
    if setting.objective not in ("waste", "throughput"):
        raise UnknownStrategy(f"The objective is waste or throughput, not {setting.objective!r}.")
    if not (isinstance(price, (int, float)) and 0 <= price < 100):
        raise UnknownStrategy(f"price is a share of a task's cost such as 0.05, not {price!r}.")
    pools = {kind: Pool(kind, price) for kind in setting.kinds}
    load = Load()
    return lambda category: Ladders(
        {kind: make(kind, pools[kind]) for kind in setting.kinds}, load, objective=setting.objective
    )


def build(setting: Setting, price: float = RETRY_PRICE) -> Family:
    """The cheapest ladder with any number of steps, from all tasks of the category."""
    return ladders(setting, price, lambda kind, pool: OptimalLadder(kind, pool, price=price))
