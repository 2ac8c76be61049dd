"""The errors that reach users. Each message is a sentence that names the way out."""

from __future__ import annotations

from collections.abc import Sequence

from .outcome import Outcome
from .printable import printable
from .task import NO_OPT_OUT, OptOut
from .units import format_amount


class SizerError(Exception):
    """Anything that parsl_sizer raises on purpose. Its text is safe to print."""

    def __str__(self) -> str:
        return printable(super().__str__())


class UnknownStrategy(SizerError, ValueError):
    """No strategy of that name, or an option that it does not take."""


class TraceError(SizerError, ValueError):
    """A trace that cannot be read."""


class ResourcesExhausted(SizerError):
    """A task ran out of a resource even in the largest allocation that it may have."""

    def __init__(self, task_id: int | str, category: str, outcomes: Sequence[Outcome]) -> None:
        self.task_id = task_id
        self.category = category
        self.outcomes = tuple(outcomes)
        super().__init__(task_id, category, self.outcomes)

    def __str__(self) -> str:
        attempts = "; ".join(_described(outcome) for outcome in self.outcomes)
        kinds = sorted({kind.value for outcome in self.outcomes for kind in outcome.exhausted})
        opt_outs = self.outcomes[-1].attempt.task.opt_outs if self.outcomes else NO_OPT_OUT
        where = "in the largest allocation that any node has"
        advice = "Give it a larger node, or split its work."
        if OptOut.FIXED in opt_outs and not self._was_cut():
            where, advice = "in what it is fixed to", "State more, or leave 'fixed' out."
        elif OptOut.NO_RETRY in opt_outs:
            where, advice = "and must not be tried again (no_retry)", "State what it needs."
        return (
            f"Task {_name(self.task_id)} ({_name(self.category)}) ran out of "
            f"{' and '.join(kinds)} {where}: {attempts}. {advice}"
        )

    def _was_cut(self) -> bool:
        """Whether it stated more of what it ran out of than any node has."""
        last = self.outcomes[-1]
        allocation, requested = last.attempt.allocation, last.attempt.task.requested
        return any(requested.get(kind, 0.0) > allocation.get(kind, 0.0) for kind in last.exhausted)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


def _name(value: int | str) -> str:
    return printable(str(value), keep="")


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
