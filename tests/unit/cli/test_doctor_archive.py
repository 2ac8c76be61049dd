"""What ``parsl-sizer doctor`` says of the archive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.archive.facts import facts
from parsl_sizer.archive.open import open_archive
from parsl_sizer.archive.schema import VERSION
from parsl_sizer.archive.spool import Spool
from parsl_sizer.cli import main
from parsl_sizer.cli.doctor import about_archive
from parsl_sizer.testing.archive_laws import entries

Printed = Callable[..., Any]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive.sqlite3"
    opened = open_archive(path)
    opened.record(entries())
    opened.close()
    return path


def test_its_contents_are_counted(printed: Printed, archive: Path) -> None:
    found = printed("doctor", "--archive", archive)["archive"]
    assert found["where"] == str(archive)
    assert (found["exists"], found["fault"], found["on_network"]) == (True, None, False)
    assert (found["runs"], found["attempts"]) == (3, 60)
    assert found["version"] == found["newest_version"] == VERSION
    assert found["bytes"] >= archive.stat().st_size > 0
    assert found["waiting"] == found["bad"] == found["damaged"] == []


def test_people_are_told_the_same(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--archive", str(archive)]) == 0
    out = capsys.readouterr().out
    assert f"The archive is {archive}: 60 attempts of 3 runs in" in out
    assert main(["doctor"]) == 0
    assert "There is no archive: PARSL_SIZER_ARCHIVE is off" in capsys.readouterr().out


def test_none_is_needed(printed: Printed, tmp_path: Path) -> None:
    assert printed("doctor")["archive"] is None
    path = tmp_path / "later.sqlite3"
    found = printed("doctor", "--archive", path)["archive"]
    assert (found["exists"], found["fault"], found["attempts"]) == (False, None, None)
    assert not path.exists()
    assert about_archive(facts(path)) == [
        f"The archive is to be {path}; no run has been recorded there yet."
    ]


def test_what_waits_beside_it_is_told(archive: Path) -> None:
    spool = Spool.beside(archive)
    waiting = spool.append("run-9", entries(3))
    bad = waiting.with_suffix(".bad")
    bad.write_text("{")
    damaged = archive.with_name(f"{archive.name}.damaged-20250301-101500-7")
    for suffix in ("", "-wal"):
        damaged.with_name(damaged.name + suffix).write_text("")
    found = facts(archive)
    assert found.waiting == (str(waiting),)
    assert found.bad == (str(bad),)
    assert found.damaged == (str(damaged),)
    _, *told = about_archive(found)
    assert told == [
        f"{waiting} waits to be merged into it, by the next run that ends or by import.",
        f"{bad} has lines that were not taken: they cannot be read, or are refused.",
        f"{damaged} is an archive that was found damaged, and set aside.",
    ]


def test_one_that_cannot_be_opened_is_told_and_left_alone(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive.write_text("not a database at all, whatever its name says " * 50)
    assert main(["doctor", "--archive", str(archive)]) == 0
    assert f"\nThe archive {archive} is damaged: " in capsys.readouterr().out
    assert facts(archive).damaged == ()


@pytest.mark.parametrize("name", [".", "runs"])
def test_of_a_folder_it_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).mkdir(exist_ok=True)
    assert about_archive(facts(Path(name))) == [
        f"The archive {name} cannot be used: it is a folder; name a file in it."
    ]


def test_of_an_empty_file_it_is_told_that_nothing_was_recorded_yet(tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite3"
    path.touch()
    assert about_archive(facts(path)) == [
        f"The archive {path} is empty: nothing was recorded in it yet."
    ]


def test_on_a_network_file_system_runs_are_merged(archive: Path) -> None:
    _, told = about_archive(replace(facts(archive), on_network=True))
    assert "each run writes to a file of its own beside it" in told
