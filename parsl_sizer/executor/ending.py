"""How did an attempt end? Who is believed, in this order:

the monitor that stopped it; a cgroup that counted an out-of-memory kill; a MemoryError or
a SIGKILL of a task that was near its limit; the inner executor's own word. An exit code
or the class of an exception alone says nothing about a task's size.

Nothing in a report is trusted: whatever is not a number that can be is left out.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

from parsl.app.errors import BashExitFailure, RemoteExceptionWrapper
from parsl.serialize import deserialize

from parsl_sizer.engines import Engine, Verdict
from parsl_sizer.model import (
    Amounts,
    Attempt,
    Ending,
    Kind,
    Outcome,
    SizerError,
    Usage,
    can_be,
    format_amount,
)
from parsl_sizer.model.possible import LONGEST_S, MOST
from parsl_sizer.monitor.wire import opened

from .recognisers import PLAIN, Recogniser

SIGKILL = 9
DECLINED = frozenset({"unequipped", "refused"})
"""Endings of what was not run."""
KILLED_IN_BASH = frozenset({-SIGKILL, 128 + SIGKILL})
NEAR_AT_ERROR = 0.5
"""With a MemoryError, half of the limit is near: what was asked for and refused is on top."""
NEAR_AT_KILL = 0.9
CPU_S = LONGEST_S * MOST[Kind.CORES]
"""All the cores of a node, all the time."""

ROUNDING = 1e-9
"""Sums of floats are not exact."""

LIMITED = (Kind.MEMORY, Kind.DISK)

_KINDS = {kind.value: kind for kind in Kind}


class TaskLost(SizerError):
    """The process that ran a task is gone, and nobody knows why."""


@dataclass(slots=True)
class Answer:
    """An outcome, with what the user gets if the task is over now."""

    outcome: Outcome
    value: object = None
    error: BaseException | None = None
    report: Mapping[str, Any] | None = None
    rejected: bool = False
    """Whether the report said something that cannot be."""
    declined: bool = False
    """Whether nothing was run, so that the same is to be sent again."""

    def cause(self) -> BaseException | None:
        """The error behind it, if there is one."""
        if isinstance(self.value, RemoteExceptionWrapper):
            return self.value.e_value
        return self.error


def read(
    future: Future[Any],
    attempt: Attempt,
    engine: Engine,
    now: float,
    recogniser: Recogniser = PLAIN,
) -> Answer:
    """What a finished call of the inner executor says about the attempt."""
    error = future.exception()
    if error is not None:
        if engine.is_unequipped(future):
            return _declined(attempt, None, now)
        if not isinstance(error, Exception):
            error = TaskLost(f"The inner executor left with {error!r:.200}.")
        verdict = engine.verdict(error) or Verdict(Ending.RAISED)
        return Answer(
            _outcome(attempt, verdict, now, Usage(wall_s=_since(attempt, now))), None, error
        )
    report = opened(future.result())
    if not is_report(report):
        usage = Usage(wall_s=_since(attempt, now))
        return _returned(report, attempt, usage, now, recogniser)
    if report["ending"] in DECLINED:
        return _declined(attempt, report, now)
    usage, rejected = _usage(report, _since(attempt, now))
    if "grown" in report:
        grown = _grown(attempt, report, engine)
        attempt, rejected = grown or attempt, rejected or grown is None
    answer = _of_report(report, attempt, usage, now, recogniser)
    answer.report, answer.rejected = report, rejected
    return answer


class Grown(NamedTuple):
    """Why an attempt had more than it was given."""

    given: float
    reason: object

    def __str__(self) -> str:
        given = format_amount(Kind.MEMORY, self.given)
        return f"{self.reason}; given {given} at first, it grew while its node had room"


def _grown(attempt: Attempt, report: Mapping[str, Any], engine: Engine) -> Attempt | None:
    """The attempt with the memory that it held at its end; None if that cannot be."""
    said, node = report["grown"], report.get("node")
    amount = said.get("memory") if isinstance(said, Mapping) else None
    given = attempt.allocation.get(Kind.MEMORY)
    if given is None or engine.ledgers is None:
        return None
    most = engine.ledgers.most or 0.0
    here = node.get("memory") if isinstance(node, Mapping) else None
    if can_be(here, MOST[Kind.MEMORY]):  # its node may be known from nowhere else, or gone
        most = max(most, here)
    if not can_be(amount, most * (1 + ROUNDING)) or amount < given:
        return None
    return attempt._replace(
        allocation={**attempt.allocation, Kind.MEMORY: float(amount)},
        why=Grown(given, attempt.why),
        grown_from=given,
    )


def _declined(attempt: Attempt, report: Mapping[str, Any] | None, now: float) -> Answer:
    return Answer(Outcome(attempt, Ending.LOST, now), report=report, declined=True)


def is_report(value: object) -> bool:
    """Whether this is what the monitor sends back."""
    return isinstance(value, dict) and "parsl_sizer" in value and "ending" in value


def _of_report(
    report: Mapping[str, Any], attempt: Attempt, usage: Usage, now: float, recogniser: Recogniser
) -> Answer:
    said = report["ending"]
    if said == "stopped" or report.get("out_of_memory") is True:
        names = [name for name in _listed(report.get("exhausted")) if isinstance(name, str)]
        kinds = frozenset(_KINDS[name] for name in names if name in _KINDS)
        verdict = Verdict(Ending.EXHAUSTED, kinds or frozenset({Kind.MEMORY}))
        return Answer(_outcome(attempt, verdict, now, usage, report))
    if said == "died":
        return _died(report, attempt, usage, now)
    try:
        value = report.get("result")
        if report.get("payload") is not None:
            value = deserialize(report["payload"])
    except BaseException as error:  # it is the user's own code that unpacks
        failed: BaseException = error
        if not isinstance(error, Exception):
            failed = TaskLost(f"The result could not be unpacked: {error!r:.200}.")
        return Answer(_outcome(attempt, Verdict(Ending.RAISED), now, usage, report), None, failed)
    if said == "raised":
        raised = report.get("error")
        if isinstance(value, RemoteExceptionWrapper):
            raised = value.get_exception()
        if not isinstance(raised, Exception):  # SystemExit, say: it is not for us to end
            raised = TaskLost(
                f"Task {attempt.task.task_id} ({attempt.task.category}) left with {raised!r:.200}."
            )
        verdict = _of_error(raised, attempt, usage, recogniser)
        return Answer(_outcome(attempt, verdict, now, usage, report), None, raised)
    return _returned(value, attempt, usage, now, recogniser, report)


def _returned(
    value: object,
    attempt: Attempt,
    usage: Usage,
    now: float,
    recogniser: Recogniser,
    report: Mapping[str, Any] | None = None,
) -> Answer:
    verdict = Verdict(Ending.DONE)
    if isinstance(value, RemoteExceptionWrapper):
        verdict = _of_error(value.e_value, attempt, usage, recogniser)
    elif (hidden := recogniser.error_in(value)) is not None:
        verdict = _of_error(hidden, attempt, usage, recogniser)
    return Answer(_outcome(attempt, verdict, now, usage, report), value)


def _of_error(
    error: BaseException, attempt: Attempt, usage: Usage, recogniser: Recogniser
) -> Verdict:
    if recogniser.is_memory_error(error) and _near(attempt, usage, NEAR_AT_ERROR):
        return Verdict(Ending.EXHAUSTED, frozenset({Kind.MEMORY}))
    if isinstance(error, BashExitFailure) and error.exitcode in KILLED_IN_BASH:
        if _near_at_kill(attempt, usage):
            return Verdict(Ending.EXHAUSTED, frozenset({Kind.MEMORY}))
        return Verdict(Ending.LOST)
    return Verdict(Ending.RAISED)


def _died(report: Mapping[str, Any], attempt: Attempt, usage: Usage, now: float) -> Answer:
    signal, code = report.get("signal"), report.get("exit_code")
    verdict = Verdict(Ending.LOST)
    if signal == SIGKILL and _near_at_kill(attempt, usage):
        verdict = Verdict(Ending.EXHAUSTED, frozenset({Kind.MEMORY}))
    how = f"was killed by signal {signal}" if signal else f"ended with exit status {code}"
    if isinstance(reason := report.get("reason"), str):
        how = reason
    error = TaskLost(
        f"The process that ran task {attempt.task.task_id} ({attempt.task.category}) {how} on "
        f"{report.get('host')}, and nothing says that it ran out of anything."
    )
    return Answer(_outcome(attempt, verdict, now, usage, report), None, error)


def _near_at_kill(attempt: Attempt, usage: Usage) -> bool:
    """Whether who was killed may have been for its memory; what grows is always near its limit."""
    return attempt.grown_from is None and _near(attempt, usage, NEAR_AT_KILL, unknown=False)


def _near(attempt: Attempt, usage: Usage, share: float, *, unknown: bool = True) -> bool:
    """Whether the task was near its limit of memory; `unknown` if nobody can say."""
    limit, peak = attempt.allocation.get(Kind.MEMORY), usage.peak.get(Kind.MEMORY)
    if limit is None:  # nobody limited it, so no size would help
        return False
    return unknown if peak is None else peak >= share * limit


def _outcome(
    attempt: Attempt,
    verdict: Verdict,
    now: float,
    usage: Usage,
    report: Mapping[str, Any] | None = None,
) -> Outcome:
    report = report or {}
    host, isolation = report.get("host"), report.get("isolation")
    return Outcome(
        attempt,
        verdict.ending,
        now,
        usage,
        verdict.exhausted,
        overran=verdict.ending is Ending.DONE and _overran(attempt.allocation, usage.peak),
        host=sys.intern(host) if type(host) is str else None,  # futures keep it
        isolation=isolation if isinstance(isolation, str) else None,
        layers=tuple(map(str, _listed(report.get("layers"))[:10])),
        node_lost=verdict.node_lost,
    )


def _overran(allocation: Amounts, peak: Amounts) -> bool:
    for kind in LIMITED:  # noqa: SIM110 - on every task's way, `any` is slower
        if peak.get(kind, 0.0) > allocation.get(kind, math.inf):
            return True
    return False


def _usage(report: Mapping[str, Any], wall_s: float) -> tuple[Usage, bool]:
    """The usage in a report, without what cannot be; whether something was left out."""
    said = report.get("peak")
    peaks = said if isinstance(said, Mapping) else {}
    peak = {
        kind: float(amount)
        for name, amount in peaks.items()
        if (kind := _KINDS.get(name)) and can_be(amount, MOST[kind])
    }
    if Kind.CORES in peak:  # of a task of microseconds, the clocks' grain is the result
        facts = report.get("node")
        most = facts.get("cores") if isinstance(facts, Mapping) else None
        if can_be(most, MOST[Kind.CORES]):
            peak[Kind.CORES] = min(peak[Kind.CORES], most)
    wall, cpu = report.get("wall_s"), report.get("cpu_s")
    known_wall_s = float(wall) if can_be(wall, LONGEST_S) else None
    cpu_s = float(cpu) if can_be(cpu, CPU_S) else None
    usage = Usage(
        peak,
        wall_s if known_wall_s is None else known_wall_s,
        cpu_s,
        _series(report.get("series")),
    )
    is_whole = peaks is said and len(peak) == len(peaks) and known_wall_s is not None
    return usage, not is_whole or (cpu_s is None and cpu is not None)


def _series(said: object) -> tuple[tuple[float, float], ...]:
    if not said:
        return ()
    points = [point for point in _listed(said) if len(_listed(point)) == 2]
    return tuple(
        (float(at), float(use))
        for at, use in points
        if can_be(at, LONGEST_S) and can_be(use, MOST[Kind.MEMORY])
    )


def _listed(value: object) -> Sequence[Any]:
    """The value, if it is a list of any kind."""
    return value if isinstance(value, (list, tuple)) else ()


def _since(attempt: Attempt, now: float) -> float:
    return max(0.0, now - attempt.launched_at)
