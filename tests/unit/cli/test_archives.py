"""A run is named the same way in every command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.open import open_archive
from parsl_sizer.model import Attempt, Ending, Outcome, TaskInfo

RUNS = ("20260101-120000-aaaa", "20260101-130000-bbbb", "20260202-120000-cccc")
COMMANDS: dict[str, Callable[[Any], str]] = {
    "history --run": lambda found: str(found["attempts"][0]["run"]),
    "history --runs --run": lambda found: str(found["runs"][0]["run"]),
    "export --run": lambda found: str(found["attempts"][0]["run"]["run_id"]),
    "explain 1 --run": lambda found: str(found["run"]),
    "prune --dry-run --run": lambda found: str(found["runs"][0]["run"]),
    "report": lambda found: str(found["run"]["run_id"]),
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive.sqlite3"
    opened = open_archive(path)
    for number, name in enumerate(RUNS):
        attempt = Attempt(TaskInfo(1, "align"), 1, {})
        run = Run(name, started_at=1e9 + number)
        # The one that began first ended last.
        opened.record([Entry(run, Outcome(attempt, Ending.DONE, 2e9 - number))])
    opened.close()
    return path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("wanted", [RUNS[2], "202602", "cccc", "120000-cccc", "last"])
def test_a_run_is_named_by_its_id_a_part_of_it_or_as_the_last(
    printed: Callable[..., Any], archive: Path, command: str, wanted: str
) -> None:
    found = printed(*command.split(), wanted, "--archive", archive)
    assert COMMANDS[command](found) == RUNS[2]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("x", f"There is no run 'x'; the newest are {RUNS[2]}, {RUNS[1]}, {RUNS[0]}."),
        ("", f"There is no run ''; the newest are {RUNS[2]}, {RUNS[1]}, {RUNS[0]}."),
        ("20260101-120000-aaab", "'20260101-120000-aaab'; did you mean 20260101-120000-aaaa or"),
        ("20260101", f"is the beginning of 2 runs: {RUNS[1]}, {RUNS[0]}; write more of it."),
        ("ccc", "There is no run 'ccc'; the newest are"),
    ],
)
def test_a_run_that_is_not_clear_is_a_fault(
    refused: Callable[..., str], archive: Path, command: str, wanted: str, sentence: str
) -> None:
    assert sentence in refused(*command.split(), wanted, "--archive", archive)


@pytest.mark.parametrize("command", [["report"], ["explain", "1"]])
def test_the_last_run_is_meant_if_none_is_named(
    printed: Callable[..., Any], archive: Path, command: list[str]
) -> None:
    assert RUNS[2] in str(printed(*command, "--archive", archive)["run"])


def test_a_run_that_is_named_twice_is_removed_once(
    printed: Callable[..., Any], archive: Path
) -> None:
    found = printed("prune", "--dry-run", "--run", "last", "cccc", "--archive", archive)
    assert len(found["runs"]) == 1
