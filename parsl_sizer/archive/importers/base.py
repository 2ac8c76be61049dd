"""What every importer has in common.

An importer is a module with

    NAME                                   what `Run.source` says, such as "nextflow"
    recognises(path, head) -> bool         whether a file with these first bytes is its format
    read(path, notes) -> Iterator[Entry]   its finished attempts, one by one

It takes what it understands, tells `notes` what it left out and why, and raises
`ImportFailed`, with one sentence that says where and what was expected, for a file that is
not what it seemed. It executes and unpickles nothing, and holds a bounded part of the file.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from parsl_sizer.archive.base import Entry
from parsl_sizer.model import SizerError

HEAD = 1 << 16
"""So many first bytes of a file are looked at to recognise its format."""
MOST = 1e18
"""No amount, size or time is larger."""


class ImportFailed(SizerError):
    """A file that cannot be imported; the message says why."""


class Notes:
    """What an import took, and what it left out and why."""

    def __init__(self) -> None:
        self.taken = 0
        self.skipped: Counter[str] = Counter()

    def skip(self, reason: str, count: int = 1) -> None:
        """Leave something out; the same reason is to be said in the same words."""
        self.skipped[reason] += count


class Importer(Protocol):
    """A module of this package."""

    NAME: str

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether a file that begins like this is of this format."""
        ...

    def read(self, path: Path, notes: Notes) -> Iterator[Entry]:
        """Its attempts, one by one."""
        ...


def run_id_of(name: str, path: Path) -> str:
    """The identity of a file's content, so that importing it again adds nothing."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return f"{name}-{digest.hexdigest()[:16]}"


def amount(value: object, unit: float = 1.0) -> float | None:
    """The number in a cell, in units of 1; None if it is not one that can be.

    >>> amount("1.5", 1e9), amount("1_000"), amount(True), amount("-1"), amount("nan")
    (1500000000.0, None, None, None, None)
    """
    try:
        number = float(value) * unit  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    if not 0 <= number <= MOST:
        return None
    is_one = "_" not in value if type(value) is str else not isinstance(value, bool)
    return number if is_one else None
