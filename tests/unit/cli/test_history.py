"""``parsl-sizer history``, and the options with which all commands search."""

from __future__ import annotations

import time
from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.archive.base import SAMPLED, Entry, Query, Run
from parsl_sizer.archive.memory import matches
from parsl_sizer.archive.open import open_archive
from parsl_sizer.cli import main, values
from parsl_sizer.cli.archives import when
from parsl_sizer.cli.parser import COMMANDS, command_line
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, TaskInfo, Usage
from parsl_sizer.testing.archive_laws import entries

Printed = Callable[..., Any]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive.sqlite3"
    opened = open_archive(path)
    opened.record(entries())
    opened.close()
    return path


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ("", Query()),
        ("--run run-1", Query(run_id="run-1")),
        ("--category sort", Query(category="sort")),
        ("--user ann", Query(user="ann")),
        ("--workflow flow0.py", Query(workflow="flow0.py")),
        ("--command MEM", Query(command="mem")),
        ("--input s3_1", Query(input="s3_1")),
        ("--host node-1", Query(host="node-1")),
        ("--source nextflow", Query(source="nextflow")),
        ("--ending lost", Query(endings=(Ending.LOST,))),
        ("--ending lost --ending done", Query(endings=(Ending.LOST, Ending.DONE))),
        ("--label sample=2 --label sample=2", Query(labels={"sample": "2"})),
        ("--label sample=2 --label campaign=0", Query(labels={"sample": "2", "campaign": "0"})),
        (
            "--since 1970-01-01T00:05:10Z --until 1970-01-01T00:05:20Z",
            Query(since=310.0, until=320.0),
        ),
        ("--memory 1GB..5GB", Query(memory=(1e9, 5e9))),
        ("--memory ..2GB", Query(memory=(None, 2e9))),
        ("--time 10s..1m", Query(wall_s=(10.0, 60.0))),
        ("--category sort --user bob --ending lost", Query(category="sort", user="bob")),
    ],
)
def test_every_option_selects(printed: Printed, archive: Path, options: str, query: Query) -> None:
    found = printed("history", *options.split(), "--last", 100, "--archive", archive)["attempts"]
    wanted = {
        (entry.run.run_id, entry.outcome.attempt.task.task_id)
        for entry in entries()
        if matches(entry, query)
        and ("lost" not in options or entry.outcome.ending.value in options)
    }
    assert {(attempt["run"], attempt["task"]) for attempt in found} == wanted
    assert 0 < len(wanted) == len(found)
    times = [attempt["ended_at"] for attempt in found]
    assert times == sorted(times, reverse=True)


def test_twenty_are_shown_unless_more_are_asked_for(printed: Printed, archive: Path) -> None:
    assert len(printed("history", "--archive", archive)["attempts"]) == 20
    assert len(printed("history", "--last", 3, "--archive", archive)["attempts"]) == 3


def test_runs_are_listed(printed: Printed, archive: Path) -> None:
    found = printed("history", "--runs", "--archive", archive)["runs"]
    assert [run["run"] for run in found] == ["run-2", "run-1", "run-0"]
    assert [run["attempts"] for run in found] == [20, 20, 20]
    found = printed("history", "--runs", "--user", "ann", "--archive", archive)["runs"]
    assert [(run["run"], run["labels"]["campaign"]) for run in found] == [("run-0", 0)]


