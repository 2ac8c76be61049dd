"""Names from other people's logs and archives do nothing to a terminal."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from parsl_sizer.archive.base import Entry, Run, Wait
from parsl_sizer.archive.open import open_archive
from parsl_sizer.cli import main
from parsl_sizer.model import Attempt, Ending, Kind, NodeProfile, Outcome, TaskInfo, Usage
from parsl_sizer.scaling import Geometry

HOSTILE = "\x1b]0;t\x07[red]\u202e\n\x9b1mx:smile:"
SHOWN = r"\x1b]0;t\x07[red]\u202e"
RUN = f"run-{HOSTILE}"

Told = Callable[..., str]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive in which every text is hostile, and a second run, so that runs are told apart."""
    path = tmp_path / "archive.sqlite3"
    opened = open_archive(path)
    for run in (
        Run(RUN, 1e9, HOSTILE, HOSTILE, host=HOSTILE, source=HOSTILE, labels={HOSTILE: HOSTILE}),
        Run("run-2", 1e9),
    ):
        for number in range(30):
            task = TaskInfo(f"{HOSTILE}{number}", HOSTILE, command=HOSTILE, features={HOSTILE: 1.0})
            attempt = Attempt(task, 1, {Kind.MEMORY: 4e9}, HOSTILE, HOSTILE, launched_at=1e9)
            usage = Usage({Kind.MEMORY: 1e9 + number}, 60.0)
            outcome = Outcome(attempt, Ending.DONE, 1e9 + number, usage, host=HOSTILE)
            opened.record([Entry(run, outcome)])
    opened.keep_profiles([NodeProfile(HOSTILE, {HOSTILE: 1.0}, {HOSTILE: HOSTILE}, 1e9, HOSTILE)])
    opened.record_waits([Wait(RUN, HOSTILE, Geometry(1, 4, 1e9, HOSTILE), 1e9, 60.0)])
    opened.close()
    return path


@pytest.fixture
def told(archive: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Runs a command and gives what it printed, if that is only what people can see."""

    def run(*arguments: str, status: int = 0) -> str:
        assert main([*arguments, "--archive", str(archive)]) == status
        found = "".join(capsys.readouterr())
        assert found.replace("\n", "").isprintable()
        return found

    return run


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("history --last 3", 4),
        (f"history --run {RUN!r} --last 3", 5),
        ("history --runs", 3),
        ("prune --older-than 1d --dry-run", 4),
        ("waits", 5),
        ("profile --list", 2),
    ],
)
@pytest.mark.parametrize("width", ["400", "80"])
def test_a_table_shows_names_escaped_one_row_each(
    told: Told, monkeypatch: pytest.MonkeyPatch, command: str, lines: int, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    arguments = [RUN if word == repr(RUN) else word for word in command.split(" ")]
    found = told(*arguments)
    if width == "400":
        assert SHOWN in found
        assert ":smile:" in found
        remark = "parsl-sizer: "
        assert len([line for line in found.splitlines() if not line.startswith(remark)]) == lines


def test_a_run_and_a_task_are_shown_escaped(told: Told, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    for command in (("report", RUN), ("explain", f"{HOSTILE}1", "--run", RUN), ("whatif", HOSTILE)):
        assert SHOWN in told(*command)
    told("report", RUN, "--html", str(page))
    assert page.read_text().replace("\n", "").isprintable()


def test_a_sentence_of_refusal_is_escaped(told: Told, tmp_path: Path) -> None:
    assert r"run-\x1b" in told("report", "run-", status=2)
    assert r"\x1b" in told("whatif", "\x1b[31m", status=2)
    assert r"\x1b" in told("history", "\x1b[31m", status=2)
    assert r"\x1b" in told("import", f"{tmp_path}/\x1b[31m", status=2)


def test_what_is_imported_is_told_escaped(told: Told, tmp_path: Path) -> None:
    folder = tmp_path / HOSTILE
    folder.mkdir()
    log = folder / "\x1b[31mtrace.csv"
    log.write_text("category,time_s,memory_mb\na,1,1\nb,1,many\n")
    assert r"\x1b[31mtrace.csv" in told("import", str(log), "--dry-run")
    assert SHOWN in told("import", str(log))


def test_what_the_server_logs_is_escaped() -> None:
    from parsl_sizer.cli.serve import LogFormat

    record = logging.LogRecord("waitress", logging.ERROR, "", 0, "Failed: %s", ("\x1b[31m",), None)
    assert LogFormat("%(message)s").format(record) == r"Failed: \x1b[31m"
