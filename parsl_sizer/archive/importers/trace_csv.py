"""The project's own traces: CSV with a row for every finished task.

The columns are ``category,input_size,cores,memory_mb,disk_mb,time_s,user_memory_mb``, in
any order; others are ignored, and an empty cell is unknown. 1 MB is 10**6 bytes. A trace
knows neither when its tasks ran nor where; a task is called by its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from parsl_sizer.archive.base import Entry, Run
from parsl_sizer.model import MB, Kind, TaskInfo

from .base import ImportFailed, Notes, amount
from .cells import RAGGED, finished, first_line, identity, kept, rows

NAME = "trace_csv"
PEAKS = ("cores", "memory_mb", "disk_mb")
COLUMNS = ("category", "input_size", *PEAKS, "time_s", "user_memory_mb")
UNITS = (1.0, 1.0, MB, MB, 1.0, MB)
"""Of what follows the category."""
NO_CATEGORY = "no category"


def recognises(path: Path, head: bytes) -> bool:
    """Whether the first line names a category, a time and a peak."""
    return not _missing(_columns(first_line(head).split(",")))


def read(path: Path, notes: Notes) -> Iterator[Entry]:
    """The tasks of a trace, one by one."""
    run = Run(identity(NAME, path), workflow=kept(path.stem), source=NAME)
    table = rows(path, ",")
    line, cells = next(table, (1, []))
    header = _columns(cells)
    if missing := _missing(header):
        raise ImportFailed(
            f"{path}, line {line}: found no column {missing}, expected a header like "
            f"{','.join(COLUMNS)}."
        )
    width = len(header)
    # A cell is appended to every row for the columns that this trace does not have.
    places = [header.index(column) if column in header else width for column in COLUMNS]
    wanted = itemgetter(*places)
    for line, cells in table:
        if len(cells) != width:
            notes.skip(RAGGED)
            continue
        cells.append("")
        called, *amounts = wanted(cells)
        if not (called := called.strip()):
            notes.skip(NO_CATEGORY)
            continue
        in_bytes, cores, memory, disk, time_s, user = [
            # Of an empty cell float would make an error, which takes long.
            amount(text, unit) if text else None
            for text, unit in zip(amounts, UNITS, strict=True)
        ]
        peak: dict[Kind, float] = {}
        if cores is not None:
            peak[Kind.CORES] = cores
        if memory is not None:
            peak[Kind.MEMORY] = memory
        if disk is not None:
            peak[Kind.DISK] = disk
        features = {} if in_bytes is None else {"input_size": in_bytes}
        requested = {} if user is None else {Kind.MEMORY: user}
        task = TaskInfo(line, kept(called), 0.0, features, requested)
        if entry := finished(run, task, notes, peak, time_s):
            yield entry


def _columns(cells: list[str]) -> list[str]:
    return [cell.strip().lower() for cell in cells]


def _missing(header: list[str]) -> str:
    """The first column that a trace cannot do without and this one has not."""
    for column in ("category", "time_s"):
        if column not in header:
            return column
    return "" if set(PEAKS).intersection(header) else " or ".join(PEAKS)