def test_people_get_tables(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--archive", str(archive)]) == 0
    out = capsys.readouterr().out
    assert "exhausted: memory" in out
    assert "ü/☃" in out
    assert "~ The largest of some samples" in out
    assert len(out.splitlines()) == 22
    assert main(["history", "--run", "run-1", "--archive", str(archive)]) == 0
    assert capsys.readouterr().out.startswith("run run-1")
    assert main(["history", "--runs", "--archive", str(archive)]) == 0
    assert "nextflow" in capsys.readouterr().out


CATEGORY, USER = "align_genome", "ann_of_the_l"
LIVE_RUNS = [Run(f"20261116-18263{n}-908fe03{n}", 1.8e9, USER, "assemble.py1") for n in range(2)]


@pytest.fixture
def live(tmp_path: Path) -> Path:
    """Two runs as they are recorded, with attempts that leave no column empty."""
    path = tmp_path / "live.sqlite3"
    opened = open_archive(path)
    for run in LIVE_RUNS:
        for number, ending in enumerate(Ending, start=1):
            attempt = Attempt(TaskInfo(1234, CATEGORY), number, {Kind.MEMORY: 1.23e9})
            exhausted = frozenset({Kind.MEMORY} if ending is Ending.EXHAUSTED else ())
            usage = Usage({Kind.CORES: 0.0655, Kind.MEMORY: 1.23e9}, 59.9 * 60)
            outcome = Outcome(
                *(attempt, ending, 1.8e9, usage, exhausted),
                host="node-0123.cluster",
                layers=(SAMPLED,),
            )
            opened.record([Entry(run, outcome)])
    opened.close()
    return path


def shown(
    width: int, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch, *arguments: object
) -> str:
    patch.setenv("COLUMNS", str(width))
    assert main([*map(str, arguments)]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    return out


@pytest.mark.parametrize("width", [80, 90, 100, 110, 130, 160])
@pytest.mark.parametrize("run", [None, LIVE_RUNS[0].run_id])
def test_a_narrow_terminal_shows_what_matters_of_every_attempt(
    live: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    run: str | None,
) -> None:
    of = ["--run", run] if run else []
    out = shown(width, capsys, monkeypatch, "history", "--archive", live, *of)
    attempts = 4 if run else 8
    assert out.count(CATEGORY) == attempts
    assert out.count("~1.23 GB") == attempts
    assert out.count("59.9 min") == attempts
    for ending in Ending:
        assert out.count(ending.value) == attempts / 4
    assert all(one.run_id[-8:] in out for one in LIVE_RUNS if run in (None, one.run_id))
    assert ("node-0123" in out) is (width >= (130 if run else 160))


def test_a_narrow_terminal_shows_ids_of_runs_in_full(
    live: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shown(80, capsys, monkeypatch, "history", "--runs", "--archive", live)
    for told in (USER, "assemble.py1", "live", when(1.8e9)[:10]):
        assert out.count(told) == 2
    assert all(run.run_id in out for run in LIVE_RUNS)


def test_nothing_found_is_no_fault(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ([], ["--runs"]):
        assert main(["history", "--user", "nobody", *options, "--archive", str(archive)]) == 0
        out, error = capsys.readouterr()
        assert out == ""
        assert error.startswith("parsl-sizer: No ")


@pytest.mark.parametrize(
    "command",
    [
        ["history"],
        ["export"],
        ["explain", "1"],
        ["whatif", "align"],
        ["prune", "--keep-runs", "1"],
    ],
    ids=lambda command: command[0],
)
def test_an_archive_that_is_not_there_is_told(
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: list[str],
) -> None:
    path = tmp_path / "none.sqlite3"
    assert f"There is no archive at {path}: no run" in refused(*command, "--archive", path)
    assert not path.exists()
    assert "PARSL_SIZER_ARCHIVE is off; name one with --archive" in refused(*command)
    path.write_text("something else entirely, and long enough to be read as a database" * 20)
    assert "is damaged" in refused(*command, "--archive", path)
    monkeypatch.setenv("PARSL_SIZER_ARCHIVE", str(tmp_path / "said"))
    assert f"no archive at {tmp_path / 'said'}" in refused(*command)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--since yesterday", "'yesterday' is no time; write it like 2025-03-01"),
        ("--until 3", "'3' is no time"),
        ("--memory 4GB", "'4GB' is not a range; write it like 1GB..4GB"),
        ("--memory ..", "'..' is not a range"),
        ("--memory 4GB..1GB", "'4GB..1GB' is a range that begins after its end"),
        ("--memory 1s..2s", "memory='1s' is not an amount"),
        ("--time 1GB..", "'1GB' is not a duration; write it like 30s"),
        ("--label sample", "--label: 'sample' is not of the form NAME=VALUE"),
        ("--label a=1 --label a=2", "--label: 'a' is given two values, '1' and '2'"),
        ("--ending badly", "invalid choice: 'badly'"),
        ("--last 0", "'0' is not a whole number, 1 or more"),
    ],
)
def test_what_cannot_be_looked_for_is_told(
    refused: Callable[..., str], options: str, sentence: str
) -> None:
    assert sentence in refused("history", *options.split())


def test_moments_are_dates_times_or_ages() -> None:
    assert values.moment("2025-03-01") == datetime(2025, 3, 1).timestamp()
    assert values.moment("2025-03-01T14:30") == datetime(2025, 3, 1, 14, 30).timestamp()
    assert values.moment("2h") == pytest.approx(time.time() - 7200, abs=60)
    assert values.moment("1w") == pytest.approx(time.time() - 7 * 86400, abs=60)
    with pytest.raises(ArgumentTypeError, match="'90' is not an age"):
        values.age("90")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_can_be_parsed(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    example = COMMANDS[name].example.split()
    assert example[0] == name
    assert command_line().parse_args(example).run is not None
    assert main([name, "--help"]) == 0
    assert f"parsl-sizer {COMMANDS[name].example}\n" in capsys.readouterr().out


def test_the_examples_on_the_archive_can_be_parsed() -> None:
    lines = (command_line().epilog or "").splitlines()
    examples = [line.partition("  parsl-sizer ")[2].split() for line in lines]
    shown = [example for example in examples if example]
    assert {example[0] for example in shown} == set(COMMANDS)
    for example in shown:
        assert command_line().parse_args(example).run is not None
