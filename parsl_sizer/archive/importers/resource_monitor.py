"""Summaries of CCTools' `resource_monitor`: what one command used, or one each of many.

A summary is a JSON object, on one line or on many; files hold one, one after the other (as
Work Queue's ``*.summaries``), or a list. Until 2016 it was lines like ``wall_time: 2.01 s``,
with ``--`` after each summary. Memory and disk are in MB of 2**20 bytes.

Of the limits that the command ran in, a summary has only those that were exceeded, so no
other ones are known. A monitor that was to measure only names them too; what it did not stop
has kept its own exit status, and a 0 is that of a command that was done. Where Work Queue
wrote a summary of itself, that tells about the run. A task that is not named is known by its
place in the file, and its category, if it has none, is the program that it ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePath

from parsl_sizer.archive.base import SAMPLED, Entry, Run
from parsl_sizer.model import NOTHING, Attempt, Ending, Kind, Outcome, TaskInfo, Usage

from .base import ImportFailed, Notes, amount
from .cctools_resources import Resources, limits, lines, measure, moment, peaks
from .cctools_summaries import BAD_SUMMARY, objects, texts
from .cells import USELESS, identity, kept, positive

NAME = "resource_monitor"
MOST_TRIED = 1 << 20
"""Tasks remembered because they were not done at the first attempt."""
NOT_ITS_FAULT = frozenset({9, 15})
"""Signals that somebody else sent: SIGKILL and SIGTERM."""
MANAGER = "the summary of the manager itself"

_PAIR = re.compile(rb'"(?:wall_time|cpu_time|memory)"\s*:\s*\[')
_OLD = re.compile(rb"(?m)^(?:wall_time|cpu_time|resident_memory):[ \t]+[-0-9]")
_OLD_END = re.compile(rb"(?m)^(?:exit_type|exit_status):[ \t]+\S")


def recognises(path: Path, head: bytes) -> bool:
    """Whether it has the words of a summary, of today or of old."""
    if head.lstrip()[:1] in (b"{", b"["):
        is_ended = b'"exit_type"' in head or b'"monitor_version"' in head
        return is_ended and _PAIR.search(head) is not None
    return _OLD.search(head) is not None and _OLD_END.search(head) is not None


def read(path: Path, notes: Notes) -> Iterator[Entry]:
    """The commands, in the order of their summaries."""
    run = Run(identity(NAME, path), source=NAME)
    tried: dict[int | str, int] = {}
    place = 0
    for summary in _summaries(path, notes):
        if "exit_type" not in summary and "wall_time" not in summary:
            notes.skip(BAD_SUMMARY)
        elif "category" not in summary and ("master_name" in summary or _is_manager(summary)):
            notes.skip(MANAGER)
            run = _described(run, summary)
        else:
            place += 1
            outcome = _outcome(summary, place, tried)
            if outcome.usage.peak or outcome.usage.wall_s:
                notes.taken += 1
                yield Entry(run, outcome)
            else:
                notes.skip(USELESS)
    if not place and not notes.skipped:
        raise ImportFailed(f"{path}: found no summary, expected at least one.")


def _summaries(path: Path, notes: Notes) -> Iterator[Resources]:
    read = lines(path)
    for number, line in read:
        if line is None or (line and not line.startswith(("#", "-"))):
            rest = chain([(number, line)], read)
            if line and line.lstrip("\ufeff \t").startswith(("{", "[")):
                yield from objects(rest, notes)
            elif line and ":" in line[:80]:
                yield from texts(rest, notes)
            else:
                raise ImportFailed(
                    f"{path}, line {number}: found {(line or 'a line of more than 1 MB')[:60]!r}, "
                    "expected a summary of resource_monitor."
                )


def _is_manager(summary: Resources) -> bool:
    return summary.get("type") in ("work_queue", "vine", "taskvine")


def _described(run: Run, summary: Resources) -> Run:
    return Run(
        run.run_id,
        moment(summary.get("start")) or 0.0,
        user=_text(summary, "user"),
        workflow=_text(summary, "master_name") or _text(summary, "manager_name"),
        host=_text(summary, "host"),
        source=NAME,
    )


def _outcome(summary: Resources, place: int, tried: dict[int | str, int]) -> Outcome:
    over = summary.get("limits_exceeded")
    held = limits(over) if isinstance(over, Mapping) else {}
    ending = _ending(summary, held)
    exhausted = frozenset(held) if ending is Ending.EXHAUSTED else NOTHING
    task = _task(summary, place)
    number = tried.pop(task.task_id, 0) + 1
    if ending is not Ending.DONE:
        if len(tried) >= MOST_TRIED:
            del tried[next(iter(tried))]
        tried[task.task_id] = number
    peak = peaks(summary)
    begun, ended = moment(summary.get("start")), moment(summary.get("end"))
    wall_s = positive(measure(summary.get("wall_time"), "s"))
    if wall_s is None and begun and ended and ended > begun:
        wall_s = ended - begun
    usage = Usage(
        peak,
        wall_s or 0.0,
        measure(summary.get("cpu_time"), "s"),
        _rise(summary, peak.get(Kind.MEMORY), wall_s),
    )
    host = _text(summary, "host")
    is_held = not held or ending is not Ending.DONE
    attempt = Attempt(task, number, held, host, "imported", begun or 0.0, is_held)
    layers = (SAMPLED,) if peak else ()
    return Outcome(attempt, ending, ended or 0.0, usage, exhausted, host=host, layers=layers)


def _task(summary: Resources, place: int) -> TaskInfo:
    name = _text(summary, "task_id") or _text(summary, "taskid") or str(place)
    task_id = int(name) if name.isascii() and name.isdigit() and len(name) < 19 else name
    command = _text(summary, "command")
    program = PurePath(command.split()[0]).name if command and command.split() else ""
    return TaskInfo(task_id, _text(summary, "category") or program or "default", command=command)


def _ending(summary: Resources, held: Mapping[Kind, float]) -> Ending:
    """How it ended; one that only took too long was stopped, and needs no more of anything."""
    how = summary.get("exit_type")
    if how == "limits":
        if _status(summary) == 0:
            return Ending.DONE
        return Ending.EXHAUSTED if held or not summary.get("limits_exceeded") else Ending.LOST
    if how == "signal":
        signal = amount(summary.get("signal"))
        return Ending.LOST if signal is None or signal in NOT_ITS_FAULT else Ending.RAISED
    if how in ("normal", None):
        return Ending.RAISED if _status(summary) else Ending.DONE
    return Ending.LOST


def _status(summary: Resources) -> float | None:
    """The exit status; None if it is not said. Negative ones are those of signals."""
    status = summary.get("exit_status")
    number = amount(status)
    return 1.0 if number is None and status is not None else number


def _rise(
    summary: Resources, memory: float | None, wall_s: float | None
) -> tuple[tuple[float, float], ...]:
    """When it was seen to have the most memory; the units stood beside the times once."""
    times = summary.get("peak_times")
    at = measure(times.get("memory"), "s") if isinstance(times, Mapping) else None
    if memory is None or wall_s is None or at is None or at > wall_s:
        return ()
    return ((at, memory),)


def _text(summary: Resources, key: str) -> str | None:
    value = summary.get(key)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return kept(str(value)).strip() or None
