"""The errors that reach users. Each message is a sentence that names the way out."""

from __future__ import annotations

from collections.abc import Sequence

from .outcome import Outcome
from .units import format_amount


class SizerError(Exception):
    """Anything that parsl_sizer raises on purpose."""


class UnknownStrategy(SizerError, ValueError):
    """No strategy of that name, or an option that it does not take."""


class TraceError(SizerError, ValueError):
    """A trace that cannot be read."""


class ResourcesExhausted(SizerError):
    """A task ran out of a resource even in the largest allocation there is."""

    def __init__(self, task_id: int | str, category: str, outcomes: Sequence[Outcome]) -> None:
        self.task_id = task_id
        self.category = category
        self.outcomes = tuple(outcomes)
        super().__init__(task_id, category, self.outcomes)

    def __str__(self) -> str:
        attempts = "; ".join(_described(outcome) for outcome in self.outcomes)
        kinds = sorted({kind.value for outcome in self.outcomes for kind in outcome.exhausted})
        return (
            f"Task {self.task_id} ({self.category}) ran out of {' and '.join(kinds)} in the "
            f"largest allocation that any node has: {attempts}. "
            "Give it a larger node, or split its work."
        )


def _described(outcome: Outcome) -> str:
    number = outcome.attempt.number
    if not outcome.exhausted:
        return f"attempt {number}: {outcome.ending.value}"
    parts = []
    for kind in sorted(outcome.exhausted):
        peak = outcome.usage.peak.get(kind)
        held = outcome.attempt.allocation.get(kind)
        allocated = "without limit" if held is None else format_amount(kind, held)
        used = f", used {format_amount(kind, peak)}" if peak is not None else ""
        parts.append(f"{kind.value} {allocated}{used}")
    return f"attempt {number}: {', '.join(parts)}"
