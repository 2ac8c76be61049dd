"""The laws of archives, over all of them; PostgreSQL's on a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.archive import postgres, sql
from parsl_sizer.archive.base import Archive, ArchiveError, Query
from parsl_sizer.archive.facts import facts
from parsl_sizer.archive.memory import MemoryArchive
from parsl_sizer.archive.postgres import PostgresArchive
from parsl_sizer.archive.rows import row_of
from parsl_sizer.archive.schema import VERSION
from parsl_sizer.archive.sqlite import SqliteArchive
from parsl_sizer.testing.archive_laws import LAWS, entries
from parsl_sizer.testing.profile_laws import PROFILES


@pytest.fixture(params=["memory", "sqlite", "sqlite without a shared log", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Archive]]:
    """Makes new archives of one sort."""
    made: list[Archive] = []
    numbers = count()

    def new() -> Archive:
        archive: Archive
        if request.param == "memory":
            archive = MemoryArchive()
        elif request.param == "postgres":
            archive = PostgresArchive(request.getfixturevalue("new_database")())
        else:
            path = tmp_path / "folders" / f"{next(numbers)}.sqlite3"
            archive = SqliteArchive(path, shares_log="without" not in request.param)
        made.append(archive)
        return archive

    yield new
    for archive in made:
        archive.close()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law(law: Callable[[Archive], None], make: Callable[[], Archive]) -> None:
    law(make())


def test_texts_with_every_letter_are_kept_or_replaced(make: Callable[[], Archive]) -> None:
    archive = make()
    entry = entries(1)[0]
    attempt = entry.outcome.attempt
    odd = attempt._replace(task=attempt.task._replace(category="a\0b"))
    archive.record([entry._replace(outcome=entry.outcome._replace(attempt=odd))])
    [found] = archive.entries()
    assert found.outcome.attempt.task.category in ("a\0b", "a\ufffdb")


def test_postgres_is_shared_by_those_who_come_later(new_database: Callable[[], str]) -> None:
    url = new_database()
    one, other = PostgresArchive(url), PostgresArchive(url)
    one.record(entries(10))
    assert len(list(other.entries())) == 10
    assert other.record(entries(12)) == 2
    one.close()
    other.close()


def test_who_may_only_read_reads(
    new_database: Callable[[], str], new_role: Callable[[str, str], str]
) -> None:
    url = new_database()
    owner = PostgresArchive(url)
    owner.record(entries())
    owner.close()
    address = new_role(url, "SELECT")
    reader = PostgresArchive(address)
    assert len(list(reader.entries())) == 60
    with pytest.raises(ArchiveError, match="permission denied"):
        reader.record(entries(61))
    reader.close()
    assert (facts(address).attempts, facts(address).fault) == (60, None)


def test_who_may_write_but_not_make_tables_writes(
    new_database: Callable[[], str], new_role: Callable[[str, str], str]
) -> None:
    url = new_database()
    PostgresArchive(url).close()
    writer = PostgresArchive(new_role(url, "SELECT, INSERT"))
    assert writer.record(entries()) == 60
    with pytest.raises(ArchiveError, match="permission denied"):
        writer.prune(["run-1"])
    writer.close()


def test_an_older_postgres_is_brought_up_to_date(
    new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_database()
    with monkeypatch.context() as patch:
        patch.setattr(postgres, "MIGRATIONS", postgres.MIGRATIONS[:1])
        patch.setattr(postgres, "VERSION", 1)
        patch.setattr(sql, "ATTEMPT_COLUMNS", sql.ATTEMPT_COLUMNS[:-1])
        patch.setattr(sql, "row_of", lambda *outcome: row_of(*outcome)[:-1])
        older = PostgresArchive(url)
        older.record(entries(10))
        older.close()
    archive = PostgresArchive(url)
    assert archive.profiles() == []
    assert archive.keep_profiles(PROFILES) == len(PROFILES)
    assert len(list(archive.entries())) == 10
    archive.close()


def test_a_newer_postgres_is_left_alone(new_database: Callable[[], str]) -> None:
    import psycopg

    url = new_database()
    PostgresArchive(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE schema_version SET version = %s", [VERSION + 1])
    with pytest.raises(ArchiveError, match="please upgrade"):
        PostgresArchive(url)


def test_a_server_that_is_away_is_said_to_be_without_the_password() -> None:
    with pytest.raises(ArchiveError, match=r"me:\*\*\*@127.0.0.1") as caught:
        PostgresArchive("postgresql://me:secret@127.0.0.1:1/none")
    assert "secret" not in str(caught.value)


def test_a_missing_driver_is_said_with_the_remedy(monkeypatch: Any) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ArchiveError, match="pip install"):
        PostgresArchive("postgresql://me@host/db")


@pytest.mark.parametrize("share", ["command", "label", "input"])
def test_texts_of_any_length_are_recorded(share: str, make: Callable[[], Archive]) -> None:
    from random import Random

    text = "".join(Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=9000))
    entry = entries(1)[0]
    more: dict[str, Any] = {"command": text} if share == "command" else {}
    more |= {"labels": {"long": text}} if share == "label" else {}
    more |= {"inputs": (text,)} if share == "input" else {}
    attempt = entry.outcome.attempt
    long = attempt._replace(task=attempt.task._replace(**more))
    long_entry = entry._replace(outcome=entry.outcome._replace(attempt=long))
    archive = make()
    assert archive.record([long_entry]) == 1
    query = Query(
        command=text if share == "command" else None,
        input=text[:100] if share == "input" else None,
        labels={"long": text} if share == "label" else {},
    )
    assert list(archive.entries(query)) == [long_entry]


def test_a_row_that_makes_no_sense_is_left_out(tmp_path: Path) -> None:
    import sqlite3

    archive = SqliteArchive(tmp_path / "archive.sqlite3")
    archive.record(entries(10))
    with sqlite3.connect(archive.path) as connection:
        connection.execute("UPDATE attempts SET ending = 'gone' WHERE id = 3")
        connection.execute("UPDATE attempts SET labels = '{' WHERE id = 4")
    connection.close()
    assert len(list(archive.entries())) == 8
    archive.close()
