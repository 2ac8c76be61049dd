"""``parsl-sizer report``: a run by its name, as text, JSON and a page."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest

from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.open import open_archive
from parsl_sizer.cli.report import run
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, SizerError, TaskInfo, Usage

RUNS = ("20260101-120000-aaaa", "20260101-130000-bbbb", "20260202-120000-cccc")


def outcomes(category: str, tasks: int = 10) -> list[Outcome]:
    return [
        Outcome(
            Attempt(TaskInfo(task, category), number, {Kind.MEMORY: held}),
            Ending.EXHAUSTED if held < 2e9 else Ending.DONE,
            1e9 + task,
            Usage({Kind.MEMORY: min(held, 2e9)}, 3600.0),
            frozenset({Kind.MEMORY} if held < 2e9 else ()),
        )
        for task in range(tasks)
        for number, held in ((1, 1e9), (2, 4e9))
    ]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive.sqlite3"
    found = open_archive(path)
    for number, name in enumerate(RUNS):
        one = Run(name, 1e9 + number, "jane", "align.py", host="login1")
        found.record([Entry(one, outcome) for outcome in outcomes(f"align-{number}")])
    found.close()
    return path


def report(run_id: str, archive: Path, *, html: Path | None = None, as_json: bool = False) -> None:
    page = None if html is None else str(html)
    run(Namespace(run_id=run_id, html=page, archive=str(archive), json=as_json))


def refused(run_id: str, archive: Path) -> str:
    with pytest.raises(SizerError) as error:
        report(run_id, archive)
    sentence = str(error.value)
    assert sentence.endswith((".", "?"))
    return sentence


@pytest.mark.parametrize("wanted", [RUNS[2], "202602", "last"])
def test_a_run_is_named_in_full_by_its_beginning_or_as_the_last(
    wanted: str, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(wanted, archive, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["run"]["run_id"] == RUNS[2]
    assert found["categories"][0]["name"] == "align-2"


def test_people_get_a_few_lines_and_a_table(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report("last", archive)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "Run       20260202-120000-cccc (align.py, jane on login1)"
    assert "Tasks     10, none failed" in lines
    assert "Attempts  20, 10 retries (10 ran out of memory)" in lines
    assert "Memory    50 GB·h allocated, 20 GB·h used, 40 %" in lines
    saved = "10 GB·h in addition (25 %) against giving every task 4 GB"
    assert f"Saved     {saved}, the largest allocation that any task of the run had" in lines
    row = next(line for line in lines if line.startswith("align-2 "))
    assert row.split() == ["align-2", "10", "0", "10", "50", "20", "40", "%", *["2", "GB"] * 2]
    assert "  align-2: parsl_resource_specification={'memory': 2100}" in lines


def test_of_an_imported_run_it_is_not_said_that_anything_was_saved(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = open_archive(archive)
    imported = Run("imported", 2e9, source="nextflow")
    found.record([Entry(imported, outcome) for outcome in outcomes("align")])
    found.close()
    report("last", archive)
    out = capsys.readouterr().out
    assert "Compared  10 GB·h more (25 %) than giving every task 4 GB" in out
    assert "Saved" not in out


def test_it_fits_a_narrow_terminal(
    archive: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    report("last", archive)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    [row] = [line.split() for line in out.splitlines() if line.startswith("align-2 ")]
    assert row[-4:] == ["2", "GB", "2", "GB"]


def test_the_page_is_written_and_nothing_else_is_printed(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, found = tmp_path / "run.html", open_archive(archive)
    found.record([Entry(Run("run", 2e9), outcome) for outcome in outcomes("many", 20)])
    found.close()
    report("last", archive, html=page)
    out, error = capsys.readouterr()
    assert out == ""
    assert error == f"parsl-sizer: The page is in {page}.\n"
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "<strong>many</strong>" in text
    assert "Retries per task over the first allocation" in text
    report(RUNS[2], archive, html=page)
    text = page.read_text(encoding="utf-8")
    assert "has 10 measured peaks of memory, and 20 is the fewest to advise on." in text
    assert "Retries per task over the first allocation" not in text


def test_page_and_json_go_together(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report("last", archive, html=tmp_path / "run.html", as_json=True)
    assert json.loads(capsys.readouterr().out)["totals"]["tasks"] == 10
    assert (tmp_path / "run.html").exists()


def test_a_run_that_is_not_there_brings_up_close_ones(archive: Path) -> None:
    sentence = refused("20260101-120000-aaab", archive)
    assert sentence.startswith("There is no run '20260101-120000-aaab'; did you mean")
    assert RUNS[0] in sentence
    assert RUNS[2] in refused("x", archive)


def test_the_beginning_of_several_runs_is_not_enough(archive: Path) -> None:
    sentence = refused("20260101", archive)
    assert "is the beginning of 2 runs" in sentence
    assert all(name in sentence for name in RUNS[:2])


@pytest.mark.parametrize("wanted", ["last", "x"])
def test_an_archive_without_runs_says_so(wanted: str, tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite3"
    open_archive(path).close()
    assert refused(wanted, path) == f"There is no run in the archive {path} yet."


def test_an_archive_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert "no archive at" in refused("last", tmp_path / "none.sqlite3")


@pytest.mark.parametrize("names", [("run-1", "run-10"), ("run-10", "run-1")])
def test_a_whole_name_is_meant_where_it_begins_another(
    names: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "archive.sqlite3"
    found = open_archive(path)
    for name in names:
        found.record([Entry(Run(name), outcome) for outcome in outcomes("a")])
    found.close()
    report("run-1", path, as_json=True)
    assert json.loads(capsys.readouterr().out)["run"]["run_id"] == "run-1"
