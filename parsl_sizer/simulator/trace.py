"""Reading and writing traces of finished tasks.

A trace is CSV with the columns of `COLUMNS` in any order. Other columns are
ignored, optional ones may be missing, and an empty cell is unknown. Rows are
read one by one, so a trace may be larger than memory.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

from parsl_sizer.model import MB, Amounts, Kind, TaskInfo, TraceError

COLUMNS = (
    "category",
    "input_size",
    "cores",
    "memory_mb",
    "disk_mb",
    "time_s",
    "user_memory_mb",
)
PEAKS = {Kind.CORES: "cores", Kind.MEMORY: "memory_mb", Kind.DISK: "disk_mb"}
"""The columns that hold a task's peaks; a trace has at least one of them."""

LARGEST = 1e100
"""No cell may hold more, so that no product of two of them overflows."""

_UNITS = {"input_size": "bytes", "cores": "cores", "time_s": "seconds"}
_SHOWN = 40


class _Reader(Protocol):
    """What the type of `csv.reader` is; it has no name to import."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]: ...


@dataclass(frozen=True, slots=True)
class Row:
    """A finished task: what was known before it, and what it turned out to use."""

    line: int
    task: TaskInfo
    peak: Amounts
    time_s: float


def read(path: str | os.PathLike[str], *, name: str | None = None) -> Iterator[Row]:
    """The rows of a trace, one by one; `name` stands for the path in messages.

    Raises `TraceError`, with one sentence that says where the trace is malformed and
    what was expected there, when the iteration gets to that place.
    """
    shown = name or os.fspath(path)
    with _open(path, shown) as file:
        yield from parse(file, shown)


@contextmanager
def _open(path: str | os.PathLike[str], shown: str) -> Iterator[TextIO]:
    try:
        # Bytes that are not UTF-8 pass as surrogates, so that the message can name their line.
        with Path(path).open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
            yield file
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TraceError(f"The trace {shown} cannot be read: {reason}.") from None


def known_kinds(path: str | os.PathLike[str], *, name: str | None = None) -> tuple[Kind, ...]:
    """The kinds of which at least one row of a trace has an amount.

    What no row knows is not sized: reserving it would leave nodes idle for nothing.
    """
    shown = name or os.fspath(path)
    with _open(path, shown) as file, _reading(file, shown) as reader:
        header = _header(reader, shown)
        unseen = {kind: header.index(column) for kind, column in PEAKS.items() if column in header}
        known = set()
        for cells in reader:
            for kind in [k for k, at in unseen.items() if at < len(cells) and cells[at].strip()]:
                known.add(kind)
                del unseen[kind]
            if not unseen:
                break
    return tuple(kind for kind in PEAKS if kind in known)


def parse(lines: Iterable[str], name: str = "trace") -> Iterator[Row]:
    """The rows of a trace that is already open as text.

    >>> [row] = parse(["category,time_s,memory_mb", "align,60,1500"])
    >>> row.task.category, row.peak[Kind.MEMORY], row.time_s
    ('align', 1500000000.0, 60.0)
    """
    with _reading(lines, name) as reader:
        header = _header(reader, name)
        yield from _rows(reader, header, name)


@contextmanager
def _reading(lines: Iterable[str], name: str) -> Iterator[_Reader]:
    reader = csv.reader(lines, skipinitialspace=True)
    try:
        yield reader
    except csv.Error as error:
        place = f"{name}, line {reader.line_num}"
        raise TraceError(f"{place}: {error}; expected comma-separated values.") from None


def _header(reader: _Reader, name: str) -> list[str]:
    expected = f"expected a header like {','.join(COLUMNS)}"
    cells = next(iter(reader), None)
    if cells is None:
        raise TraceError(f"The trace {name} is empty; {expected}.")
    header = [cell.strip().lower() for cell in cells]
    if not _is_text("".join(header)):
        raise TraceError(f"{name}, line 1: {_quoted(','.join(cells))} is not UTF-8; {expected}.")
    twice = [column for column in COLUMNS if header.count(column) > 1]
    if twice:
        raise TraceError(f"{name}, line 1: column {twice[0]} appears twice; {expected}.")
    missing = [column for column in ("category", "time_s") if column not in header]
    if not missing and not set(PEAKS.values()).intersection(header):
        missing = [" or ".join(PEAKS.values())]
    if missing:
        line = _quoted(",".join(cells))
        raise TraceError(f"{name}, line 1: {line} has no column {missing[0]}; {expected}.")
    return header


def _rows(reader: _Reader, header: list[str], name: str) -> Iterator[Row]:
    width = len(header)
    # A cell is appended to every row for the columns that this trace does not have.
    category, size, cores, memory, disk, time, user = (
        header.index(column) if column in header else width for column in COLUMNS
    )
    last, found = 1, False
    for cells in reader:
        line, last = last + 1, reader.line_num  # a quoted cell may span lines
        if len(cells) != width:
            if not cells:
                continue
            cells = _fitted(cells, header, f"{name}, line {line}")
        cells.append("")
        try:
            peak: dict[Kind, float] = {}
            if text := cells[cores]:
                peak[Kind.CORES] = _number(text)
            if text := cells[memory]:
                peak[Kind.MEMORY] = _number(text) * MB
            if text := cells[disk]:
                peak[Kind.DISK] = _number(text) * MB
            features = {"input_size": _number(text)} if (text := cells[size]) else {}
            requested = {Kind.MEMORY: _number(text) * MB} if (text := cells[user]) else {}
            time_s = _number(text) if (text := cells[time]) else 0.0
        except ValueError:
            raise _fault(cells, header, f"{name}, line {line}") from None
        found = True
        label = cells[category]
        if not (label.isascii() or _is_text(label)):
            raise _fault(cells, header, f"{name}, line {line}")
        yield Row(line, TaskInfo(line, label, 0.0, features, requested), peak, time_s)
    if not found:
        raise TraceError(f"The trace {name} has a header but no tasks; expected a line per task.")


def _number(text: str) -> float:
    value = float(text)
    if 0.0 <= value <= LARGEST and "_" not in text:
        return value
    raise ValueError


def _fitted(cells: list[str], header: list[str], place: str) -> list[str]:
    """The cells without the empty ones after the last column."""
    width = len(header)
    if len(cells) < width:
        raise TraceError(
            f"{place}, column {header[len(cells)]}: found the end of the line after "
            f"{_quoted(cells[-1])}, expected {width} cells, as many as the header has."
        )
    surplus = "".join(cells[width:])
    if surplus:
        raise TraceError(
            f"{place}, after column {header[-1]}: found {_quoted(surplus)}, expected the end of "
            f"the line, as the header has {width} columns (a cell with a comma needs quotes)."
        )
    return cells[:width]


def _fault(cells: list[str], header: list[str], place: str) -> TraceError:
    """What is wrong with the first bad cell of a row."""
    for column, text in zip(header, cells, strict=False):
        if column not in COLUMNS or not text:
            continue
        if column == "category":
            if _is_text(text):
                continue
            expected = "text in UTF-8"
        else:
            try:
                _number(text)
                continue
            except ValueError:
                unit = _UNITS.get(column, "MB")
            expected = f"a number of {unit} from 0 to {LARGEST:g}, or an empty cell for unknown"
        return TraceError(f"{place}, column {column}: found {_quoted(text)}, expected {expected}.")
    raise AssertionError("called for a row without fault")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _quoted(text: str) -> str:
    """A value of the file as a message can show it: short, printable, its bytes told."""
    shortened = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    decoded = shortened.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "'" + "".join(c if c.isprintable() else repr(c)[1:-1] for c in decoded) + "'"


def write(rows: Iterable[Row], file: TextIO) -> int:
    """Write a trace, and say how many tasks it has.

    >>> import sys
    >>> write(parse(["category,time_s,memory_mb", "align,60,1500"]), sys.stdout)
    category,input_size,cores,memory_mb,disk_mb,time_s,user_memory_mb
    align,,,1500,,60,
    1
    """
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    count = 0
    for row in rows:
        writer.writerow(as_cells(row).values())
        count += 1
    return count


def as_cells(row: Row) -> dict[str, str | float | None]:
    """What the columns of a trace hold for a row, None where it is unknown."""
    peak, task = row.peak, row.task
    values = {
        "input_size": task.features.get("input_size"),
        "cores": peak.get(Kind.CORES),
        "memory_mb": _mb(peak.get(Kind.MEMORY)),
        "disk_mb": _mb(peak.get(Kind.DISK)),
        "time_s": row.time_s,
        "user_memory_mb": _mb(task.requested.get(Kind.MEMORY)),
    }
    return {"category": task.category} | {name: _whole(value) for name, value in values.items()}


def _mb(amount: float | None) -> float | None:
    return None if amount is None else amount / MB


def _whole(value: float | None) -> float | None:
    """4.0 as 4: traces are read by people too."""
    return int(value) if value is not None and value == int(value) else value
