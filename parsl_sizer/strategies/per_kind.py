"""From one number to an allocation: a predictor for each kind of resource."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from parsl_sizer.model import Ending, Kind, Outcome, Resources, TaskInfo, format_amount

from .base import Predictor, Proposal


class Because(NamedTuple):
    """Every kind's amount with its reason."""

    amounts: tuple[tuple[Kind, float], ...]
    reasons: tuple[object, ...]

    def __str__(self) -> str:
        return "; ".join(
            f"{kind.value} {format_amount(kind, amount)}: {reason}"
            for (kind, amount), reason in zip(self.amounts, self.reasons, strict=True)
        )


class TooSmall(NamedTuple):
    """The reason for a retry."""

    kind: Kind
    held: float

    def __str__(self) -> str:
        return f"{format_amount(self.kind, self.held)} was too small"


class PerKind:
    """A strategy made of one independent :class:`Predictor` per kind.

    Only the kind that ran out grows. With ``together=True`` all kinds step
    together when any of them runs out, as seed 000's bucketing does.

    >>> class Median(Predictor):
    ...     def predict(self, task, largest):
    ...         return 2e9
    >>> strategy = PerKind({Kind.MEMORY: Median()})
    >>> str(strategy.propose(TaskInfo(1, "align"), [], Resources(memory=64e9)).why)
    'memory 2 GB: Median'
    """

    def __init__(self, predictors: Mapping[Kind, Predictor], *, together: bool = False) -> None:
        self.predictors = dict(predictors)
        self.together = together

    @classmethod
    def of(
        cls, kinds: Sequence[Kind], make: Callable[[Kind], Predictor], *, together: bool = False
    ) -> PerKind:
        """The strategy with `make(kind)` for each kind."""
        return cls({kind: make(kind) for kind in kinds}, together=together)

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        amounts: dict[Kind, float] = {}
        reasons: list[object] = []
        for kind, predictor in self.predictors.items():
            amounts[kind], reason = self._amount(kind, predictor, task, failures, largest[kind])
            reasons.append(reason)
        return Proposal(amounts, Because(tuple(amounts.items()), tuple(reasons)))

    def _amount(
        self,
        kind: Kind,
        predictor: Predictor,
        task: TaskInfo,
        failures: Sequence[Outcome],
        largest: float,
    ) -> tuple[float, object]:
        if failures:
            last = failures[-1]
            held = last.attempt.allocation.get(kind, largest)
            if kind not in last.exhausted and not (self.together and last.exhausted):
                return min(held, largest), "as before"
            failed = [
                too_small(outcome, kind, largest)
                for outcome in failures
                if self.together or kind in outcome.exhausted
            ]
            amount = predictor.grow(task, failed, largest)
            if amount is None or not amount > failed[-1]:
                return largest, "the largest node"
            return min(amount, largest), TooSmall(kind, held)
        return self._first(kind, predictor, task, largest)

    def _first(
        self, kind: Kind, predictor: Predictor, task: TaskInfo, largest: float
    ) -> tuple[float, object]:
        amount = predictor.predict(task, largest)
        if amount is not None:
            return min(amount, largest), predictor.why(task, amount)
        requested = task.requested.get(kind)
        if requested is None:
            return largest, "nothing known yet"
        return min(requested, largest), "the user's request"

    def learn(self, outcome: Outcome) -> None:
        task, usage = outcome.attempt.task, outcome.usage
        if outcome.ending is Ending.DONE:
            for kind, predictor in self.predictors.items():
                peak = usage.peak.get(kind)
                if peak is not None:
                    predictor.observe(task, peak, usage.wall_s)
        elif outcome.ending is Ending.EXHAUSTED:
            for kind in outcome.exhausted:
                if kind in self.predictors and kind in outcome.attempt.allocation:
                    bound = too_small(outcome, kind, math.inf)
                    self.predictors[kind].observe_failure(task, bound, usage.wall_s)


def too_small(outcome: Outcome, kind: Kind, largest: float) -> float:
    """What an attempt that ran out of this kind has shown to be too little.

    Until it was stopped it may have used more than it was allocated.
    """
    held = outcome.attempt.allocation.get(kind, largest)
    return max(held, min(outcome.usage.peak.get(kind, held), largest))
