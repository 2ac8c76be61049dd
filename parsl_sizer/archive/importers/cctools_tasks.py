"""A task of Work Queue or TaskVine while its log is read, and the outcomes of its attempts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.model import (
    NOTHING,
    Amounts,
    Attempt,
    Ending,
    Kind,
    Outcome,
    TaskInfo,
    Usage,
    exceeded,
)

from .cctools_resources import Resources, limits, measure, moment, peaks
from .cells import positive

DISK_FULL = frozenset({"DISK_ALLOC_FULL", "DISK_FULL"})
MONITORED = ("cpu_time", "virtual_memory", "max_concurrent_processes")
"""What only the resource monitor measures."""


@dataclass(slots=True)
class Running:
    """An attempt; what became of it is known before it is known what comes next."""

    since: float
    worker: str | None
    allocation: Amounts
    until: float | None = None
    outcome: Outcome | None = None


@dataclass(slots=True)
class Task:
    """A task that is not over."""

    task_id: int | str
    category: str
    submitted_at: float
    requested: Amounts
    attempts: int = 0
    running: Running | None = None

    def run(self, time: float, worker: str | None, allocation: Amounts) -> None:
        """One more attempt begins."""
        self.attempts += 1
        self.running = Running(time, worker, allocation)

    def lost(self, running: Running, time: float, gone: str | None) -> Outcome:
        """What became of an attempt without a result: its worker is gone, or gave it up."""
        usage = Usage(wall_s=max(0.0, time - running.since))
        outcome = self._outcome(running, Ending.LOST, time, usage)
        return outcome._replace(node_lost=gone is not None and gone == running.worker)

    def retrieved(
        self,
        running: Running,
        time: float,
        result: tuple[str, int],
        over: Resources,
        measured: Resources,
    ) -> Outcome:
        """What became of an attempt with a result: its name and the exit code of the command."""
        is_monitored = any(name in measured for name in MONITORED)
        peak = peaks(measured) if is_monitored else {}
        above = exceeded(running.allocation, peak)
        ending, exhausted = ending_of(result, over, above)
        until = running.until or time
        begun, ended = (moment(measured.get(f"time_worker_{end}")) for end in ("start", "end"))
        wall_s = positive(measure(measured.get("wall_time"), "s"))
        if wall_s is None and begun is not None and ended is not None and ended > begun:
            wall_s = ended - begun
        if wall_s is None:
            wall_s = max(0.0, until - running.since)
        usage = Usage(peak, wall_s, measure(measured.get("cpu_time"), "s"))
        return self._outcome(
            running,
            ending,
            moment(measured.get("end")) or until,
            usage,
            exhausted,
            held=is_monitored and (bool(exhausted) or not above),
        )

    def _outcome(
        self,
        running: Running,
        ending: Ending,
        ended_at: float,
        usage: Usage,
        exhausted: frozenset[Kind] = NOTHING,
        *,
        held: bool = False,
    ) -> Outcome:
        worker = running.worker
        attempt = Attempt(
            TaskInfo(self.task_id, self.category, self.submitted_at, requested=self.requested),
            self.attempts,
            running.allocation,
            worker,
            "imported",
            running.since,
            held,
        )
        host = (worker.rpartition(":")[0] or worker) if worker else None
        layers = (SAMPLED,) if usage.peak else ()
        return Outcome(attempt, ending, ended_at, usage, exhausted, host=host, layers=layers)


def ending_of(
    result: tuple[str, int], over: Resources, above: frozenset[Kind]
) -> tuple[Ending, frozenset[Kind]]:
    """How an attempt ended, and what it ran out of.

    Where the log does not say which limits were exceeded, those are meant of which the
    attempt was seen `above`. One that exceeded its time only was stopped, and needs no more.

    >>> ending_of(("RESOURCE_EXHAUSTION", 143), {"memory": [100, "MB"]}, NOTHING)
    (<Ending.EXHAUSTED: 'exhausted'>, frozenset({<Kind.MEMORY: 'memory'>}))
    """
    name, code = result
    if name == "SUCCESS":
        return (Ending.RAISED if code else Ending.DONE), NOTHING
    if name in DISK_FULL:
        return Ending.EXHAUSTED, frozenset({Kind.DISK})
    if name == "RESOURCE_EXHAUSTION":
        kinds = frozenset(limits(over)) if over else above
        return (Ending.EXHAUSTED if kinds or not over else Ending.LOST), kinds
    return Ending.LOST, NOTHING


def shared(amounts: dict[Kind, float]) -> Amounts:
    """The same amounts as one object: a million tasks may wait, and most are alike."""
    return _shared(tuple(amounts.items()))


@lru_cache(4096)
def _shared(items: tuple[tuple[Kind, float], ...]) -> Amounts:
    return dict(items)
