"""The project's own traces: CSV with a row for every finished task.

The columns are ``category,input_size,cores,memory_mb,disk_mb,time_s,user_memory_mb``, in
any order; others are ignored, and an empty cell is unknown. 1 MB is 10**6 bytes. A trace
knows neither when its tasks ran nor where; a task is called by its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from parsl_sizer.archive.base import Entry, Run
from parsl_sizer.model import MB, Kind, TaskInfo

from .base import ImportFailed, Notes, amount
from .cells import RAGGED, finished, first_line, identity, kept, rows

NAME = "trace_csv"
PEAKS = ("cores", "memory_mb", "disk_mb")
COLUMNS = ("category", "input_size", *PEAKS, "time_s", "user_memory_mb")
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
    category, in_bytes, cores, memory, disk, time, user = (
        header.index(column) if column in header else width for column in COLUMNS
    )
    for line, cells in table:
        if len(cells) != width:
            notes.skip(RAGGED)
            continue
        cells.append("")
        if not (called := cells[category].strip()):
            notes.skip(NO_CATEGORY)
            continue
        peak: dict[Kind, float] = {}
        if (value := _known(cells[cores])) is not None:
            peak[Kind.CORES] = value
        if (value := _known(cells[memory], MB)) is not None:
            peak[Kind.MEMORY] = value
        if (value := _known(cells[disk], MB)) is not None:
            peak[Kind.DISK] = value
        value = _known(cells[in_bytes])
        features = {} if value is None else {"input_size": value}
        value = _known(cells[user], MB)
        requested = {} if value is None else {Kind.MEMORY: value}
        task = TaskInfo(line, kept(called), 0.0, features, requested)
        if entry := finished(run, task, notes, peak, _known(cells[time])):
            yield entry


def _known(text: str, unit: float = 1.0) -> float | None:
    return amount(text, unit) if text else None  # of an empty cell float would make an error


def _columns(cells: list[str]) -> list[str]:
    return [cell.strip().lower() for cell in cells]


def _missing(header: list[str]) -> str:
    """The first column that a trace cannot do without and this one has not."""
    for column in ("category", "time_s"):
        if column not in header:
            return column
    return "" if set(PEAKS).intersection(header) else " or ".join(PEAKS)
