"""Every question about file sizes is answered once, whatever the file system does."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest
from parsl.data_provider.files import File
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor

from parsl_sizer import SizedExecutor
from parsl_sizer.executor.file_sizes import THREADS, FileSizes
from parsl_sizer.model import Attempt, Ending, Outcome, TaskInfo

LONG_S = 60.0


class Hanging(File):
    """A file on a file system that does not answer until `go_on`."""

    go_on = threading.Event()

    @property
    def filepath(self) -> str:
        self.go_on.wait()
        return str(super().filepath)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    Hanging.go_on = threading.Event()
    yield Hanging("nowhere")
    Hanging.go_on.set()


def test_sizes_are_told(tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_bytes(b"x" * 1000)
    sizes, told = FileSizes(), Queue[float | None]()
    sizes.ask([File(str(path)), File(str(path))], told.put)
    assert told.get(timeout=LONG_S) == 2000
    sizes.close()


def test_who_hangs_is_given_up_and_holds_up_nobody_for_long(hanging: Hanging) -> None:
    sizes, told = FileSizes(patience_s=0.2), Queue[float | None]()
    for _ in range(3 * THREADS):
        sizes.ask([hanging], told.put)
    assert [told.get(timeout=LONG_S) for _ in range(3 * THREADS)] == [None] * (3 * THREADS)
    hanging.go_on.set()
    sizes.close()
    assert told.empty()  # nothing is told twice


def test_after_the_end_nothing_is_waited_for(hanging: Hanging) -> None:
    sizes, told = FileSizes(), Queue[float | None]()
    sizes.ask([hanging], told.put)
    sizes.close()
    assert told.get_nowait() is None
    sizes.ask([hanging], told.put)
    assert told.get_nowait() is None


def test_a_task_whose_file_hangs_does_not_outlive_its_executor(hanging: Hanging) -> None:
    executor = SizedExecutor(ThreadPoolExecutor(), report=False)
    executor.start()
    future = executor.submit(len, {}, [hanging])
    executor.shutdown()
    assert "shut down" in str(future.exception(timeout=LONG_S))


def test_what_was_answered_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_bytes(b"x")
    sizes, told = FileSizes(), threading.Event()

    class Job:
        def tell(self, size: float | None) -> None:
            told.set()

    job = Job()
    known = weakref.ref(job)
    sizes.ask([File(str(path))], job.tell)
    del job
    assert told.wait(LONG_S)
    until = time.monotonic() + LONG_S
    while known() is not None and time.monotonic() < until:
        time.sleep(0.01)
    assert known() is None
    sizes.close()


def test_an_archive_that_cannot_be_anywhere_does_not_keep_anybody_from_starting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    executor = archiving("~nobody-of-this-name/a.sqlite3")
    assert executor._opened_history() is None
    assert "nothing is recorded" in caplog.text


@pytest.mark.parametrize("place", ["", "."])
def test_a_folder_named_as_the_archive_does_not_keep_anybody_from_starting(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    history = archiving(place)._opened_history()
    history.record(Outcome(Attempt(TaskInfo(1, "align"), 1, {}), Ending.DONE))
    history.close()
    assert "it is a folder; name a file in it" in caplog.text
    assert "What this run did is kept in" in caplog.text


def archiving(place: str) -> SizedExecutor:
    return SizedExecutor(HighThroughputExecutor(address="127.0.0.1"), archive=place, report=False)


def test_its_threads_end_at_whatever_moment_it_is_closed(tmp_path: Path) -> None:
    file = File(str(tmp_path))
    for _ in range(300):
        sizes, told = FileSizes(), Queue[float | None]()
        sizes.ask([file], told.put)
        told.get(timeout=LONG_S)  # who gives up is about to find that nobody waits
        sizes.close()
        for thread in sizes._threads:
            thread.join(LONG_S)
            assert not thread.is_alive()
