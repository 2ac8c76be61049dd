"""Nextflow's trace files: `trace.txt`, a row for every task that it ran.

Tab-separated as Nextflow writes it, or comma-separated; with the raw numbers of
``trace.raw = true`` (bytes, milliseconds) or as people read them (``1.5 GB``, where a GB
is 1024**3 bytes as Nextflow means it, ``2h 3m 4s``). Times without a zone are taken for
this machine's.

The category is the process as its author calls it, without the workflows around it:
``NFCORE_RNASEQ:RNASEQ:ALIGN:STAR`` is ``STAR``. The bytes that a task read (`rchar`, else
`read_bytes`) stand for the size of its input. Nextflow looks at a task's memory every 1 to
30 seconds, so a peak is a lower bound. What it calls duration has the wait in the queue
in it and is not the time that a task ran.

A retry gets a new `task_id`; it is told by its name and its `attempt`, and kept under the
`task_id` of the first attempt.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from parsl_sizer.archive.base import SAMPLED, Entry, Run
from parsl_sizer.model import NOTHING, Ending, Kind, TaskInfo

from .base import Notes, amount
from .cells import (
    MOST_ATTEMPTS,
    epoch,
    finished,
    first_line,
    identity,
    kept,
    known,
    labelled,
    moment,
    positive,
    records,
    separator_of,
    size,
    span,
)

NAME = "nextflow"
SEPARATORS = "\t,"
OUT_OF_MEMORY = "137"
"""The exit status of a process that was killed: by far most often by whoever guards memory."""
LEFT_OUT = {
    "CACHED": "cached: it ran in an earlier run",
    "ABORTED": "aborted: it was stopped because of another task",
}
NOT_FINISHED = "not finished"
NO_NAME = "neither a process nor a name"
LABELS = ("process", "tag", "hash", "exit", "queue", "container", "workdir")
MOST_FAILED = 10_000
"""Failed attempts that are remembered until their retry; the oldest are forgotten."""
MEASURED = frozenset({"realtime", "duration", "peak_rss"})


def recognises(path: Path, head: bytes) -> bool:
    """Whether the first line has the columns that every useful trace has."""
    line = first_line(head)
    columns = set(line.split(separator_of(line, SEPARATORS)))
    return (
        "status" in columns
        and not columns.isdisjoint({"task_id", "hash"})
        and not columns.isdisjoint({"process", "name"})
        and not columns.isdisjoint(MEASURED)
    )


def read(path: Path, notes: Notes) -> Iterator[Entry]:
    """The tasks that ran to an end, good or bad, one by one."""
    run_id = identity(NAME, path)
    run: Run | None = None
    failed: dict[tuple[str, int], str] = {}
    for line, cells in records(path, SEPARATORS, ("status",), notes):
        status = cells.get("status", "")
        if status not in ("COMPLETED", "FAILED"):
            notes.skip(LEFT_OUT.get(status, NOT_FINISHED))
            continue
        process = cells.get("process") or cells.get("name", "").split(" (")[0]
        if not process:
            notes.skip(NO_NAME)
            continue
        if run is None:
            scope = process.split(":")[0] if ":" in process else None
            started_at = _moment(cells.get("submit")) or 0.0
            run = Run(run_id, started_at, workflow=scope, source=NAME)
        name = cells.get("name") or process
        number = _attempt(cells.get("attempt"))
        task_id = failed.pop((name, number - 1), None) or cells.get("task_id") or str(line)
        if status == "FAILED":
            failed[name, number] = task_id
            if len(failed) > MOST_FAILED:
                del failed[next(iter(failed))]
        if entry := _entry(run, task_id, number, process, cells, notes):
            yield entry


def _entry(
    run: Run, task_id: str, number: int, process: str, cells: dict[str, str], notes: Notes
) -> Entry | None:
    submitted_at, start = _moment(cells.get("submit")), _moment(cells.get("start"))
    ended_at, duration = _moment(cells.get("complete")), _seconds(cells.get("duration"))
    if ended_at is None and submitted_at and duration is not None:
        ended_at = submitted_at + duration
    wall_s = _seconds(cells.get("realtime"))
    if wall_s is None and start is not None and ended_at is not None:
        wall_s = amount(ended_at - start)
    if start is None and ended_at is not None and wall_s is not None:
        start = amount(ended_at - wall_s)
    busy = amount(cells.get("%cpu", "").rstrip("%"))
    requested = known(
        cores=positive(amount(cells.get("cpus"))),
        memory=positive(size(cells.get("memory"))),
        disk=positive(size(cells.get("disk"))),
    )
    read_bytes = size(cells.get("rchar"))
    read_bytes = size(cells.get("read_bytes")) if read_bytes is None else read_bytes
    ending, exhausted = Ending.DONE, NOTHING
    if cells["status"] == "FAILED":
        ending = Ending.RAISED
        if cells.get("exit") == OUT_OF_MEMORY and Kind.MEMORY in requested:
            ending, exhausted = Ending.EXHAUSTED, frozenset({Kind.MEMORY})
    script = cells.get("script")
    task = TaskInfo(
        kept(task_id),
        kept(process.split(":")[-1] or process),
        submitted_at or 0.0,
        {} if read_bytes is None else {"input_size": read_bytes},
        requested,
        labels=labelled(cells, LABELS),
        command=kept(script) if script else None,
    )
    return finished(
        run,
        task,
        notes,
        known(memory=positive(size(cells.get("peak_rss")))),
        wall_s,
        None if busy is None or wall_s is None else busy / 100 * wall_s,
        ending=ending,
        exhausted=exhausted,
        number=number,
        host=kept(cells["hostname"]) if "hostname" in cells else None,
        launched_at=start,
        ended_at=ended_at,
        layers=(SAMPLED,),
    )


def _attempt(text: str | None) -> int:
    number = amount(text)
    return int(number) if number is not None and 1 <= number <= MOST_ATTEMPTS else 1


def _seconds(text: str | None) -> float | None:
    """A duration: a bare number is milliseconds."""
    return amount(text, 0.001) if text and text.isdecimal() else span(text)


def _moment(text: str | None) -> float | None:
    """A time: a bare number is milliseconds since the epoch."""
    return epoch(amount(text, 0.001)) if text and text.isdecimal() else moment(text)
