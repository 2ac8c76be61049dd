"""``parsl-sizer export``."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.archive.lines import entry_of, line_of
from parsl_sizer.archive.open import open_archive
from parsl_sizer.cli import main
from parsl_sizer.model import Ending, Kind
from parsl_sizer.simulator import read
from parsl_sizer.testing.archive_laws import entries

Printed = Callable[..., Any]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive.sqlite3"
    opened = open_archive(path)
    opened.record(entries())
    opened.close()
    return path


def test_lines_hold_everything(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--archive", str(archive)]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    assert sorted(out.splitlines()) == sorted(map(line_of, entries()))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("options", [[], ["--csv"], ["--json"]])
def test_control_characters_do_not_reach_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    path = tmp_path / "archive.sqlite3"
    opened = open_archive(path)
    [entry] = [one for one in entries() if one.outcome.ending is Ending.DONE][:1]
    attempt = entry.outcome.attempt
    task = attempt.task._replace(category="\x1b]0;owned\x07align")
    outcome = entry.outcome._replace(attempt=attempt._replace(task=task))
    opened.record([entry._replace(outcome=outcome)])
    opened.close()
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["export", *options, "--archive", str(path)]) == 0
    assert "owned" in terminal.getvalue()
    assert not {"\x1b", "\x07"} & {*terminal.getvalue()}


def test_what_is_exported_can_be_searched_for(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--category", "sort", "--run", "run-1", "--last", "4"]
    assert main(["export", *options, "--archive", str(archive)]) == 0
    found = [entry_of(line) for line in capsys.readouterr().out.splitlines()]
    assert len(found) == 4
    assert {(e.run.run_id, e.outcome.attempt.task.category) for e in found} == {("run-1", "sort")}


def test_another_archive_takes_it_and_has_the_same(
    archive: Path, tmp_path: Path, printed: Printed
) -> None:
    lines, other = tmp_path / "lines", tmp_path / "other.sqlite3"
    found = printed("export", "-o", lines, "--archive", archive)
    assert found == {
        "archive": str(archive),
        "output": str(lines),
        "written": 60,
        "left_out": 0,
    }
    assert printed("import", lines, "--archive", other)["files"][0]["new"] == 60
    first, second = (
        printed("history", "--last", 99, "--archive", path)["attempts"] for path in (archive, other)
    )
    key = lambda attempt: (attempt["ended_at"], str(attempt["task"]))  # noqa: E731
    assert sorted(first, key=key) == sorted(second, key=key)


def test_csv_is_a_trace_of_what_was_done_oldest_first(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.csv"
    assert main(["export", "--csv", "-o", str(path), "--archive", str(archive)]) == 0
    out, error = capsys.readouterr()
    assert out == ""
    assert "30 attempts that were not done are left out" in error
    assert f"Wrote 30 tasks to {path}." in error
    done = [e.outcome for e in entries() if e.outcome.ending is Ending.DONE]
    done.sort(key=lambda outcome: outcome.ended_at)
    rows = list(read(path))
    assert [row.time_s for row in rows] == [outcome.usage.wall_s for outcome in done]
    assert [row.task.category for row in rows] == [o.attempt.task.category for o in done]
    for row, outcome in zip(rows, done, strict=True):
        assert row.peak.get(Kind.MEMORY) == pytest.approx(outcome.usage.peak.get(Kind.MEMORY))


def test_json_is_one_object(archive: Path, printed: Printed) -> None:
    found = printed("export", "--last", 2, "--archive", archive)
    assert found["archive"] == str(archive)
    assert [entry_of(json.dumps(line)).outcome.ended_at for line in found["attempts"]]
    assert len(found["attempts"]) == 2
    assert printed("export", "--user", "nobody", "--archive", archive)["attempts"] == []


def test_a_trace_is_no_json(refused: Callable[..., str], archive: Path) -> None:
    sentence = refused("export", "--csv", "--json", "--archive", archive)
    assert "--csv and --json go together only with -o FILE" in sentence


def test_a_file_that_cannot_be_written_is_told(
    refused: Callable[..., str], archive: Path, tmp_path: Path
) -> None:
    sentence = refused("export", "-o", tmp_path / "no" / "file", "--archive", archive)
    assert "Cannot write" in sentence
    assert "no such file or directory" in sentence
