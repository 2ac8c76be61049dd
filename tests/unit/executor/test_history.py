"""What a run reads of earlier ones, whatever the archive does."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsl_sizer.archive.base import Query
from parsl_sizer.archive.open import open_archive
from parsl_sizer.executor import history
from parsl_sizer.executor.history import History
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage

TASK = TaskInfo(1, "align")
LIMIT_S = 30.0


def outcome(number: int) -> Outcome:
    usage = Usage({Kind.MEMORY: 1e9}, wall_s=1.0)
    return Outcome(Attempt(TaskInfo(number, "align"), 1, {}), Ending.DONE, float(number), usage)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that lets whoever opens it to read wait, as one on a server that is away does."""
    monkeypatch.setattr(history, "PATIENCE_S", 0.1)
    path = tmp_path / "archive.sqlite3"
    os.mkfifo(path)
    yield path
    until = time.monotonic() + LIMIT_S
    while any(thread.name == "parsl_sizer-history" for thread in threading.enumerate()):
        assert time.monotonic() < until
        handle = os.open(path, os.O_RDWR)  # who waits is let go
        time.sleep(0.01)
        os.close(handle)


def asked(made: History, task: TaskInfo = TASK) -> list[object]:
    """What is known before a task, from another thread: who waits for ever fails, not hangs."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(made.before(task)), daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    assert found, f"still not answered after {LIMIT_S} s"
    return found


def test_what_one_run_did_the_next_one_knows(tmp_path: Path, said: list[str]) -> None:
    path = tmp_path / "archive.sqlite3"
    first = History(path, None, said.append)
    first.start()
    assert first.before(TASK) == ()
    first.record(outcome(7))
    first.close()
    second = History(path, None, said.append)
    second.start()
    [known] = second.before(TASK)
    second.close()
    assert known.attempt.task.task_id == f"{first.run_id}/7"
    assert not said


def test_what_is_known_is_looked_up_while_others_go_on(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "archive.sqlite3"
    open_archive(path).close()
    looked_up, go_on = [], threading.Event()

    def slow(archive: object, task: TaskInfo) -> list[Outcome]:
        assert go_on.wait(LIMIT_S)
        looked_up.append(threading.current_thread())
        return [outcome(int(task.task_id))]

    monkeypatch.setattr(history, "lessons", slow)
    made = History(path, None, said.append)
    made.start()
    asked = [made.load(TaskInfo(number, "align")) for number in range(3)]
    assert not any(answer.done() for answer in asked)
    go_on.set()
    assert [answer.result(LIMIT_S) for answer in asked] == [[outcome(n)] for n in range(3)]
    assert threading.current_thread() not in looked_up
    made.close()
    assert made.load(TASK).result(0) == made.before(TASK) == ()
    assert not [one for one in threading.enumerate() if one.name.startswith("parsl_sizer-history")]
    assert not said


def test_when_a_run_has_ended_its_archive_is_one_file(tmp_path: Path, said: list[str]) -> None:
    path = tmp_path / "archive.sqlite3"
    open_archive(path).close()
    made = History(path, None, said.append)
    made.start()
    assert made.before(TASK) == []
    made.record(outcome(7))
    made.close()
    assert list(tmp_path.iterdir()) == [path]
    copied = open_archive(shutil.copy(path, tmp_path / "copy.sqlite3"), read_only=True)
    assert [entry.outcome.attempt.task.task_id for entry in copied.entries()] == [7]
    copied.close()
    assert not said


def test_an_empty_file_is_an_archive_that_nothing_was_recorded_in_yet(
    tmp_path: Path, said: list[str]
) -> None:
    path = tmp_path / "archive.sqlite3"
    path.touch()
    made = History(path, None, said.append)
    made.start()
    assert made.before(TASK) == ()
    made.record(outcome(7))
    made.close()
    assert not said


@pytest.mark.parametrize(
    ("labels", "recorded"), [(None, 64_000_000_000), ({"node_memory": "8GB"}, "8GB")]
)
def test_a_run_is_recorded_with_the_memory_of_its_node_unless_a_label_has_it(
    tmp_path: Path, said: list[str], labels: dict[str, object] | None, recorded: object
) -> None:
    path, nodes = tmp_path / "archive.sqlite3", [Resources(memory=64e9)]
    made = History(path, labels, said.append, node=nodes.pop)
    made.start()
    for number in (7, 8):
        made.record(outcome(number))
    made.close()
    archive = open_archive(path, read_only=True)
    [line] = archive.runs(Query())
    archive.close()
    assert (line.attempts, dict(line.run.labels)) == (2, {"node_memory": recorded})


def test_an_archive_that_never_answers_holds_up_nobody(hanging: Path, said: list[str]) -> None:
    made = History(hanging, None, said.append)
    assert asked(made) == [()]
    assert asked(made, TaskInfo(2, "sort")) == [()]
    [text] = said
    assert text == (
        f"Tasks have waited 0.1 s for the archive {hanging}. "
        "Nothing more is asked of it: later categories start anew."
    )


def test_an_archive_that_answers_slowly_holds_up_tasks_so_long_in_all(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(archive: object, task: TaskInfo) -> list[Outcome]:
        time.sleep(0.05)
        return [outcome(1)]

    monkeypatch.setattr(history, "lessons", slow)
    monkeypatch.setattr(history, "PATIENCE_S", 0.5)
    monkeypatch.setattr(history, "SOON_S", 0.0)
    path = tmp_path / "archive.sqlite3"
    open_archive(path).close()
    made = History(path, None, said.append)
    made.start()
    answers = [made.before(TASK) for _ in range(11)]
    made.close()
    assert answers[0] == [outcome(1)]
    assert answers[-1] == ()
    assert len(said) == 1


def test_an_archive_that_never_answers_does_not_hold_up_the_end(
    hanging: Path, said: list[str]
) -> None:
    made = History(hanging, None, said.append)
    assert asked(made) == [()]
    made.start()
    made.record(outcome(1))
    closing = threading.Thread(target=made.close, daemon=True)
    closing.start()
    closing.join(LIMIT_S)
    assert not closing.is_alive()


def test_one_that_stops_answering_is_let_go(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "archive.sqlite3"
    open_archive(path).close()
    monkeypatch.setattr(history, "PATIENCE_S", 0.1)
    answers = threading.Event()
    monkeypatch.setattr(history, "lessons", lambda archive, task: answers.wait() and ())
    made = History(path, None, said.append)
    made.start()
    assert asked(made) == [()]
    closing = threading.Thread(target=made.close, daemon=True)
    closing.start()
    closing.join(LIMIT_S)
    assert not closing.is_alive()
    answers.set()
    assert "Tasks have waited 0.1 s" in said[0]


def test_a_place_that_cannot_even_be_looked_at_is_told_once(
    tmp_path: Path, said: list[str]
) -> None:
    made = History(tmp_path / ("x" * 300), None, said.append)
    for number in range(3):
        assert made.before(TaskInfo(number, f"category {number}")) == ()
    assert len(said) == 1
    assert "cannot be used" in said[0]
