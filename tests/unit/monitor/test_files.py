"""Memory that no process has mapped: files in /dev/shm, and memfd."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any, cast

import pytest

from parsl_sizer.monitor import cgroup, files, supervisor

Run = Callable[..., dict[str, Any]]

MB = 1_000_000
SLACK = 5 * MB


@pytest.fixture
def path() -> Iterator[Path]:
    """A file in /dev/shm that a call may leave there."""
    made = Path(files.FOLDER, f"parsl_sizer-test-{uuid.uuid4().hex}")
    yield made
    made.unlink(missing_ok=True)


@pytest.fixture(params=["counted by the group", "found by open files"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "found by open files":
        monkeypatch.setattr(supervisor.cgroup, "make", lambda place: None)
    elif cgroup.room(cgroup.place("memory"))[0] is None:
        pytest.skip("no group can be made here")


pytestmark = pytest.mark.usefixtures("_both_ways")


def peak(report: dict[str, Any]) -> int:
    assert report["ending"] == "returned", report
    found: int = report["peak"]["memory"]
    return found


def fill(file: Any, size: int, pause_s: float = 0.0) -> None:
    block = b"x" * MB
    for _ in range(size // MB):
        file.write(block)
        time.sleep(pause_s)


def write(path: Path, size: int) -> None:
    with path.open("wb") as file:
        fill(file, size, 0.003)  # as if it came from somewhere: it is looked at meanwhile


def write_to_memfd(size: int) -> None:
    with os.fdopen(os.memfd_create("test"), "wb") as file:
        fill(file, size)
        file.flush()
        time.sleep(0.5)


def nothing(seconds: float) -> None:
    time.sleep(seconds)


def test_a_file_in_shared_memory_counts_and_stays(run: Run, isolation: str, path: Path) -> None:
    report = run(write, path, 100 * MB, isolation=isolation)
    assert peak(report) == pytest.approx(101 * MB, rel=0.02, abs=SLACK)
    assert path.stat().st_size == 100 * MB


def test_it_is_not_charged_to_the_next_call(run: Run, isolation: str, path: Path) -> None:
    run(write, path, 100 * MB, isolation=isolation)
    for seconds in (0.0, 0.2):
        assert peak(run(nothing, seconds, isolation=isolation)) < SLACK


def test_of_a_file_that_was_there_only_what_it_has_grown_by_counts(
    run: Run, isolation: str, path: Path
) -> None:
    def add(size: int) -> None:
        with path.open("r+b") as file:
            file.read(1)
            file.seek(0, os.SEEK_END)
            fill(file, size)
            file.flush()
            time.sleep(0.3)

    run(nothing, 0.0, isolation=isolation)  # what its runner knows of the folder is older
    write(path, 100 * MB)
    for _ in range(2):
        report = run(add, 20 * MB, isolation=isolation)
        assert peak(report) == pytest.approx(21 * MB, rel=0.03, abs=SLACK)


def test_memfd_counts(run: Run, isolation: str) -> None:
    report = run(write_to_memfd, 100 * MB, isolation=isolation)
    assert peak(report) == pytest.approx(101 * MB, rel=0.02, abs=SLACK)


def test_a_file_that_was_deleted_counts_while_it_is_open(
    run: Run, isolation: str, path: Path
) -> None:
    def hide() -> None:
        with path.open("wb") as file:
            path.unlink()
            fill(file, 100 * MB)
            file.flush()
            time.sleep(0.5)

    report = run(hide, isolation=isolation)
    assert peak(report) == pytest.approx(101 * MB, rel=0.02, abs=SLACK)


def test_what_is_mapped_as_well_counts_once(run: Run, isolation: str) -> None:
    def share() -> None:
        memory = SharedMemory(create=True, size=100 * MB)
        memory.buf[::4096] = b"x" * len(memory.buf[::4096])
        write_to_memfd(50 * MB)
        memory.close()
        memory.unlink()

    # Beside them, Python's process that tracks shared memory.
    report = run(share, isolation=isolation)
    assert peak(report) == pytest.approx(156 * MB, rel=0.05, abs=2 * SLACK)


def test_a_file_counts_that_is_removed_before_the_end(run: Run, path: Path) -> None:
    def write_and_remove() -> None:
        with path.open("wb") as file:
            fill(file, 100 * MB)
            file.flush()
            time.sleep(1)  # without a control group only what is open when looked at is seen
        path.unlink()
        time.sleep(0.2)

    assert peak(run(write_and_remove)) == pytest.approx(101 * MB, rel=0.2)


@pytest.mark.parametrize("kind", ["file", "memfd"])
def test_a_breach_is_stopped(run: Run, supervised: str, path: Path, kind: str) -> None:
    def breach() -> None:
        made = path.open("wb") if kind == "file" else os.fdopen(os.memfd_create("test"), "wb")
        fill(made, 150 * MB)
        made.flush()
        time.sleep(1000)

    report = run(breach, isolation=supervised, limits={"memory": 100 * MB})
    assert (report["ending"], report["exhausted"]) == ("stopped", ["memory"])
    assert report["peak"]["memory"] == pytest.approx(151 * MB, rel=0.02, abs=SLACK)


def test_what_others_write_meanwhile_does_not_count(run: Run, path: Path) -> None:
    run(nothing, 0.0)  # a runner that is forked later would have it open as well
    with path.open("wb") as file:
        fill(file, 50 * MB)
        file.flush()
        assert peak(run(nothing, 0.3)) < SLACK


def test_what_is_only_read_does_not_count(run: Run, isolation: str, path: Path) -> None:
    with path.open("wb") as file:
        fill(file, 50 * MB)
    os.utime(path)

    def read() -> int:
        with path.open("rb") as file:
            found = len(file.read(MB))
            time.sleep(0.3)
        return found

    time.sleep(2 * files.TICK_S)
    assert peak(run(read, isolation=isolation)) < SLACK


def make_later(path: Path, size: int, after_s: float = 0.3) -> subprocess.Popen[bytes]:
    """Make a file in a process that belongs to no call, while a call runs."""
    command = 'sleep "$1"; head -c "$2" /dev/zero > "$3.part"; mv "$3.part" "$3"'
    return subprocess.Popen(["sh", "-c", command, "sh", str(after_s), str(size), str(path)])


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def test_a_reader_is_not_charged_for_a_file_that_another_task_made_meanwhile(
    run: Run, isolation: str, path: Path
) -> None:
    def read() -> None:
        wait_for(path)
        with path.open("rb") as file:
            file.read(MB)
            time.sleep(0.3)

    with make_later(path, 50 * MB):
        assert peak(run(read, isolation=isolation)) < SLACK


def test_of_a_file_that_another_task_made_only_what_is_added_counts(
    run: Run, isolation: str, path: Path
) -> None:
    def read_and_add(size: int) -> None:
        wait_for(path)
        with path.open("rb") as file:
            file.read(MB)
            time.sleep(0.3)
        with path.open("ab") as file:
            fill(file, size)
            file.flush()
            time.sleep(0.3)

    with make_later(path, 50 * MB):
        report = run(read_and_add, 20 * MB, isolation=isolation)
    assert peak(report) == pytest.approx(21 * MB, rel=0.03, abs=SLACK)


def add_to(path: Path, size: int) -> None:
    with path.open("ab") as file:
        file.write(b"x" * size)


def test_what_short_calls_left_in_little_pieces_is_not_charged_to_a_long_one(
    run: Run, isolation: str, path: Path
) -> None:
    for _ in range(8):  # each too little to be looked at
        run(add_to, path, 4 * MB, isolation=isolation)
    assert path.stat().st_size == 32 * MB
    assert peak(run(nothing, 0.2, isolation=isolation)) < SLACK


def test_so_it_is_in_a_tmpdir_that_is_a_tmpfs(
    run: Run, isolation: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FOLDER", "/nowhere")
    monkeypatch.setattr("tempfile.tempdir", str(path.parent))
    for _ in range(8):
        run(add_to, path, 4 * MB, isolation=isolation)
    assert peak(run(nothing, 0.2, isolation=isolation)) < SLACK


def test_shared_memory_that_short_calls_left_mapped_is_not_charged_to_a_long_one(run: Run) -> None:
    kept: list[Any] = []

    def keep(size: int) -> None:
        import builtins
        import mmap

        made = mmap.mmap(-1, size)
        made[::4096] = b"x" * len(made[::4096])
        builtins.__dict__.setdefault("_kept", kept).append(made)

    for _ in range(4):
        run(keep, 8 * MB, keep_caches=True, category="a")
    assert peak(run(nothing, 0.2, keep_caches=True, category="b")) < SLACK


def test_the_group_is_read_only_after_something_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []

    class Group:
        def shmem(self) -> int:
            looks.append(1)
            return 0

    room = [1e9]
    monkeypatch.setattr(files, "free", lambda places: tuple(room))
    known = files.Files(cast("cgroup.Group", Group()))
    for _ in range(5):
        known.begin(os.getpid(), 0)
    assert len(looks) == 1
    room[0] -= MB
    for _ in range(5):
        known.begin(os.getpid(), 0)
    assert len(looks) == 2
    known.begin(os.getpid(), MB)
    assert len(looks) == 3


@pytest.fixture
def tmpdir_in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in /dev/shm below which calls have their TMPDIR; its path has to be short."""
    made = Path(tempfile.mkdtemp(dir=files.FOLDER))
    monkeypatch.setattr("tempfile.tempdir", str(made))
    yield made
    shutil.rmtree(made)


