"""An archive for a team: PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .base import ArchiveError, Refused
from .schema import MIGRATIONS, VERSION
from .sql import SqlArchive

if TYPE_CHECKING:
    import psycopg

PATIENCE_S = 10
WORDS = (
    ("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    ("INTEGER PRIMARY KEY", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    ("INTEGER", "BIGINT"),
    ("REAL", "DOUBLE PRECISION"),
    ("BLOB", "BYTEA"),
    ("host, command", "host"),  # an index takes no text above some thousand letters
)
"""SQLite's words, and what is said here."""
OPTIONS = "-c statement_timeout=20000 -c lock_timeout=5000"
"""In ms: whoever locks a table does not hold up those who run tasks."""
REFUSING = ("22", "23", "54")
"""How the codes of errors begin that are of the data, of rules for it, or of its size."""
LOCK = 7_277_355
"""Any number: who brings tables up to date holds this lock."""


class PostgresArchive(SqlArchive):
    """A database that many may use at once; `url` as in ``postgresql://me@host/name``."""

    def __init__(self, url: str) -> None:
        super().__init__()
        try:
            import psycopg
        except ImportError as error:
            raise ArchiveError(
                "An archive in PostgreSQL needs psycopg: pip install 'parsl-sizer[postgres]'."
            ) from error
        self._url = without_password(url)
        self._error = psycopg.Error
        with self._told():
            self._connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(
                url,
                connect_timeout=PATIENCE_S,
                tcp_user_timeout=PATIENCE_S * 1000,
                keepalives_idle=PATIENCE_S,
                options=OPTIONS,
                autocommit=True,
            )
        try:
            with self._told():
                self._migrate()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()

    def _migrate(self) -> None:
        """Bring the tables up to date; who finds them so needs no right to make any."""
        execute = self._connection.execute
        if self._version() == VERSION:
            return
        with self._connection.transaction():
            execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
            version = self._version()
            if version == VERSION:  # another process was quicker
                return
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    execute(in_own_words(statement).encode())
            execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
            execute("DELETE FROM schema_version")
            execute("INSERT INTO schema_version VALUES (%s)", [VERSION])

    def _version(self) -> int:
        """The version of the tables, 0 if there are none."""
        execute = self._connection.execute
        if execute("SELECT to_regclass('schema_version')").fetchone() == (None,):
            return 0
        found = execute("SELECT version FROM schema_version").fetchone()
        version = int(found[0]) if found else 0
        if version > VERSION:
            raise ArchiveError(
                f"The archive {self._url} has version {version} of its tables, and this "
                f"version of parsl_sizer knows up to {VERSION}: please upgrade it."
            )
        return version

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[None]:
        with self._told(), self._connection.transaction():
            yield

    def _fetch(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        statement = statement.replace(" LIKE ", " ILIKE ")  # as SQLite has it
        return self._connection.execute(_marked(statement), _plain(parameters)).fetchall()

    def _insert(self, statement: str, rows: Sequence[Sequence[object]]) -> int:
        with self._connection.cursor() as cursor:
            cursor.executemany(_marked(statement), [_plain(row) for row in rows])
            return cursor.rowcount

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            # Of what the server says the first sentence; of the driver's own there is no such.
            reason = " ".join((error.diag.message_primary or str(error)).split())
            if _is_of_the_data(error):
                raise Refused(
                    f"The archive {self._url} cannot keep an outcome: {reason}."
                ) from error
            raise ArchiveError(f"The archive {self._url} cannot be used: {reason}.") from error


def in_own_words(statement: str) -> str:
    """A statement of the schema as PostgreSQL has it.

    >>> in_own_words("CREATE TABLE t (id INTEGER PRIMARY KEY, at REAL)")
    'CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at DOUBLE PRECISION)'
    """
    for word, own in WORDS:
        statement = re.sub(rf"\b{word}\b", own, statement)
    return statement


def without_password(url: str) -> str:
    """The address, fit to be shown.

    >>> without_password("postgresql://me:se:c/r@t@host/db?password=secret&user=me")
    'postgresql://me:***@host/db?password=***&user=me'
    """
    scheme, slashes, rest = url.partition("://")
    account, at, place = rest.rpartition("@")
    name, colon, _ = account.partition(":")
    shown = f"{scheme}{slashes}{name}{colon and ':***'}{at}{place}"
    return re.sub(r"(?<=password=)[^&\s]+", "***", shown)


def _is_of_the_data(error: psycopg.Error) -> bool:
    """Whether it is for what was to be written, and not for the server or the way to it."""
    if error.sqlstate is None:  # the driver's own: a value that it cannot send
        return type(error).__name__ in ("DataError", "ProgrammingError")
    return error.sqlstate.startswith(REFUSING)


def _marked(statement: str) -> bytes:
    return statement.replace("%", "%%").replace("?", "%s").encode()


def _plain(values: Sequence[object]) -> list[object]:
    """Values without what PostgreSQL has no place for: the letter 0."""
    return [v.replace("\0", "\ufffd") if isinstance(v, str) else v for v in values]
