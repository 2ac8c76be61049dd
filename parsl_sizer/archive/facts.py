"""What can be told of an archive as a thing: where it is, how large, and what waits beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .base import ArchiveError
from .open import Where, is_on_network, open_archive, shown
from .schema import VERSION
from .spool import Spool
from .sql import SqlArchive

Counts = tuple[int | None, int | None, int | None]
"""Runs, attempts, and the version of the tables."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of an archive; None is what is not known."""

    where: str
    exists: bool
    fault: str | None = None
    """Why it cannot be used."""
    bytes: int | None = None
    runs: int | None = None
    attempts: int | None = None
    version: int | None = None
    """Of its tables."""
    newest_version: int = VERSION
    """That this package knows."""
    on_network: bool = False
    """Then every run writes to a file of its own, and they are merged."""
    waiting: tuple[str, ...] = ()
    """Files that are still to be put into it."""
    bad: tuple[str, ...] = ()
    """Files of lines that were not taken: they cannot be read, or are refused."""
    damaged: tuple[str, ...] = ()
    """Archives that were found damaged, and set aside."""


def facts(where: Where) -> Facts:
    """What is known of the archive at a place."""
    exists, size, beside = True, None, _Beside()
    if isinstance(where, Path):
        size, beside = size_of(where), _Beside.of(where)
        exists = size is not None
    fault = None
    counts: Counts = (None, None, None)
    if exists:
        try:
            counts = _counts(where)
        except ArchiveError as error:
            fault = str(error)
    runs, attempts, version = counts
    return Facts(
        shown(where),
        exists,
        fault,
        size,
        runs,
        attempts,
        version,
        on_network=isinstance(where, Path) and is_on_network(where),
        waiting=beside.waiting,
        bad=beside.bad,
        damaged=beside.damaged,
    )


def size_of(path: Path) -> int | None:
    """The bytes of an archive's file, with what has not been folded into it yet."""
    try:
        size = path.stat().st_size
        log = path.parent / f"{path.name}-wal"
        return size + (log.stat().st_size if log.exists() else 0)
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class _Beside:
    """The files beside an archive."""

    waiting: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: Path) -> _Beside:
        spool = Spool.beside(path).folder
        damaged = _listed(path.parent, f"{path.name}.damaged-*")
        return cls(
            _listed(spool, "*.jsonl"),
            _listed(spool, "*.bad"),
            tuple(name for name in damaged if not name.endswith(("-wal", "-shm", "-journal"))),
        )


def _listed(folder: Path, pattern: str) -> tuple[str, ...]:
    try:
        return tuple(str(path) for path in sorted(folder.glob(pattern)))
    except OSError:
        return ()


def _counts(where: Where) -> Counts:
    archive = open_archive(where, read_only=True)
    try:
        if not isinstance(archive, SqlArchive):
            return None, None, None
        version = (
            "PRAGMA user_version"
            if isinstance(where, Path)
            else "SELECT version FROM schema_version"
        )
        with archive._transaction():
            [(found,)] = archive._fetch(version)
            [(runs,)] = archive._fetch("SELECT COUNT(*) FROM runs")
            [(attempts,)] = archive._fetch("SELECT COUNT(*) FROM attempts")
        return runs, attempts, found
    finally:
        archive.close()
