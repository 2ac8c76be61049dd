"""Which archive, and how to open it."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from parsl_sizer.archive.base import ArchiveError
from parsl_sizer.archive.open import (
    data_folder,
    is_on_network,
    location,
    open_archive,
    set_aside,
    shown,
)
from parsl_sizer.archive.schema import VERSION
from parsl_sizer.archive.sqlite import BUSY_S, SqliteArchive, file_at
from parsl_sizer.testing.archive_laws import entries
from parsl_sizer.testing.profile_laws import PROFILES

MOUNTS = """\
proc /proc proc rw 0 0
/dev/vda / ext4 rw 0 0
server:/net /net nfs4 rw 0 0
/dev/vdb /net/local ext4 rw 0 0
scratch /lustre/my\\040scratch lustre rw 0 0
"""


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.delenv("PARSL_SIZER_ARCHIVE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    return monkeypatch


def test_by_default_it_is_a_file_of_the_users_own(
    surroundings: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert location(None) == location(True) == tmp_path / "parsl_sizer" / "archive.sqlite3"
    surroundings.setenv("XDG_DATA_HOME", "relative")
    assert data_folder() == Path.home() / ".local" / "share" / "parsl_sizer"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("/data/a.sqlite3", Path("/data/a.sqlite3")),
        ("~/a.sqlite3", "home"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("off", None),
        ("OFF ", None),
    ],
)
def test_the_surroundings_may_say_another(
    surroundings: pytest.MonkeyPatch, said: str, expected: Path | str | None
) -> None:
    surroundings.setenv("PARSL_SIZER_ARCHIVE", said)
    assert location(None) == (Path.home() / "a.sqlite3" if expected == "home" else expected)
    assert location(False) is None
    assert location("mine.sqlite3") == Path("mine.sqlite3")


def test_a_password_is_not_shown() -> None:
    assert shown("postgresql://me:secret@host/db") == "postgresql://me:***@host/db"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/net/ann/a.sqlite3", True),
        ("/net/local/a.sqlite3", False),
        ("/nets/a.sqlite3", False),
        ("/lustre/my scratch/a.sqlite3", True),
        ("/var/a.sqlite3", False),
    ],
)
def test_network_file_systems_are_known(tmp_path: Path, path: str, expected: bool) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert is_on_network(Path(path), mounts) is expected
    assert not is_on_network(Path(path), tmp_path / "none")


def test_to_read_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="no run has been recorded there yet"):
        open_archive(tmp_path / "none.sqlite3", read_only=True)
    assert not list(tmp_path.iterdir())


def test_one_that_is_read_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite3"
    open_archive(path).close()
    archive = open_archive(path, read_only=True)
    with pytest.raises(ArchiveError, match="readonly"):
        archive.record(entries(1))
    archive.close()


def test_a_copy_of_the_file_has_all_that_was_recorded_though_somebody_still_reads(
    tmp_path: Path,
) -> None:
    path = tmp_path / "archive.sqlite3"
    open_archive(path).close()
    reader = open_archive(path, read_only=True)
    assert not list(reader.entries())
    writer = open_archive(path)
    writer.record(entries(10))
    writer.close()
    copied = open_archive(shutil.copy(path, tmp_path / "copy.sqlite3"), read_only=True)
    assert len(list(copied.entries())) == 10
    copied.close()
    reader.close()


def test_to_let_go_of_one_that_others_use_does_not_wait_for_them(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite3"
    writer = open_archive(path)
    writer.record(entries(10))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    writer.close()
    assert time.monotonic() - started < BUSY_S / 2
    other.execute("ROLLBACK")
    other.close()


def test_a_damaged_one_is_not_set_aside_by_who_only_reads(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite3"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(ArchiveError, match="damaged"):
        open_archive(path, read_only=True)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("name", ["", "runs", "/"])
def test_a_folder_is_told_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, read_only: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).mkdir(exist_ok=True)
    with pytest.raises(ArchiveError, match=r"is a folder; name a file in it\."):
        open_archive(Path(name), read_only=read_only)


def test_of_an_empty_file_it_is_told_that_nothing_was_recorded_yet(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite3"
    path.touch()
    with pytest.raises(ArchiveError, match="is empty: nothing was recorded in it yet"):
        open_archive(path, read_only=True)
    archive = open_archive(path)
    assert not list(archive.entries())
    archive.close()


def test_a_file_that_is_no_archive_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "precious.csv"
    path.write_text("precious\n")
    for read_only in (True, False):
        with pytest.raises(ArchiveError, match=r"precious\.csv is no archive.*left as it is"):
            open_archive(path, read_only=read_only)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "precious\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.archive", b"SQLite format 3\0" + b"\x55" * 5000),
        ("archive.sqlite3", b"SQLite"),
        ("ours.sqlite", b"\x55" * 5000),
        ("OURS.DB", b"\x55" * 5000),
    ],
)
def test_a_damaged_archive_is_known_by_how_it_begins_or_by_its_name(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    said: list[str] = []
    archive = open_archive(path, warn=said.append)
    archive.close()
    [aside] = tmp_path.glob("*.damaged-*")
    assert aside.read_bytes() == content
    assert str(aside) in said[0]


def test_of_two_that_are_set_aside_at_once_both_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "strftime", lambda layout: "20250301-101500")
    path = tmp_path / "archive.sqlite3"
    for content in (b"the first", b"the second"):
        path.write_bytes(content)
        set_aside(path, file_at(path))
    assert {aside.read_bytes() for aside in tmp_path.iterdir()} == {b"the first", b"the second"}


def test_a_migration_that_fails_leaves_the_archive_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parsl_sizer.archive import sqlite

    path = tmp_path / "archive.sqlite3"
    archive = open_archive(path)
    archive.record(entries(10))
    archive.close()
    bad = ("CREATE TABLE new (a INTEGER)", "CREATE TABLE runs (twice INTEGER)")
    monkeypatch.setattr(sqlite, "MIGRATIONS", (*sqlite.MIGRATIONS, bad))
    monkeypatch.setattr(sqlite, "VERSION", VERSION + 1)
    with pytest.raises(ArchiveError, match="already exists"):
        SqliteArchive(path)
    monkeypatch.undo()
    with sqlite3.connect(path) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    connection.close()
    assert "new" not in names
    archive = open_archive(path)
    assert len(list(archive.entries())) == 10
    archive.close()


def test_an_older_archive_is_read_as_it_is_and_brought_up_to_date_when_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parsl_sizer.archive import sql, sqlite
    from parsl_sizer.archive.rows import row_of

    path = tmp_path / "archive.sqlite3"
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "MIGRATIONS", sqlite.MIGRATIONS[:1])
        patch.setattr(sqlite, "VERSION", 1)
        patch.setattr(sql, "row_of", lambda *outcome: row_of(*outcome)[:-1])
        older = open_archive(path)
        older.record(entries(10))
        older.close()
    before = path.read_bytes()
    archive = open_archive(path, read_only=True)
    assert len(list(archive.entries())) == 10
    assert archive.profiles() == []
    archive.close()
    assert path.read_bytes() == before
    archive = open_archive(path)
    assert archive.keep_profiles(PROFILES) == len(PROFILES)
    assert len(list(archive.entries())) == 10
    archive.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_of_something_else_is_left_as_it_is(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "monitoring.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE task (id INTEGER)")
    before = path.read_bytes()
    with pytest.raises(ArchiveError, match="of something else and was left as it is"):
        open_archive(path, read_only=read_only)
    assert path.read_bytes() == before
