"""The script behind `make test` and .ci/run says what failed, and how to repeat just that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "steps"
IDENTITY = {
    f"GIT_{role}_{what}": "tests" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit."""
    (tmp_path / ".gitignore").write_text("out\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, env={**os.environ, **IDENTITY})
    return tmp_path


def run(checkout: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPT, "--name", "all", "--within", "60", *options]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


def head(checkout: Path) -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True).stdout.strip()


def test_a_failed_test_is_named_with_the_command_that_repeats_it(checkout: Path) -> None:
    said = ["python -m pytest --more", "...F", "FAILED tests/test_it.py::test_bad[a-b c] - no"]
    output = checkout / "said"
    output.write_text("\n".join(said))
    command = f"sh -c 'cat {output}; exit 1'"
    ran = run(checkout, f"tests={command}", "after=echo reached", "--note", "out/passed")
    assert ran.returncode == 1
    assert "reached" in ran.stdout
    lines = ran.stdout.splitlines()
    assert lines[-2] == "Step tests failed (exit status 1). To repeat it:"
    assert lines[-1] == "  python -m pytest 'tests/test_it.py::test_bad[a-b c]'"
    assert not (checkout / "out" / "passed").exists()


def test_a_step_without_tests_is_repeated_as_a_whole(checkout: Path) -> None:
    ran = run(checkout, "lint=sh -c 'exit 3'")
    assert ran.stdout.splitlines()[-2:] == [
        "Step lint failed (exit status 3). To repeat it:",
        "  sh -c 'exit 3'",
    ]


def test_nothing_runs_after_a_setup_that_failed(checkout: Path) -> None:
    ran = run(checkout, "--setup", "first=false", "second=echo reached")
    assert ran.returncode == 1
    assert "reached" not in ran.stdout


def test_a_commit_that_passed_is_noted_with_the_seconds_of_each_step(checkout: Path) -> None:
    note = checkout / ".git" / "ci-passed"
    ran = run(checkout, "--setup", "first=true", "second=true", "--note", str(note))
    assert ran.returncode == 0
    noted = note.read_text().splitlines()
    assert noted[0] == head(checkout)
    assert [line.split()[0] for line in noted[1:]] == ["first", "second", "all"]
    assert "\n".join(noted[1:]) in ran.stdout


def test_a_work_tree_that_was_changed_is_not_noted(checkout: Path) -> None:
    (checkout / "new").touch()
    note = checkout / ".git" / "ci-passed"
    ran = run(checkout, "step=true", "--note", str(note))
    assert ran.returncode == 0
    assert not note.exists()
    assert "differs from the commit" in ran.stdout
