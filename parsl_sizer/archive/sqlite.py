"""An archive in one file, for one user: SQLite."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import compress, groupby, repeat
from operator import is_not
from pathlib import Path
from typing import Any

from .base import ArchiveError, Refused
from .schema import MIGRATIONS, VERSION
from .sql import ATTEMPT_COLUMNS, SqlArchive, insertion, selection

BUSY_S = 10.0
"""So long another process that writes is waited for."""
BROKEN = ("not a database", "malformed")
"""What SQLite says of a file that is damaged, or is something else."""
HEAD, NAMES = b"SQLite format 3\0", (".sqlite3", ".sqlite", ".db")
"""How a database begins, and how the names end of files that once were one."""
MANY, LARGE_CACHE_KB = 10_000, 32_000
"""Who writes so many rows at a time, as an import does, is given so much memory; a run is not."""
UNSUPPORTED = "binding parameter"
"""What it says of a value of a kind that it does not know."""

File = tuple[int, int]
"""A file, whatever its name is."""


class Damaged(ArchiveError):
    """An archive that cannot be read any more; no file of another kind."""


class Empty(ArchiveError):
    """An archive to be read that nothing was recorded in yet."""


class Newer(ArchiveError):
    """An archive that was written by a newer version of this package."""


class SqliteArchive(SqlArchive):
    """One file. With `shares_log` several processes write without waiting for each other
    long: not on a network file system, which cannot share memory."""

    def __init__(self, path: Path, *, shares_log: bool = True, read_only: bool = False) -> None:
        super().__init__()
        self.path = path
        self._is_read_only = read_only
        with _told(path):
            if path.is_dir():
                raise IsADirectoryError("it is a folder; name a file in it")
            if not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
            uri = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
            self._connection = sqlite3.connect(
                uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
        try:
            with _told(path):
                self._prepare(shares_log=shares_log, read_only=read_only)
            self.file = file_at(path)
        except BaseException:
            self._connection.close()
            raise

    def has_moved(self) -> bool:
        """Whether it has another name by now, or none: what is written to it is not found."""
        return file_at(self.path) != self.file

    def close(self) -> None:
        """Let go of it, with all in its one file if nobody is writing just now."""
        if not self._is_read_only:
            with suppress(sqlite3.Error):  # SQLite itself does it only if the last one may write
                self._connection.execute("PRAGMA busy_timeout = 0")
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    def _prepare(self, *, shares_log: bool, read_only: bool) -> None:
        execute = self._connection.execute
        execute("PRAGMA foreign_keys = ON")
        # First: the tables of one that another process is about to begin come with its version.
        [(tables,)] = execute("SELECT COUNT(*) FROM sqlite_master")
        [(version,)] = execute("PRAGMA user_version")
        if version > VERSION:
            raise Newer(
                f"The archive {self.path} has version {version} of its tables, and this version "
                f"of parsl_sizer knows up to {VERSION}: please upgrade it."
            )
        if tables and not version:
            raise ArchiveError(
                f"The file {self.path} is a database of something else and was left as it is: "
                "please name another."
            )
        if read_only:
            if not tables:
                raise Empty(f"The archive {self.path} is empty: nothing was recorded in it yet.")
            if version < VERSION:
                there = execute("SELECT name FROM pragma_table_info('attempts')")
                self._attempt = selection({name for (name,) in there})
            return
        self._set_journal("wal" if shares_log else "delete")
        execute("PRAGMA synchronous = NORMAL" if shares_log else "PRAGMA synchronous = FULL")
        execute("PRAGMA wal_autocheckpoint = 10000")
        if version < VERSION:
            self._migrate()

    def _set_journal(self, mode: str) -> None:
        """How changes are kept safe; SQLite itself does not wait for who is about to say that."""
        until = time.monotonic() + BUSY_S
        while self._connection.execute("PRAGMA journal_mode").fetchone() != (mode,):
            try:
                self._connection.execute(f"PRAGMA journal_mode = {mode}")
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def _migrate(self) -> None:
        execute = self._connection.execute
        for number in range(VERSION):
            execute("BEGIN IMMEDIATE")
            try:
                [(version,)] = execute("PRAGMA user_version")
                if version == number:  # else another process was quicker
                    for statement in MIGRATIONS[number]:
                        execute(statement)
                    execute(f"PRAGMA user_version = {number + 1}")
                execute("COMMIT")
            except BaseException:
                execute("ROLLBACK")
                raise

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[None]:
        execute = self._connection.execute
        with _told(self.path):
            # Who reads first and then writes is not let wait for others: it fails at once.
            execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                yield
                execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    execute("ROLLBACK")
                raise

    def _fetch(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with closing(self._connection.execute(statement, parameters)) as cursor:
            return cursor.fetchall()

    def _has(self, table: str) -> bool:
        [(tables,)] = self._fetch("SELECT COUNT(*) FROM sqlite_master WHERE name = ?", [table])
        return bool(tables)

    def _insert_attempts(self, rows: Sequence[Sequence[object]]) -> int:
        """In their order, and without saying NULL, which takes Python as long as all the rest."""
        if len(rows) >= MANY:
            self._connection.execute(f"PRAGMA cache_size = -{LARGE_CACHE_KB}")
        new = 0
        for there, alike in groupby(rows, key=lambda row: tuple(map(is_not, row, repeat(None)))):
            statement = insertion(tuple(compress(ATTEMPT_COLUMNS, there)))
            new += self._insert(statement, [list(compress(row, there)) for row in alike])
        return new

    def _insert(self, statement: str, rows: Sequence[Sequence[object]]) -> int:
        before = self._connection.total_changes
        self._connection.executemany(statement, rows)
        return self._connection.total_changes - before


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the file system as ours, with what to do about them."""
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.DataError) as error:
        raise Refused(f"The archive {path} cannot keep an outcome: {error}.") from error
    except (sqlite3.Error, OSError) as error:
        if any(sign in str(error) for sign in BROKEN):
            if not _was_database(path):
                raise ArchiveError(
                    f"The file {path} is no archive and was left as it is: please name another."
                ) from error
            raise Damaged(f"The archive {path} is damaged: {error}.") from error
        if UNSUPPORTED in str(error):
            raise Refused(f"The archive {path} cannot keep an outcome: {error}.") from error
        raise ArchiveError(f"The archive {path} cannot be used: {error}.") from error


def _was_database(path: Path) -> bool:
    """Whether a file that is no database now was one, so that it may be set aside."""
    if path.suffix.lower() in NAMES:
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(HEAD)) == HEAD
    except OSError:
        return False


def file_at(path: Path) -> File | None:
    """Which file has this name now; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
