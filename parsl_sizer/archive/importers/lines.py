"""The project's own lines of JSON: what was exported, or set aside where it could not be kept.

Every line is an attempt with the run that it is of, and keeps it: what comes back is what
was written, and what an archive has already is not counted twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from parsl_sizer.archive.base import Entry
from parsl_sizer.archive.lines import LONGEST, BadLine, entry_of

from .base import ImportFailed, Notes

NAME = "lines"
MOST_REASONS = 20
"""Lines may be bad in any number of ways; so many are told apart."""
OTHER_REASONS = "not an entry, for other reasons"
HALF = "half of a character, which no archive can keep"
_HEAD = re.compile(rb'\s*\{\s*"run"\s*:\s*\{')


def recognises(path: Path, head: bytes) -> bool:
    """Whether it begins with an object that begins with a run."""
    return _HEAD.match(head) is not None


def read(path: Path, notes: Notes) -> Iterator[Entry]:
    """The attempts, in the order of the lines."""
    try:
        with path.open("rb") as file:
            while line := file.readline(LONGEST + 1):
                if line.isspace():
                    continue
                try:
                    entry = taken(line)
                except BadLine as error:
                    _skip(notes, str(error))
                    while len(line) > LONGEST and not line.endswith(b"\n"):
                        line = file.readline(LONGEST + 1)  # the rest of a line that is too long
                    continue
                notes.taken += 1
                yield entry
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ImportFailed(f"{path} cannot be read: {reason}.") from None


def taken(line: bytes) -> Entry:
    """The entry in a line that every archive can keep; raises `BadLine`."""
    entry = entry_of(line)
    _check(line)
    return entry


def _check(line: bytes) -> None:
    """Raise `BadLine` for a text that cannot be encoded: JSON can spell halves of characters."""
    if rb"\ud" in line.lower():
        try:
            json.dumps(json.loads(line), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BadLine(HALF) from None


def _skip(notes: Notes, reason: str) -> None:
    is_known = reason in notes.skipped or len(notes.skipped) < MOST_REASONS
    notes.skip(reason if is_known else OTHER_REASONS)
