"""Entries in files beside an archive, until they can be put into it.

There a run keeps what it did where the archive cannot be written, and on a network file
system, on which many must not write to one database, always. Every file has one writer, who
holds a lock on it; who puts it into the archive renames it first, so that what its writer has
to add yet goes into another. An entry that is there already is not counted twice.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from parsl_sizer.model import logger_for

from .base import Archive, ArchiveError, Entry
from .divided import put
from .lines import BadLine, entry_of, line_of

logger = logger_for(__name__)

BATCH = 2000
WAITING, BAD = ".jsonl", ".bad"
"""The names of files that are put into the archive, and of what it does not take, end so."""


class Spool:
    """The files of entries in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def beside(cls, archive: Path) -> Spool:
        """The one of an archive in a file, or of a folder that was named as one, as `.`."""
        return cls(archive.parent / f"{archive.name}.spool")

    def append(self, name: str, entries: Iterable[Entry], suffix: str = WAITING) -> Path:
        """Write entries to the end of a file of this run's own, for good."""
        self._make()
        path = self.folder / f"{safe(name)}{suffix}"
        _write(path, "".join(f"{line_of(entry)}\n" for entry in entries))
        return path

    def merge(self, archive: Archive, *, own: str | None = None) -> int:
        """Put the files into the archive that no living run writes to, and the `own`.

        Gives how many entries were new. Only one process at a time does this; others go on.
        """
        if not self.folder.is_dir():
            return 0
        with self._alone() as is_alone:
            if not is_alone:
                return 0
            new, faults = 0, []
            for path in self._finished(own):
                try:
                    new += self._merge(path, archive)
                except Exception as error:  # the others are to be merged all the same
                    faults.append(f"{path} cannot be added: {error}")
            if faults:
                raise ArchiveError(faults[0])
            return new

    def _make(self) -> None:
        """Make the folder: what is in it is nobody else's business."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """While this lasts, nobody else merges the file of this name."""
        self._make()
        path = self.folder / f"{safe(name)}.lock"
        with path.open("w") as lock:
            try:
                with contextlib.suppress(OSError):  # not every file system has locks
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
            finally:
                path.unlink(missing_ok=True)

    def _finished(self, own: str | None) -> list[Path]:
        return [
            path
            for path in [*self.folder.glob("*.merging"), *sorted(self.folder.glob("*.jsonl"))]
            if path.suffix == ".merging"  # of a process that was killed
            or (own is not None and path.stem == safe(own))
            or not _is_held(path)
        ]

    def _merge(self, path: Path, archive: Archive) -> int:
        new, bad = 0, list[str]()
        batch: list[Entry] = []
        if path.suffix != ".merging":
            path = path.rename(path.with_name(f"{path.stem}-{os.urandom(4).hex()}.merging"))
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    batch.append(entry_of(line))
                except BadLine:  # the last one of a run that was killed, say
                    bad.append(line if line.endswith("\n") else f"{line}\n")
                    continue
                if len(batch) >= BATCH:
                    new += self._put(batch, archive, bad)
                    batch = []
        new += self._put(batch, archive, bad)
        if bad:
            # A new name: who was killed here may have left such a file, and somebody mended it.
            aside = path.with_name(f"{path.stem}-{os.urandom(4).hex()}{BAD}")
            _write(aside, "".join(bad))
            logger.warning(
                "%s lines of %s are no entries or refused; they are kept in %s",
                len(bad),
                path,
                aside,
            )
        path.unlink()
        return new

    @staticmethod
    def _put(batch: list[Entry], archive: Archive, bad: list[str]) -> int:
        new, refusals = put(archive.record, batch)
        bad += [f"{line_of(entry)}\n" for refusal in refusals for entry in refusal.entries]
        return new

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        with (self.folder / "merging").open("w") as lock:
            yield not _is_locked(lock)


def _write(path: Path, lines: str) -> None:
    """Write lines to the end of a file, for good."""
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # half a line, of when the disk was full
                file.write(b"\n")
        file.write(lines.encode())
        file.flush()
        os.fsync(file.fileno())


def merged(spool: Spool, archive: Archive, own: str | None = None) -> int:
    """`Spool.merge`; errors of the file system come as `ArchiveError`."""
    try:
        return spool.merge(archive, own=own)
    except OSError as error:
        raise ArchiveError(f"The files in {spool.folder} cannot be read: {error}.") from error


def safe(name: str) -> str:
    """A name that can be a file's."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)[:100]


def _is_held(path: Path) -> bool:
    """Whether a living run still writes to the file."""
    try:
        with path.with_suffix(".lock").open("r+") as file:  # to lock it, NFS wants to write it
            return _is_locked(file)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_locked(file: TextIO) -> bool:
    """Whether another process holds it; where there are no locks, nobody does."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
    return False
