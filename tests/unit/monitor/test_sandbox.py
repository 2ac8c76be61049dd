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
def temporary(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files of this test go."""
    monkeypatch.setattr(tempfile, "tempdir", os.environ["TMPDIR"])
    return Path(os.environ["TMPDIR"])


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


def folder_of(sandbox: Sandbox) -> Path:
    assert sandbox.path is not None
    return Path(sandbox.path)


def test_files_that_do_not_stay_are_removed_and_the_folder_is_used_again(temporary: Path) -> None:
    made = Sandbox()
    path = folder_of(made)
    (path / "folder" / "deep").mkdir(parents=True)
    (path / "file").touch()
    (path / "link").symlink_to(path)
    made.settle(stays=False)
    assert list(path.iterdir()) == []
    assert folder_of(made) == path
    made.remove()
    made.unlock()
    assert list(temporary.iterdir()) == []


def test_files_that_stay_do_so_and_the_next_call_has_another_folder(temporary: Path) -> None:
    made = Sandbox()
    path = folder_of(made)
    (path / "file").write_bytes(b"x" * 40 * KB)
    assert (made.settle(stays=True) or 0) >= 40 * KB
    following = folder_of(made)
    assert following != path
    assert made.settle(stays=True) == 0
    (following / "file").touch()
    made.remove()
    made.unlock()
    assert [file for file in temporary.rglob("*") if file.is_file()] == [path / "file"]
    assert not following.exists()


def test_an_unused_folder_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Sandbox()
    path = folder_of(made)
    monkeypatch.setattr(sandbox.os, "mkdir", lambda *_: pytest.fail("a call paid for a folder"))
    for _ in range(3):
        assert made.settle(stays=True) == 0
        assert folder_of(made) == path
    monkeypatch.undo()
    made.remove()
    made.unlock()


def test_a_call_that_removes_its_folder_leaves_the_next_one_another() -> None:
    made = Sandbox()
    path = folder_of(made)
    path.rmdir()
    made.settle(stays=True)
    assert folder_of(made).is_dir()
    made.remove()
    made.unlock()
    assert not path.parent.exists()


def test_of_the_dead_only_what_their_tasks_left_for_others_stays() -> None:
    dead, living = Sandbox(), Sandbox()
    left = folder_of(dead) / "result"
    left.touch()
    dead.settle(stays=True)
    (folder_of(dead) / "unfinished").touch()
    dead.unlock()
    for _ in range(2):
        third = Sandbox()
        assert not folder_of(dead).exists()
        assert left.exists()
        assert folder_of(living).exists()
        third.remove()
        third.unlock()
    living.remove()
    living.unlock()


def test_without_a_folder_there_is_no_sandbox(
    run: Callable[..., dict[str, Any]], isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sandbox.tempfile, "mkdtemp", refuse)
    report = run(os.getpid, isolation=isolation)
    assert report["ending"] == "returned"
    assert "disk" not in report["peak"]


@pytest.mark.parametrize("length", [30, 55, 60, 75, 100])
def test_sockets_can_be_made_wherever_they_can_without_us(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    folder = f"{temporary}/".ljust(length, "x")
    Path(folder).mkdir(exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", folder)
    made = Sandbox()
    longest = "/pymp-abcdefgh/listener-abcdefgh"
    if len(folder + longest) <= 107:
        assert len((made.path or folder) + longest) <= 107
    made.remove()


def test_a_pipe_by_the_name_of_a_sandbox_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox.tempfile, "gettempdir", lambda: str(tmp_path))
    pipe = tmp_path / f"{sandbox.PREFIX}{os.getuid()}-pipe"
    os.mkfifo(pipe)
    sandbox._sweep()
    assert pipe.exists()
