"""Strategies side by side on the same trace, the best first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from parsl_sizer.model import Kind

from .metrics import KINDS, Metrics, Tally, summary


@dataclass(frozen=True, slots=True)
class Result:
    """What one strategy cost. A limit is shown, but is nobody's to choose."""

    name: str
    metrics: Metrics
    seconds: float = 0.0
    is_limit: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """A result among the others, judged by the waste of one kind."""

    result: Result
    kind: Kind
    is_best: bool
    relative_waste: float | None

    @property
    def tally(self) -> Tally:
        return self.result.metrics.kinds[self.kind]

    @property
    def retries_per_task(self) -> float | None:
        """Retries in the kind that is judged, or in any if kinds fail together."""
        metrics = self.result.metrics
        retries = metrics.retries if metrics.together else self.tally.retries
        return retries / self.tally.tasks if self.tally.tasks else None


def standings(results: Iterable[Result]) -> list[Standing]:
    """The results, least waste first (of memory, or of the first kind the trace knows).

    The best is the first that is not a limit; where two waste the same, the one with
    fewer retries comes first.
    """
    found = list(results)
    kind = _judged(found)

    def order(result: Result) -> tuple[float, int]:
        tally = result.metrics.kinds[kind]
        return (tally.waste if tally.tasks else math.inf, tally.retries)

    found.sort(key=order)
    best = next((result for result in found if not result.is_limit), None)
    least = best.metrics.kinds[kind].waste if best else 0.0
    return [
        Standing(
            result,
            kind,
            is_best=result is best,
            relative_waste=result.metrics.kinds[kind].waste / least if least else None,
        )
        for result in found
    ]


def _judged(results: Sequence[Result]) -> Kind:
    for kind in KINDS:
        if any(result.metrics.kinds[kind].tasks for result in results):
            return kind
    return KINDS[0]


def as_json(standing: Standing) -> dict[str, object]:
    """A standing as JSON has it: the figures of `replay`, and its place among the others."""
    return {
        "strategy": standing.result.name,
        "best": standing.is_best,
        "limit": standing.result.is_limit,
        "relative_waste": standing.relative_waste,
        "retries_per_task": standing.retries_per_task,
        "seconds": standing.result.seconds,
        **summary(standing.result.metrics),
    }
