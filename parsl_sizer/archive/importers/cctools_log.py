"""Transaction logs of Work Queue and TaskVine: all that became of every task.

Each line is a time in microseconds, the manager's process, and what happened to a task, a
worker or a category. Of a task it says

    WAITING category (FIRST|MAX)_RESOURCES {requested}    TaskVine: READY, and the attempt
    RUNNING worker (FIRST|MAX)_RESOURCES {allocated}
    WAITING_RETRIEVAL worker
    RETRIEVED result exit-code {limits exceeded} {measured}
    DONE result exit-code [the same again]

A task that ran out of its first allocation is RETRIEVED and then waits again; one whose
worker was lost waits again without that. TaskVine says only when a task is DONE that it was
cancelled, so an attempt is told when it is known what comes after it.

Without its resource monitor Work Queue measures nothing, but TaskVine writes what a task was
allocated as if it had been measured. Only the monitor knows of processor time, so without
that there are no peaks here, and nobody was held to the allocation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from parsl_sizer.archive.base import Entry, Run
from parsl_sizer.model import Outcome

from .base import ImportFailed, Notes, amount
from .cctools_resources import TOO_LONG, limits, lines, parsed
from .cctools_tasks import Task, shared
from .cells import epoch, identity, kept

NAME = "cctools"
MOST_OPEN = 1 << 20
"""Tasks remembered because they are not over; older ones are forgotten."""
MOST_WORKERS = 1 << 16
"""Workers whose addresses are remembered."""
CANCELLED = frozenset({"CANCELED", "CANCELLED"})

BAD_LINE = "a line that is not a transaction"
CUT_OFF = "not over when the log ends"
FORGOTTEN = "too many tasks at once"
NEVER_RAN = "never ran"
STOPPED = "cancelled"
UNKNOWN_TASK = "begun before the log begins"

_HEAD = re.compile(
    rb"# time (?:manager|master)_pid |[0-9]{16} [0-9]+ (?:MANAGER|MASTER|WORKER|CATEGORY|TASK) "
)
_LINE = re.compile(r"([0-9]{10,17}) [0-9]+ ([A-Z]+) (.+)")
_TASK = re.compile(r"([0-9]{1,18}) ([A-Z_]+) ?(.*)")
_WAITING = re.compile(r"(.+?) (?:FIRST|MAX)_RESOURCES\s+(?:[0-9]+\s+)?(?={)")
_RUNNING = re.compile(r"(\S+)\s+(?:FIRST|MAX)_RESOURCES\s+(?={)")
_ENDED = re.compile(r"([A-Z_]+)\s*(-?[0-9]{1,18})?\s*")


def recognises(path: Path, head: bytes) -> bool:
    """Whether it begins like a log of transactions, or with their description."""
    return _HEAD.match(head.lstrip()) is not None


def read(path: Path, notes: Notes) -> Iterator[Entry]:
    """The attempts, in the order in which they were known to be over."""
    log = _Log(Run(identity(NAME, path), source=NAME), notes)
    is_log = False
    for number, line in lines(path):
        found = _LINE.fullmatch(line) if line else None
        time = epoch(amount(found.group(1), 1e-6)) if found else None
        if found is not None and time is not None:
            is_log = True
            yield from log.told(time, found.group(2), found.group(3))
        elif line is None or (line and not line.startswith("#")):
            if not is_log:
                raise ImportFailed(
                    f"{path}, line {number}: found {(line or TOO_LONG)[:60]!r}, expected a "
                    "transaction of Work Queue or TaskVine."
                )
            notes.skip(BAD_LINE if line else TOO_LONG)
    yield from log.ended()


@dataclass
class _Log:
    """What is known at one place in the log."""

    run: Run
    notes: Notes
    tasks: dict[int, Task] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    gone: str | None = None
    managers: int = 0
    has_tasks: bool = False

    def told(self, time: float, subject: str, event: str) -> Iterator[Entry]:
        """What is over with this line."""
        if not self.run.started_at:
            self.run = Run(self.run.run_id, time, source=NAME)
        if subject == "TASK":
            yield from self._task(time, event)
        elif subject == "WORKER":
            self._worker(event.split())
        elif subject in ("MANAGER", "MASTER") and "START" in event.split() and self.has_tasks:
            yield from self.ended()  # another manager goes on in the same file
            self.managers, self.has_tasks = self.managers + 1, False

    def ended(self) -> Iterator[Entry]:
        """What was over, and nothing came after it."""
        for task in self.tasks.values():
            if task.running is not None and task.running.outcome is not None:
                yield self._taken(task.running.outcome)
            else:
                self.notes.skip(CUT_OFF)
        self.tasks.clear()

    def _worker(self, words: list[str]) -> None:
        """Work Queue knows workers by their address, TaskVine by a name that they give."""
        address = next((word for word in words[1:4] if ":" in word), None)
        if "DISCONNECTION" in words:
            self.gone = self.addresses.pop(words[0], address) or words[0]
        elif "CONNECTION" in words and address:
            if len(self.addresses) >= MOST_WORKERS:
                self.addresses.clear()
            self.addresses[words[0]] = address

    def _task(self, time: float, event: str) -> Iterator[Entry]:
        found = _TASK.fullmatch(event)
        if found is None:
            self.notes.skip(BAD_LINE)
            return
        self.has_tasks = True
        key, state, rest = int(found.group(1)), found.group(2), found.group(3)
        task = self.tasks.get(key)
        if state in ("WAITING", "READY"):
            if task is None:
                self._begins(time, key, rest)
            else:
                yield from self._waits_again(time, task)
        elif task is None:
            if state == "DONE":
                self.notes.skip(UNKNOWN_TASK)
        elif state == "RUNNING":
            self._runs(time, task, rest)
        elif state == "WAITING_RETRIEVAL" and task.running is not None:
            task.running.until = time
        elif state in CANCELLED or (state == "DONE" and rest.split(" ")[0] in CANCELLED):
            del self.tasks[key]
            self.notes.skip(STOPPED)
        elif state in ("RETRIEVED", "DONE"):
            self._ends(time, task, rest)
            if state == "DONE":
                del self.tasks[key]
                yield from self._is_over(task)

    def _begins(self, time: float, key: int, rest: str) -> None:
        found = _WAITING.match(rest)
        if found is None:
            self.notes.skip(BAD_LINE)
            return
        if len(self.tasks) >= MOST_OPEN:
            del self.tasks[next(iter(self.tasks))]
            self.notes.skip(FORGOTTEN)
        task_id = f"{self.managers + 1}.{key}" if self.managers else key
        requested = shared(limits(parsed(rest, found.end())[0]))
        self.tasks[key] = Task(task_id, _named(found.group(1)), time, requested)

    def _waits_again(self, time: float, task: Task) -> Iterator[Entry]:
        running = task.running
        if running is not None:
            task.running = None
            yield self._taken(running.outcome or task.lost(running, time, self.gone))

    def _runs(self, time: float, task: Task, rest: str) -> None:
        found = _RUNNING.match(rest)
        if found is None:
            self.notes.skip(BAD_LINE)
            return
        if task.running is not None:
            self.notes.skip(CUT_OFF)
        worker = kept(self.addresses.get(found.group(1), found.group(1)))
        task.run(time, worker, shared(limits(parsed(rest, found.end())[0])))

    def _ends(self, time: float, task: Task, rest: str) -> None:
        found = _ENDED.match(rest)
        running = task.running
        if found is None or running is None:
            if found is None:
                self.notes.skip(BAD_LINE)
        elif running.outcome is None:
            over, end = parsed(rest, found.end())
            measured, _ = parsed(rest[end:].lstrip())
            result = found.group(1), int(found.group(2) or 0)
            running.outcome = task.retrieved(running, time, result, over, measured)

    def _is_over(self, task: Task) -> Iterator[Entry]:
        if task.running is None or task.running.outcome is None:
            self.notes.skip(NEVER_RAN)
        else:
            yield self._taken(task.running.outcome)

    def _taken(self, outcome: Outcome) -> Entry:
        self.notes.taken += 1
        return Entry(self.run, outcome)


@lru_cache(4096)
def _named(category: str) -> str:
    """The category as one object, however many tasks are of it."""
    return kept(category)
