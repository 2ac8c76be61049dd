"""Opening a SQLite file that somebody else made: to read it, and for nothing else.

Nothing is written beside it, nothing that it holds is executed (its views and virtual tables
are not looked at, nor are computed columns), and a query takes no more steps than its size
can explain.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAGIC = b"SQLite format 3\0"
WAIT_S = 30.0
"""So long may somebody who writes into it keep us waiting."""
STEPS = 100_000
"""After so many steps of SQLite's machine we look whether it has taken too many."""
STEPS_PER_BYTE = 20
"""Joining the tables of Parsl's monitoring takes less than one half."""
LEAST_STEPS = 20_000_000

_PLAIN = re.compile(r"\s*CREATE\s+TABLE\b", re.IGNORECASE)


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, read only; `sqlite3.Error` or `OSError` if it cannot be had.

    Somebody may be writing it, so it is locked while it is read. A database with a
    write-ahead log can be read in a folder that cannot be written only if nobody will
    change it, which is so if that log is absent.
    """
    journals = [path.with_name(path.name + end) for end in ("-wal", "-journal")]
    connection = _connected(path, "mode=ro")
    try:
        try:
            _look(connection)
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or any(journal.exists() for journal in journals):
                raise
            connection.close()
            connection = _connected(path, "mode=ro&immutable=1")
            _look(connection)
        yield connection
    finally:
        connection.close()


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    left = max(LEAST_STEPS, path.stat().st_size * STEPS_PER_BYTE) // STEPS

    def too_many() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    uri = f"{path.absolute().as_uri()}?{mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=WAIT_S, isolation_level=None)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    connection.set_progress_handler(too_many, STEPS)
    return connection


def _look(connection: sqlite3.Connection) -> None:
    """Read its first page, so that it is known whether that can be done at all."""
    for pragma in ("query_only", "cell_size_check"):
        connection.execute(f"PRAGMA {pragma} = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA temp_store = FILE")
    connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """The columns that a table really has; none if it is no table, but a view or virtual."""
    query = "SELECT type, sql FROM sqlite_master WHERE name = ?"
    kinds = connection.execute(query, (table,)).fetchall()
    if not any(kind == "table" and _PLAIN.match(str(sql)) for kind, sql in kinds):
        return frozenset()
    described = connection.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (table,))
    return frozenset(str(name) for name, hidden in described if not hidden)