def write_little_files(count: int, size: int, pause_s: float) -> None:
    """Write files into TMPDIR that are open for a moment each."""
    for number in range(count):
        made = Path(tempfile.gettempdir(), f"{number}")
        made.write_bytes(b"x" * size)
        os.utime(made, (0, 0))  # as what unpacks archives does
    time.sleep(pause_s)


@pytest.mark.usefixtures("tmpdir_in_memory")
def test_files_in_a_tmpdir_in_memory_count_after_they_were_closed(run: Run, isolation: str) -> None:
    for _ in range(2):
        report = run(write_little_files, 25, 2 * MB, 0.3, isolation=isolation)
        assert peak(report) == pytest.approx(51 * MB, rel=0.03, abs=SLACK)
    assert peak(run(nothing, 0.2, isolation=isolation)) < SLACK


@pytest.mark.usefixtures("tmpdir_in_memory")
def test_a_breach_by_closed_files_in_a_tmpdir_in_memory_is_stopped(
    run: Run, supervised: str
) -> None:
    limits = {"memory": 30 * MB}
    report = run(write_little_files, 25, 2 * MB, 10.0, isolation=supervised, limits=limits)
    assert (report["ending"], report["exhausted"]) == ("stopped", ["memory"])


@pytest.mark.parametrize("how", [os.link, os.symlink, os.rename])
@pytest.mark.usefixtures("tmpdir_in_memory")
def test_a_file_that_was_there_does_not_count_for_being_put_into_a_tmpdir(
    run: Run, isolation: str, path: Path, how: Callable[[Path, str], None]
) -> None:
    def take() -> None:
        how(path, f"{tempfile.gettempdir()}/taken")
        time.sleep(0.3)

    write(path, 50 * MB)
    time.sleep(2 * files.TICK_S)
    assert peak(run(take, isolation=isolation)) < SLACK


def test_files_of_a_working_folder_in_memory_count_too(
    run: Run, isolation: str, tmpdir_in_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_beside() -> None:
        with Path("input").open("ab") as file:
            file.write(b"x" * MB)
        for number in range(10):
            Path(f"{number}").write_bytes(b"x" * 2 * MB)
        time.sleep(0.3)

    monkeypatch.chdir(tmpdir_in_memory)
    write(tmpdir_in_memory / "input", 50 * MB)
    time.sleep(2 * files.TICK_S)
    report = run(write_beside, isolation=isolation, sandbox="cwd")
    assert peak(report) == pytest.approx(22 * MB, rel=0.03, abs=SLACK)


def test_a_working_folder_that_tasks_share_is_not_ones_own(
    run: Run, isolation: str, tmpdir_in_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmpdir_in_memory / ("x" * 40)  # leaves no room for folders of tasks' own
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    monkeypatch.chdir(tmpdir_in_memory)
    with make_later(tmpdir_in_memory / "neighbours", 50 * MB):
        assert peak(run(nothing, 1.0, isolation=isolation)) < SLACK
