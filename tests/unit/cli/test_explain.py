"""``parsl-sizer explain``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.archive.open import open_archive
from parsl_sizer.cli import main
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, TaskInfo, Usage

Printed = Callable[..., Any]
GB = 1e9
OLD = Run("old", 1000.0, workflow="flow.py")
NEW = Run("new", 5000.0, workflow="flow.py")
LOGGED = Run("logged", source="nextflow")


def entry(run: Run, task_id: int | str, peak: float, at: float, **others: Any) -> Entry:
    ending = others.pop("ending", Ending.DONE)
    number = others.pop("number", 1)
    task = TaskInfo(
        task_id, "align", command="module.align", features={"input_size": 2e6, "reads": 7}
    )
    allocation = {Kind.CORES: 1.0, Kind.MEMORY: others.pop("given", 4 * GB)}
    attempt = Attempt(task, number, allocation, "block-1", f"rung {number}", at - 60 if at else 0.0)
    exhausted = frozenset({Kind.MEMORY} if ending is Ending.EXHAUSTED else ())
    usage = Usage({Kind.MEMORY: peak}, 60.0, 30.0)
    return Entry(run, Outcome(attempt, ending, at, usage, exhausted, host="node-7", **others))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive.sqlite3"
    opened = open_archive(path)
    opened.record([entry(OLD, number, number * GB, 2000.0 + number) for number in range(1, 6)])
    opened.record([entry(NEW, number, 2 * GB, 6000.0 + number) for number in range(3)])
    opened.record(
        [
            entry(NEW, 17, 3 * GB, 6200.0, given=2 * GB, ending=Ending.EXHAUSTED),
            entry(NEW, 17, 3 * GB, 6300.0, given=8 * GB, number=2),
            entry(NEW, "17", 3 * GB, 6400.0),
            entry(LOGGED, "25", 3 * GB, 0.0, layers=(SAMPLED,)),
        ]
    )
    opened.close()
    return path


def test_all_attempts_are_told_with_their_reasons(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "17", "--archive", str(archive)]) == 0
    out = capsys.readouterr().out
    first, second = out.index("Attempt 1"), out.index("Attempt 2")
    assert out.startswith("Task 17, category align, in run new of flow.py\n")
    assert "known      2 MB of input, reads 7" in out
    told = out[first:second]
    assert "given      1 core, 2 GB memory" in told
    assert "because    rung 1" in told
    assert "used       3 GB memory, 30 s of CPU time" in told
    assert "ended      exhausted its memory after 1.0 min" in told
    assert "on         node-7, block-1" in told
    assert "ended      done after 1.0 min" in out[second:]
    assert (
        "Before it in this run: 3 tasks of its category had ended, with peaks of memory from "
        "2 GB to 2 GB, half of them up to 2 GB." in out
    )
    assert (
        "Before this run: 5 tasks of its category had ended, with peaks of memory from 1 GB to "
        "5 GB, half of them up to 3 GB." in out
    )


def test_programs_get_the_same(printed: Printed, archive: Path) -> None:
    found = printed("explain", 17, "--archive", archive)
    assert (found["run"], found["task"], found["category"]) == ("new", 17, "align")
    assert [attempt["number"] for attempt in found["attempts"]] == [1, 2]
    assert [attempt["why"] for attempt in found["attempts"]] == ["rung 1", "rung 2"]
    assert found["before_in_run"]["tasks"] == 3
    assert found["before_in_earlier_runs"] == {
        "tasks": 5,
        "is_all": True,
        "least": GB,
        "median": 3 * GB,
        "largest": 5 * GB,
    }


def test_the_first_task_of_all_had_nothing_to_go_by(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "1", "--run", "old", "--archive", str(archive)]) == 0
    out = capsys.readouterr().out
    assert "Before it in this run: no task of its category had ended." in out
    assert "Before this run: no task of its category had ended." in out


def test_a_task_of_another_system_may_have_no_times(
    archive: Path, capsys: pytest.CaptureFixture[str], printed: Printed
) -> None:
    assert main(["explain", "25", "--run", "logged", "--archive", str(archive)]) == 0
    out = capsys.readouterr().out
    assert "(the largest of some samples, so at least)" in out
    assert "When it began is not known" in out
    found = printed("explain", 25, "--run", "logged", "--archive", archive)
    assert found["before_in_run"] is None


def test_what_is_not_there_is_told(
    refused: Callable[..., str], archive: Path, tmp_path: Path
) -> None:
    sentence = refused("explain", 99, "--archive", archive)
    assert "The run new has no task '99' that has ended; name another run" in sentence
    assert "no task 'x²'" in refused("explain", "x²", "--archive", archive)
    assert "no task '²'" in refused("explain", "²", "--archive", archive)
    assert "There is no run 'x'; the newest are new, old, logged." in refused(
        "explain", 1, "--run", "x", "--archive", archive
    )
    open_archive(tmp_path / "empty.sqlite3").close()
    empty = tmp_path / "empty.sqlite3"
    assert f"There is no run in the archive {empty} yet." in refused(
        "explain", 1, "--archive", empty
    )
