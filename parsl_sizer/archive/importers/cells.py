"""The cells of text files: tables with bounded lines, amounts with units, times.

Every importer that reads tables goes through here, so that all of them take the same
for unknown, and make their entries alike.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from parsl_sizer.archive.base import Entry, Run
from parsl_sizer.model import NOTHING, Attempt, Ending, Kind, Outcome, TaskInfo, Usage, exceeded

from .base import ImportFailed, Notes, amount, run_id_of

LONGEST = 1 << 20
"""No line has more characters."""
LONGEST_SPAN = 80
"""No duration has more: what is searched for in a text takes the square of its length."""
LONGEST_TEXT = 4096
"""Names and commands are kept up to here."""
MOST_ATTEMPTS = 10_000
"""No task was tried more often."""
LATEST = 253402300799.0
"""The end of the year 9999, in seconds: the last moment that has a date."""
UNKNOWN = frozenset({"", "-", "NA"})
"""Cells that say nothing."""
USELESS = "neither a peak nor a time"
RAGGED = "another number of cells than the header has"

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGTPE]?)(?:i?B)?", re.IGNORECASE)
_POWERS = {unit: 1024.0**power for power, unit in enumerate(("", "K", "M", "G", "T", "P", "E"))}
_SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)(?:\s+|$)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_CLOCK = re.compile(r"(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]+(?:\.[0-9]+)?)")


def rows(path: Path, separators: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that is not blank, and the line's number.

    They are separated by the first of `separators` that the first line has. In a
    comma-separated file a cell may be in quotes, but not go on in the next line.
    Bytes that are not UTF-8, and NULs, become the sign for a character that is not one.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            number, separator = 0, ""
            while line := file.readline(LONGEST + 1):
                number += 1
                if len(line) > LONGEST:
                    raise ImportFailed(
                        f"{path}, line {number}: found more than {LONGEST} characters, "
                        "expected a line of a table."
                    )
                line = line.rstrip("\n").replace("\0", "\ufffd")
                if line and not line.isspace():
                    separator = separator or separator_of(line, separators)
                    yield number, _split(line, separator)
    except OSError as error:
        raise _unreadable(path, error) from None


def separator_of(line: str, separators: str) -> str:
    """The first of some separators that a line has, or else the last of them."""
    return next((separator for separator in separators if separator in line), separators[-1])


def _split(line: str, separator: str) -> list[str]:
    if separator != "," or '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        return []


def records(
    path: Path, separators: str, needed: Sequence[str], notes: Notes
) -> Iterator[tuple[int, dict[str, str]]]:
    """What is known in each row, by the name of its column, and the row's line.

    The first line names the columns, and has to have those that are `needed`. Rows with
    more or fewer cells are left out.
    """
    table = rows(path, separators)
    line, header = next(table, (1, []))
    header = [column.strip() for column in header]
    missing = [column for column in needed if column not in header]
    if missing:
        raise ImportFailed(
            f"{path}, line {line}: found no column {missing[0]}, expected a header that names "
            f"{', '.join(needed)}."
        )
    for line, cells in table:
        if len(cells) != len(header):
            notes.skip(RAGGED)
            continue
        stripped = [cell.strip() for cell in cells]
        pairs = zip(header, stripped, strict=True)
        yield line, {column: cell for column, cell in pairs if cell not in UNKNOWN}


def first_line(head: bytes) -> str:
    """The first line among a file's first bytes; empty if it is not text.

    >>> first_line(b"task_id,hash\\r\\n1,ab")
    'task_id,hash'
    """
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].rstrip(b"\r")
    return "" if b"\0" in line else line.decode("utf-8", "replace")


def size(text: str | None) -> float | None:
    """The bytes that a number with a unit is, units being powers of 1024.

    >>> size("1.5 GB"), size("300M"), size("4096"), size("?")
    (1610612736.0, 314572800.0, 4096.0, None)
    """
    found = _SIZE.fullmatch(text) if text else None
    return amount(found.group(1), _POWERS[found.group(2).upper()]) if found else None


def span(text: str | None) -> float | None:
    """The seconds of a duration that is written with units.

    >>> span("2h 3m 4s"), span("1.5s"), span("80ms"), span("soon")
    (7384.0, 1.5, 0.08, None)
    """
    if not text or len(text) > LONGEST_SPAN or not _SPAN.match(text) or _SPAN.sub("", text):
        return None
    return amount(sum(float(number) * _SECONDS[unit] for number, unit in _SPAN.findall(text)))


def clock(text: str | None) -> float | None:
    """The seconds of a duration that is written as days, hours, minutes and seconds.

    >>> clock("1-02:03:04"), clock("02:03:04"), clock("03:04.5"), clock("UNLIMITED")
    (93784.0, 7384.0, 184.5, None)
    """
    found = _CLOCK.fullmatch(text) if text else None
    if not found:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return amount(days * 86400 + hours * 3600 + minutes * 60 + seconds)


def moment(text: str | None) -> float | None:
    """The epoch seconds of a time in ISO 8601; without a zone it is this machine's time.

    >>> moment("2020-12-27T18:23:37Z"), moment("Unknown")
    (1609093417.0, None)
    """
    try:
        return amount(datetime.fromisoformat((text or "").replace("Z", "+00:00")).timestamp())
    except (ValueError, OverflowError, OSError):
        return None


def epoch(number: float | None) -> float | None:
    """The number if it may be a moment, in seconds since the epoch."""
    return number if number is not None and 0 <= number <= LATEST else None


def positive(number: float | None) -> float | None:
    """The number, or None for 0: a peak of 0 is one that nobody had the time to see."""
    return number or None


def kept(text: str) -> str:
    """The text as it is kept: not too long, and without what no database takes.

    That is NULs, and the halves of characters that file names and JSON can hold.

    >>> kept("a\\0b"), len(kept("x" * 9999))
    ('a\ufffdb', 4096)
    """
    if "\0" in text or not text.isascii():
        text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def labelled(cells: dict[str, str], names: Sequence[str]) -> dict[str, object]:
    """Those of the cells that are kept as labels."""
    return {name: kept(cells[name]) for name in names if name in cells}


def known(**amounts: float | None) -> dict[Kind, float]:
    """The amounts that are known, by kind.

    >>> known(memory=1e9, disk=None)
    {<Kind.MEMORY: 'memory'>: 1000000000.0}
    """
    return {Kind(name): value for name, value in amounts.items() if value is not None}


def identity(name: str, path: Path) -> str:
    """The `run_id` of a file; `ImportFailed` if it cannot be read."""
    try:
        return run_id_of(name, path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> ImportFailed:
    return ImportFailed(f"{path} cannot be read: {(error.strerror or str(error)).lower()}.")


def finished(
    run: Run,
    task: TaskInfo,
    notes: Notes,
    peak: dict[Kind, float],
    wall_s: float | None,
    cpu_s: float | None = None,
    *,
    ending: Ending = Ending.DONE,
    exhausted: frozenset[Kind] = NOTHING,
    number: int = 1,
    host: str | None = None,
    launched_at: float | None = None,
    ended_at: float | None = None,
    layers: tuple[str, ...] = (),
    node_lost: bool = False,
) -> Entry | None:
    """The entry of an attempt that ran in what its task requested; None if it tells nothing.

    Who used more than that was not held to it.
    """
    if not peak and wall_s is None:
        notes.skip(USELESS)
        return None
    requested = task.requested
    held = not requested or bool(exhausted) or not exceeded(requested, peak)
    attempt = Attempt(task, number, requested, host, "imported", epoch(launched_at) or 0.0, held)
    usage = Usage(peak, wall_s or 0.0, None if cpu_s is None else amount(cpu_s))
    notes.taken += 1
    return Entry(
        run,
        Outcome(
            attempt,
            ending,
            epoch(ended_at) or 0.0,
            usage,
            exhausted,
            host=host,
            layers=layers,
            node_lost=node_lost,
        ),
    )
