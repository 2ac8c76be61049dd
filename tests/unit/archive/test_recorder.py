"""Recording a run: in the background, whatever the archive does."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from parsl_sizer.archive import Run, recorder
from parsl_sizer.archive import open as opening
from parsl_sizer.archive.base import ArchiveError, Query
from parsl_sizer.archive.open import open_archive, set_aside
from parsl_sizer.archive.recorder import Recorder
from parsl_sizer.archive.schema import VERSION
from parsl_sizer.archive.spool import Spool, merged
from parsl_sizer.archive.sqlite import SqliteArchive, file_at
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, TaskInfo, Usage

RUN = Run("run-1", started_at=5.0, user="ann")
SCHEMA = 64 * 4096
"""So many bytes at the beginning of a file are the tables it has and where they begin: what is
damaged behind them is found when it is used, not when the file is opened."""


def outcome(number: int) -> Outcome:
    usage = Usage({Kind.MEMORY: 1e9}, wall_s=1.0)
    return Outcome(Attempt(TaskInfo(number, "align"), 1, {}), Ending.DONE, float(number), usage)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "archive.sqlite3"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def recorded(path: Path, said: list[str]) -> Callable[..., None]:
    """Records so many outcomes and closes."""

    def record(count: int = 10, run: Run = RUN) -> None:
        made = Recorder(path, run, warn=said.append, every_s=0.01)
        made.start()
        for number in range(count):
            made.record(outcome(number))
        made.close()

    return record


def tasks_in(path: Path) -> list[int | str]:
    archive = open_archive(path, read_only=True)
    found = [entry.outcome.attempt.task.task_id for entry in archive.entries()]
    archive.close()
    return sorted(found, key=int)


def is_there(path: Path, task: int) -> bool:
    """Whether this task alone is in an archive that may be about to be made."""
    try:
        return tasks_in(path) == [task]
    except ArchiveError:
        return False


def until(is_so: Callable[[], bool]) -> None:
    """Wait for it, but not for ever."""
    limit = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_everything_is_there_afterwards(path: Path, recorded: Callable[..., None]) -> None:
    recorded(12_345)
    assert tasks_in(path) == list(range(12_345))


def test_it_is_written_while_the_run_lasts(path: Path, said: list[str]) -> None:
    made = Recorder(path, RUN, warn=said.append, every_s=0.01)
    made.start()
    made.record(outcome(1))
    until(lambda: is_there(path, 1))
    made.close()


def test_a_buffer_that_is_full_loses_and_counts(
    path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Recorder(path, RUN, warn=said.append, most=5)
    for number in range(8):
        made.record(outcome(number))
    made.start()
    made.close()
    assert tasks_in(path) == list(range(5))
    assert said == ["3 outcomes of this run were not recorded."]


def kept_aside(said: list[str]) -> Path:
    """The file that the one warning names."""
    [text] = said
    assert "`parsl-sizer import " in text
    return Path(text.partition("is kept in ")[2].partition(";")[0])


def adds_up(aside: Path, path: Path, count: int = 10) -> None:
    """What was set aside can be put into an archive."""
    archive = open_archive(path)
    assert merged(Spool(aside.parent), archive) == count
    archive.close()
    assert not aside.exists()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(
    path: Path, recorded: Callable[..., None], said: list[str]
) -> None:
    path.parent.mkdir()
    path.parent.chmod(stat.S_IRUSR | stat.S_IXUSR)
    recorded()
    aside = kept_aside(said)
    path.parent.chmod(stat.S_IRWXU)
    adds_up(aside, path)


def test_a_folder_that_cannot_be_made(
    path: Path, recorded: Callable[..., None], said: list[str], tmp_path: Path
) -> None:
    path.parent.write_text("a file")
    recorded()
    adds_up(kept_aside(said), tmp_path / "other.sqlite3")


def test_an_archive_of_a_newer_version_is_left_alone(
    path: Path, recorded: Callable[..., None], said: list[str], tmp_path: Path
) -> None:
    recorded(3)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    recorded(10, Run("run-2"))
    assert path.read_bytes() == before
    assert "please upgrade" in said[0]
    adds_up(kept_aside(said), tmp_path / "other.sqlite3")


def test_one_that_is_damaged_is_set_aside_and_a_new_one_begun(
    path: Path, recorded: Callable[..., None], said: list[str]
) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is no database " * 500)
    recorded()
    assert tasks_in(path) == list(range(10))
    [text] = said
    aside = Path(text.partition("kept as ")[2].partition(", and")[0])
    assert aside.read_bytes().startswith(b"this is no database")


def test_a_file_that_is_no_archive_is_left_and_the_run_kept_beside_it(
    tmp_path: Path, said: list[str]
) -> None:
    precious = tmp_path / "precious.csv"
    precious.write_text("precious\n")
    made = Recorder(precious, RUN, warn=said.append, every_s=0.01)
    made.start()
    for number in range(10):
        made.record(outcome(number))
    made.close()
    assert precious.read_text() == "precious\n"
    assert f"{precious} is no archive" in said[0]
    aside = kept_aside(said)
    assert aside.parent == Spool.beside(precious).folder
    adds_up(aside, tmp_path / "other.sqlite3")


@pytest.mark.parametrize("name", ["", "runs"])
def test_of_a_folder_it_is_told_and_the_run_kept_aside(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).mkdir(exist_ok=True)
    made = Recorder(Path(name), RUN, warn=said.append, every_s=0.01)
    made.start()
    made.record(outcome(1))
    made.close()
    assert "is a folder; name a file in it. What this run did is kept in" in said[0]
    adds_up(kept_aside(said), tmp_path / "other.sqlite3", 1)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.9])
def test_one_that_is_cut_short_loses_nothing_of_this_run(
    path: Path, recorded: Callable[..., None], said: list[str], share: float
) -> None:
    recorded(3000)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    recorded(10, Run("run-2"))
    found = []
    for place in [path, *path.parent.glob("*.spool/*.jsonl")]:
        if place.suffix == ".jsonl":
            other = SqliteArchive(path.with_name("other.sqlite3"))
            merged(Spool(place.parent), other)
            found += [entry.outcome for entry in other.entries(Query(run_id="run-2"))]
            other.close()
        else:
            archive = open_archive(place)
            found += [entry.outcome for entry in archive.entries(Query(run_id="run-2"))]
            archive.close()
    assert {one.attempt.task.task_id for one in found} == set(range(10))
    assert said


def test_one_that_another_process_holds_is_waited_for_then_left(
    path: Path,
    recorded: Callable[..., None],
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded(3)
    monkeypatch.setattr("parsl_sizer.archive.sqlite.BUSY_S", 0.1)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    recorded(10, Run("run-2"))
    assert "locked" in said[0]
    holder.execute("ROLLBACK")
    holder.close()
    adds_up(kept_aside(said), path)
    assert len(tasks_in(path)) == 13


def test_what_was_set_aside_is_added_by_the_next_run(
    path: Path, recorded: Callable[..., None], said: list[str]
) -> None:
    Spool.beside(path).append("killed", [])
    made = Recorder(path, Run("killed"), warn=said.append)
    Spool.beside(path).append("killed", [(Run("killed"), outcome(5))])  # type: ignore[list-item]
    assert not made._waiting
    recorded(1)
    assert tasks_in(path) == [0, 5]
    assert not said


def test_on_a_network_every_run_has_its_own_file_until_its_end(
    path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "is_on_network", lambda path: True)
    monkeypatch.setattr(opening, "is_on_network", lambda path: True)
    one = Recorder(path, Run("one"), warn=said.append, every_s=0.01)
    other = Recorder(path, Run("other"), warn=said.append, every_s=0.01)
    for made in (one, other):
        made.start()
        for number in range(5):
            made.record(outcome(number))
    spool = Spool.beside(path).folder
    until(lambda: len(list(spool.glob("*.jsonl"))) == 2)
    one.close()
    assert len(tasks_in(path)) == 5  # the other is still being written
    assert [file.stem for file in spool.glob("*.jsonl")] == ["other"]
    other.close()
    assert len(tasks_in(path)) == 10
    assert not list(spool.glob("*.jsonl"))
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()
    assert not said


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with little room."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_what_a_full_disk_has_no_room_for_is_kept_elsewhere(
    small_disk: Path, said: list[str]
) -> None:
    path = small_disk / "archive.sqlite3"
    made = Recorder(path, Run(f"run-{os.getpid()}"), warn=said.append, every_s=0.01)
    made.start()
    for number in range(20_000):
        made.record(outcome(number))
    made.close()
    aside = kept_aside([text for text in said if "is kept in" in text][-1:])
    other = SqliteArchive(small_disk.parent / "other.sqlite3")
    merged(Spool(aside.parent), other)
    found = {entry.outcome.attempt.task.task_id for entry in other.entries()}
    other.close()
    assert found | set(tasks_in(path)) == set(range(20_000))


def test_where_nothing_can_be_written_the_record_is_lost_and_nothing_else(
    path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_place(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    path.parent.write_text("a file")
    monkeypatch.setattr(Spool, "append", no_place)
    made = Recorder(path, RUN, warn=said.append, every_s=0.01)
    made.start()
    made.record(outcome(1))
    made.close()
    assert any("no place for what this run did" in text for text in said)
    assert said[-1] == "1 outcomes of this run were not recorded."


def labelled(number: int, label: object, path: str = "/data/a") -> Outcome:
    task = TaskInfo(number, "align", labels={"odd": label}, inputs=(path,))
    return outcome(number)._replace(attempt=Attempt(task, 1, {}))


def itself() -> dict[str, object]:
    made: dict[str, object] = {}
    made["self"] = made
    return made


@pytest.mark.parametrize("label", [{(1, 2): 3}, itself(), {1, 2}, object(), float("nan"), "\udcff"])
def test_labels_and_names_of_any_kind_cost_nobody_a_record(
    path: Path, said: list[str], label: object
) -> None:
    made = Recorder(path, RUN, warn=said.append, every_s=0.01)
    made.start()
    for number in range(5):
        made.record(labelled(number, label, "/data/\udcff.fq"))
    made.close()
    assert tasks_in(path) == list(range(5))
    assert not said


def test_one_that_turns_out_to_be_damaged_is_replaced_while_the_run_lasts(
    path: Path, recorded: Callable[..., None], said: list[str]
) -> None:
    recorded(5000)
    content = bytearray(path.read_bytes())
    content[SCHEMA:] = b"\x55" * (len(content) - SCHEMA)
    path.write_bytes(content)
    recorded(10, Run("run-2"))
    assert tasks_in(path) == list(range(10))
    assert "a new one is begun" in said[0]
    [aside] = [file for file in path.parent.glob("*.damaged-*") if file.suffix[-4:-3] != "-"]
    assert aside.stat().st_size >= len(content)


def test_one_that_is_damaged_again_is_not_used_again(
    path: Path, recorded: Callable[..., None], said: list[str]
) -> None:
    recorded(5000)
    broken = path.read_bytes()[:SCHEMA].ljust(path.stat().st_size, b"\x55")
    path.write_bytes(broken)
    made = Recorder(path, RUN, warn=said.append, every_s=0.01, most=2)
    made.start()
    made.record(outcome(1))
    until(lambda: is_there(path, 1))
    for file in path.parent.glob(f"{path.name}*"):
        file.rename(file.with_name(f"old-{file.name}"))
    path.write_bytes(broken)
    made.record(outcome(2))
    until(lambda: len(said) == 2)
    path.unlink()
    made.record(outcome(3))
    made.close()
    assert not path.exists()
    assert "a new one is begun" in said[0]
    assert f"The archive {path} is damaged: " in said[1]
    assert "This run does not use it again. What this run did is kept in " in said[1]
    adds_up(Spool.beside(path).folder / "run-1.jsonl", path, 2)
    assert tasks_in(path) == [2, 3]


def test_of_one_that_cannot_be_used_just_now_it_is_told_why(
    path: Path,
    recorded: Callable[..., None],
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded(3)
    monkeypatch.setattr("parsl_sizer.archive.sqlite.BUSY_S", 0.1)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    made = Recorder(path, Run("run-2"), warn=said.append, most=4)
    for number in range(3):
        made.record(outcome(number))
        made._flush()
    holder.execute("ROLLBACK")
    holder.close()
    [text] = said
    assert text.startswith(f"The archive {path} cannot be used: database is locked. What this run")
    made.start()
    made.close()
    assert tasks_in(path) == [0, 0, 1, 1, 2, 2]


def test_one_that_could_not_be_used_is_tried_again_while_the_run_lasts(
    path: Path,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorder, "AGAIN_S", 0.1)
    path.parent.write_text("a file, where a folder is to be")
    made = Recorder(path, RUN, warn=said.append, every_s=0.01)
    made.start()
    made.record(outcome(1))
    until(lambda: made._try_at > 0)
    path.parent.unlink()
    until(lambda: is_there(path, 1))
    made.close()
    assert not said


@pytest.mark.parametrize("is_renamed", [True, False])
def test_one_that_is_moved_or_removed_while_the_run_lasts_is_begun_again(
    path: Path, said: list[str], is_renamed: bool
) -> None:
    made = Recorder(path, RUN, warn=said.append, every_s=0.01)
    made.start()
    made.record(outcome(1))
    until(lambda: is_there(path, 1))
    if is_renamed:
        path.rename(path.with_name("moved.sqlite3"))
    else:
        path.unlink()
    made.record(outcome(2))
    made.close()
    assert tasks_in(path) == [2]
    assert not said


def test_one_that_another_has_replaced_is_not_set_aside(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is no database")
    damaged = file_at(path)
    aside = set_aside(path, damaged)
    assert aside is not None
    assert aside.read_bytes() == b"this is no database"
    open_archive(path).close()
    assert set_aside(path, damaged) is None
    assert tasks_in(path) == []


@pytest.mark.parametrize("lost", [0, 3])
def test_a_file_system_that_never_answers_holds_up_neither_the_run_nor_its_end(
    path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lost: int
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(recorder, "is_on_network", lambda path: not answers.wait())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = threading.Event()

    def run() -> None:
        made = Recorder(path, RUN, warn=said.append, every_s=0.01, most=10)
        made.start()
        for number in range(10 + lost):
            made.record(outcome(number))
        made.close(patience_s=0.1)
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    assert ended.wait(30)
    assert "still being written after 0.1 s" in said[0]
    aside = kept_aside(said[:1])
    assert len(aside.read_text().splitlines()) == 10
    told = ["3 outcomes of this run were not recorded."] if lost else []
    assert said[1:] == told
    answers.set()
    until(lambda: not any(thread.name == "parsl_sizer-archive" for thread in threading.enumerate()))
    assert tasks_in(path) == list(range(10))
    assert said[1:] == told
