"""Parsl's own `monitoring.db`: one attempt for every try of a task.

The tables are those of Parsl 2023 to 2026; what a version does not have is unknown. Each run
keeps Parsl's name for it, so that a database that has grown can be imported again.

What its monitor measures, and what we make of it:

- Memory is the resident memory of the task's process and its children, looked at every few
  seconds: the largest of these samples. Of a worker that is used again it has what earlier
  tasks left there, and in any case the monitor's own process.
- Processor time is that of the whole life of the process, so a task's is what was added
  between its first and its last sample. Where these are some seconds apart that gives the
  cores that it used on average, a lower bound of their peak.
- A try runs from when its worker says so until the worker says that it has ended. A worker
  that was lost never says it, so that the time until Parsl knew counts.
- Disk is the bytes ever read and written, not the space that was taken: no peak.

Times are those of the clocks of the machines, without a zone; this machine's is meant.
Of a run that goes on only the monitoring waits while we read, and nothing of it is lost.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from parsl_sizer.archive.base import SAMPLED, Entry, Run
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, TaskInfo, Usage

from .base import ImportFailed, Notes, amount
from .cells import MOST_ATTEMPTS, USELESS, kept, moment, positive
from .parsl_tables import NEEDED, OF_RUN, Row, missing, query
from .sqlite_file import MAGIC, opened

NAME = "parsl"
LEAST_S = 5.0
"""So far apart must the first and the last sample be to tell how many cores were used."""
MOST_INPUTS = 1000
"""Files of a task that are kept."""

BAD_ROW = "not a try of a task with a name"
JOINED = "joins other tasks"
MEMOISED = "memoised"
NEVER_RAN = "never ran, or nobody knows when"
NOT_OVER = "not over"

# Parsl wrote the errors' texts once, and writes their names now.
_LOST = re.compile(
    r"\b(?:(ManagerLost\(|loss of manager )|WorkerLost\(|loss of worker |was not transfered)"
)
_EXHAUSTED = "more resources than requested"
_FILE = re.compile(r"\burl=(.{1,4096}?) scheme=")


def recognises(path: Path, head: bytes) -> bool:
    """Whether it is a SQLite database with Parsl's tables of tasks and tries."""
    if not head.startswith(MAGIC):
        return False
    try:
        with opened(path) as database:
            return missing(database) is None
    except (sqlite3.Error, OSError, ValueError):
        return False


def read(path: Path, notes: Notes) -> Iterator[Entry]:
    """The tries that are over, in the order in which they ended."""
    try:
        with opened(path) as database:
            lacking = missing(database)
            if lacking:
                raise ImportFailed(
                    f"{path}: found no {lacking}, expected tables {' and '.join(NEEDED)} as "
                    "Parsl's monitoring makes them."
                )
            for values in database.execute(query(database)):
                row = Row._make(values)
                outcome = _outcome(row)
                if isinstance(outcome, str):
                    notes.skip(outcome)
                else:
                    notes.taken += 1
                    yield Entry(_run(*row[:OF_RUN]), outcome)
    except (sqlite3.Error, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ImportFailed(f"{path} cannot be read: {reason.lower()}.") from None


@lru_cache(64)
def _run(
    run_id: object, user: object, name: object, version: object, host: object, began: object
) -> Run:
    return Run(
        f"parsl-{_text(run_id)}",
        moment(_text(began)) or 0.0,
        user=_text(user),
        workflow=_text(name),
        host=_text(host),
        source=NAME,
        labels={"workflow_version": text} if (text := _text(version)) else {},
    )


def _outcome(row: Row) -> Outcome | str:
    """What became of a try, or why it is left out."""
    category, task_id, number = _text(row.task_func_name), _whole(row.task_id), _whole(row.try_id)
    if not category or not _text(row.run_id) or task_id is None:
        return BAD_ROW
    if number is None or number >= MOST_ATTEMPTS:
        return BAD_ROW
    ending = _ending(row)
    if not isinstance(ending, Ending):
        return ending
    running, returned = moment(_text(row.running)), moment(_text(row.returned))
    if running is None:
        return NEVER_RAN
    ended = moment(_text(row.running_ended)) or returned
    wall_s = ended - running if ended is not None and ended > running else None
    usage = _usage(row, wall_s)
    if not usage.peak and wall_s is None:
        return USELESS
    executor = _text(row.executor)
    task = TaskInfo(
        task_id,
        category,
        moment(_text(row.invoked)) or 0.0,
        labels={"executor": executor} if executor else {},
        inputs=inputs_of(row.inputs),
    )
    host = _text(row.hostname)
    attempt = Attempt(task, number + 1, {}, host, "imported", running, enforced=False)
    lost = _LOST.search(str(row.failure)) if ending is Ending.LOST else None
    return Outcome(
        attempt,
        ending,
        ended or running,
        usage,
        host=host,
        layers=(SAMPLED,) if usage.peak else (),
        node_lost=lost is not None and lost.group(1) is not None,
    )


def _ending(row: Row) -> Ending | str:
    """How a try ended, or why it does not count."""
    states = frozenset(str(row.states or "").split(","))
    failure = str(row.failure or "")
    if "memo_done" in states:
        return MEMOISED
    if row.executor == "_parsl_internal" or "joining" in states:
        return JOINED
    if "dep_fail" in states:
        return NEVER_RAN
    if failure or states & {"failed", "fail_retryable"}:
        if _LOST.search(failure):
            return Ending.LOST
        return Ending.EXHAUSTED if _EXHAUSTED in failure else Ending.RAISED
    # Without the table of states a try that has returned and not failed is done.
    return Ending.DONE if "exec_done" in states or (row.returned and not row.states) else NOT_OVER


def _usage(row: Row, wall_s: float | None) -> Usage:
    peak = {}
    memory = positive(amount(row.memory))
    if memory is not None:
        peak[Kind.MEMORY] = memory
    first, last = amount(row.cpu_first), amount(row.cpu_last)
    since, until = moment(_text(row.first_at)), moment(_text(row.last_at))
    cpu_s, span_s = None, (until or 0.0) - (since or 0.0)
    if since and span_s > 0 and first is not None and last is not None and last >= first:
        cpu_s = last - first
        if span_s >= LEAST_S and cpu_s > 0:
            peak[Kind.CORES] = cpu_s / span_s
    return Usage(peak, wall_s or 0.0, cpu_s)


def inputs_of(text: object) -> tuple[str, ...]:
    """The files in what Parsl wrote of a task's inputs.

    >>> inputs_of("[<File at 0x7f url=in.txt scheme=file netloc= path=in.txt filename=in.txt>]")
    ('in.txt',)
    """
    found = _FILE.finditer(text) if isinstance(text, str) else ()
    return tuple(kept(file.group(1)) for file, _ in zip(found, range(MOST_INPUTS), strict=False))


def _text(value: object) -> str | None:
    return kept(value).strip() or None if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None
