"""``parsl-sizer prune``."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.open import open_archive
from parsl_sizer.cli import main
from parsl_sizer.model import Attempt, Ending, Outcome, TaskInfo

Printed = Callable[..., Any]
DAY = 86400.0


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Runs that ended 1, 2, 3 and 100 days ago, and one of which that is not known."""
    path = tmp_path / "archive.sqlite3"
    opened = open_archive(path)
    for days in (1, 2, 3, 100, 0):
        ended_at = time.time() - days * DAY if days else 0.0
        run = Run(
            f"run-{days}", started_at=max(ended_at - 60, 0), user="ann" if days < 3 else "bob"
        )
        attempts = [Attempt(TaskInfo(number, "align"), 1, {}) for number in range(10)]
        opened.record([Entry(run, Outcome(a, Ending.DONE, ended_at)) for a in attempts])
    opened.close()
    return path


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def runs(printed: Printed, archive: Path) -> list[str]:
    return [run["run"] for run in printed("history", "--runs", "--archive", archive)["runs"]]


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        ("--older-than 90d", ["run-100"]),
        ("--older-than 36h", ["run-2", "run-3", "run-100"]),
        ("--older-than 36h --user bob", ["run-3", "run-100"]),
        ("--older-than 200d", []),
        ("--run run-2 run-0", ["run-2", "run-0"]),
        ("--keep-runs 3", ["run-100", "run-0"]),
        ("--keep-runs 1 --user ann", ["run-2", "run-0"]),
    ],
)
def test_what_is_chosen_is_told_and_removed(
    printed: Printed, archive: Path, options: str, gone: list[str]
) -> None:
    before = runs(printed, archive)
    found = printed("prune", *options.split(), "--dry-run", "--archive", archive)
    assert [run["run"] for run in found["runs"]] == gone
    assert found["removed"] is None
    assert runs(printed, archive) == before
    found = printed("prune", *options.split(), "--yes", "--archive", archive)
    assert found["removed"] == (10 * len(gone) or None)
    assert runs(printed, archive) == [run for run in before if run not in gone]


def test_without_a_terminal_nothing_is_removed(
    refused: Callable[..., str], printed: Printed, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    sentence = refused("prune", "--keep-runs", 1, "--archive", archive)
    assert "4 runs with 40 attempts would be removed, but there is nobody to ask" in sentence
    refused("prune", "--keep-runs", 1, "--json", "--archive", archive)
    assert len(runs(printed, archive)) == 5


@pytest.mark.parametrize(("answer", "left"), [("y\n", 4), ("yes\n", 4), ("n\n", 5), ("", 5)])
def test_on_a_terminal_the_user_is_asked(
    printed: Printed,
    archive: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    left: int,
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert main(["prune", "--older-than", "90d", "--archive", str(archive)]) == 0
    out = capsys.readouterr().out
    assert "run-100" in out
    assert "1 run with 10 attempts will be removed" in out
    assert "Remove 1 run with 10 attempts? [y/N]" in out
    assert ("Removed 10 attempts" in out) is (left == 4)
    assert ("Nothing is removed." in out) is (left == 5)
    assert len(runs(printed, archive)) == left


def test_how_large_the_file_is_is_told(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prune", "--older-than", "90d", "--yes", "--archive", str(archive)]) == 0
    assert "KB. What was freed in it is used for new ones." in capsys.readouterr().out
    assert main(["prune", "--older-than", "90d", "--archive", str(archive)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("There is nothing to remove in ")
    assert "The file has" in out


def record(archive: Path, *runs: Run) -> None:
    """Runs with an attempt each whose end is not known."""
    opened = open_archive(archive)
    attempt = Attempt(TaskInfo(1, "align"), 1, {})
    opened.record([Entry(run, Outcome(attempt, Ending.DONE)) for run in runs])
    opened.close()


def test_a_run_whose_end_is_not_known_is_as_old_as_its_beginning(
    printed: Printed, archive: Path
) -> None:
    now = time.time()
    record(archive, Run("begun-95", now - 95 * DAY), Run("begun-5", now - 5 * DAY))
    found = printed("prune", "--older-than", "90d", "--dry-run", "--archive", archive)
    assert [run["run"] for run in found["runs"]] == ["begun-95", "run-100"]


def test_how_to_remove_runs_without_a_date_is_told(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*options: str) -> str:
        assert main(["prune", *options, "--dry-run", "--archive", str(archive)]) == 0
        return capsys.readouterr().err

    assert told("--older-than", "90d") == (
        "parsl-sizer: Kept 1 run without a date; remove by name: parsl-sizer prune --run run-0.\n"
    )
    assert told("--older-than", "90d", "--user", "bob") == ""
    assert told("--keep-runs", "1") == ""
    record(archive, *(Run(f"no date {number}") for number in range(3)))
    assert told("--older-than", "90d").endswith(
        "Kept 4 runs without a date; remove by name: "
        "parsl-sizer prune --run 'no date 2' 'no date 1' 'no date 0' ….\n"
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("", "one of the arguments --older-than --run --keep-runs is required"),
        ("--older-than 90", "'90' is not an age; write it like 90d"),
        ("--older-than 90d --keep-runs 3", "not allowed with argument"),
        ("--keep-runs -1", "'-1' is not a whole number, 0 or more"),
        ("--run run-1 nope", "There is no run 'nope'; the newest are run-1, "),
    ],
)
def test_what_to_remove_has_to_be_clear(
    refused: Callable[..., str], printed: Printed, archive: Path, options: str, sentence: str
) -> None:
    assert sentence in refused("prune", "--yes", "--archive", archive, *options.split())
    assert len(runs(printed, archive)) == 5
