"""The folders of tasks: what they hold, and that they go."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.monitor import sandbox
from parsl_sizer.monitor.sandbox import Sandbox

KB = 1024


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_files_in_all_folders_count(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    before = sandbox.used(str(tmp_path))
    (tmp_path / "one").write_bytes(b"x" * 40 * KB)
    (tmp_path / "deep" / "er" / "two").write_bytes(b"x" * 80 * KB)
    after = sandbox.used(str(tmp_path))
    assert before is not None
    assert after is not None
    assert after - before == pytest.approx(120 * KB, abs=8 * KB)


def test_holes_in_files_do_not_count(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(100_000_000)
    assert (sandbox.used(str(tmp_path)) or 0) < 100 * KB


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "large").write_bytes(b"x" * 400 * KB)
    (folder / "link").symlink_to(tmp_path / "large")
    (folder / "loop").symlink_to(folder)
    assert (sandbox.used(str(folder)) or 0) < 100 * KB


def test_a_folder_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    assert sandbox.used(str(tmp_path / "gone")) == 0


def test_a_sandbox_is_empty_when_it_was_cleared() -> None:
    made = Sandbox()
    assert made.path is not None
    path = Path(made.path)
    (path / "folder" / "deep").mkdir(parents=True)
    (path / "file").touch()
    (path / "link").symlink_to(path)
    made.clear()
    assert list(path.iterdir()) == []
    made.remove()
    made.unlock()
    assert not path.exists()


def test_what_the_dead_have_left_is_swept_up() -> None:
    dead, living = Sandbox(), Sandbox()
    dead.unlock()
    third = Sandbox()
    assert dead.path is not None
    assert living.path is not None
    assert not Path(dead.path).exists()
    assert Path(living.path).exists()
    living.unlock()
    third.unlock()


def test_without_a_folder_there_is_no_sandbox(
    run: Callable[..., dict[str, Any]], isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sandbox.tempfile, "mkdtemp", refuse)
    report = run(os.getpid, isolation=isolation)
    assert report["ending"] == "returned"
    assert "disk" not in report["peak"]


def test_a_pipe_by_the_name_of_a_sandbox_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox.tempfile, "gettempdir", lambda: str(tmp_path))
    pipe = tmp_path / f"{sandbox.PREFIX}{os.getuid()}-pipe"
    os.mkfifo(pipe)
    sandbox._sweep()
    assert pipe.exists()
