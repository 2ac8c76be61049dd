"""One outcome that an archive refuses costs none of the others."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.archive import ArchiveError, Entry, Run
from parsl_sizer.archive.base import Query, Refused
from parsl_sizer.archive.divided import MANY, put
from parsl_sizer.archive.open import Where, open_archive
from parsl_sizer.archive.recorder import Recorder
from parsl_sizer.archive.spool import Spool
from parsl_sizer.archive.sqlite import SqliteArchive
from parsl_sizer.model import Attempt, Ending, Outcome, TaskInfo

RUN = Run("run-1")
COUNT = 1000


def outcome(number: int, **more: Any) -> Outcome:
    attempt = Attempt(TaskInfo(number, "align"), 1, {})
    return Outcome(attempt, Ending.DONE, float(number))._replace(**more)


def refused(number: int) -> Outcome:
    """An outcome with a number that no database has room for."""
    return outcome(number, attempt=Attempt(TaskInfo(number, "align"), 1 << 70, {}))


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Where:
    """A new archive; what finds no place beside it goes into a folder of the test's own."""
    place: Where = tmp_path / "archive.sqlite3"
    if request.param == "postgres":
        place = request.getfixturevalue("new_database")()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return place


def tasks_in(where: Where, run_id: str = "run-1") -> set[int | str]:
    archive = open_archive(where)
    found = {entry.outcome.attempt.task.task_id for entry in archive.entries(Query(run_id=run_id))}
    archive.close()
    return found


def test_what_is_refused_is_set_aside_alone(where: Where) -> None:
    said: list[str] = []
    made = Recorder(where, RUN, warn=said.append)
    odd = {0, 377, 378, COUNT - 1}
    for number in range(COUNT):
        made.record(refused(number) if number in odd else outcome(number))
    made.start()
    made.close()
    assert tasks_in(where) == set(range(COUNT)) - odd
    [text] = said
    assert "cannot keep an outcome: " in text or "cannot be recorded: " in text
    aside = Path(text.partition("is kept in ")[2].partition(", and all else")[0])
    assert {json.loads(line)["task"] for line in aside.read_text().splitlines()} == odd


def test_what_comes_after_it_is_recorded_at_once(where: Where) -> None:
    said: list[str] = []
    made = Recorder(where, RUN, warn=said.append, every_s=0.01)
    made.start()
    made.record(refused(0))
    until = time.monotonic() + 30
    while not said and time.monotonic() < until:
        time.sleep(0.01)
    made.record(outcome(1))
    while not tasks_in(where) and time.monotonic() < until:
        time.sleep(0.01)
    assert tasks_in(where) == {1}
    made.close()


def test_a_run_that_is_removed_while_it_records_goes_on(where: Where) -> None:
    archive, other = open_archive(where), open_archive(where)
    archive.record([Entry(RUN, outcome(number)) for number in range(5)])
    other.prune([RUN.run_id])
    assert archive.record([Entry(RUN, outcome(number)) for number in range(3, 10)]) == 7
    archive.close()
    other.close()
    assert tasks_in(where) == set(range(3, 10))


@pytest.mark.parametrize(
    "more",
    [
        {"usage": None},
        {"ended_at": float("nan")},
        {"ended_at": 3j},
        {"ended_at": object()},
        {"isolation": "\udce9"},
    ],
    ids=["no usage", "nan", "complex", "object", "surrogate"],
)
def test_sqlite_says_that_it_is_the_data(tmp_path: Path, more: dict[str, Any]) -> None:
    archive = SqliteArchive(tmp_path / "archive.sqlite3")
    batch = [Entry(RUN, outcome(1)), Entry(RUN, outcome(2, **more))]
    new, [refusal] = put(archive.record, batch)
    archive.close()
    assert new == 1
    assert refusal.entries == batch[1:]


def test_what_a_file_beside_has_of_it_is_not_tried_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite3"
    spool = Spool.beside(path)
    odd = Entry(Run("run-\udce9"), outcome(7))
    spool.append("killed", [*[Entry(RUN, outcome(number)) for number in range(5)], odd])
    archive = open_archive(path)
    assert spool.merge(archive) == 5
    archive.close()
    [left] = [file for file in spool.folder.iterdir() if file.name != "merging"]
    assert left.suffix == ".bad"
    assert json.loads(left.read_text())["task"] == 7


def writer(odd: set[int], calls: list[int]) -> Callable[[Sequence[Entry]], int]:
    """Takes batches in which none of these tasks is."""

    def write(batch: Sequence[Entry]) -> int:
        calls.append(len(batch))
        if any(entry.outcome.attempt.task.task_id in odd for entry in batch):
            raise Refused("odd")
        return len(batch)

    return write


def test_a_batch_is_halved_until_what_is_refused_stands_alone() -> None:
    batch = [Entry(RUN, outcome(number)) for number in range(1024)]
    calls: list[int] = []
    new, refusals = put(writer({500}, calls), batch)
    assert (new, [refusal.entries for refusal in refusals]) == (1023, [batch[500:501]])
    assert len(calls) == 21


def test_where_all_is_refused_not_each_is_tried_alone() -> None:
    batch = [Entry(RUN, outcome(number)) for number in range(100_000)]
    calls: list[int] = []
    new, refusals = put(writer(set(range(100_000)), calls), batch)
    assert new == 0
    assert [entry for refusal in refusals for entry in refusal.entries] == batch
    assert len(calls) < 3 * MANY


def test_an_archive_that_is_away_is_not_asked_for_the_halves() -> None:
    calls: list[int] = []

    def write(batch: Sequence[Entry]) -> int:
        calls.append(len(batch))
        raise ArchiveError("away")

    with pytest.raises(ArchiveError, match="away"):
        put(write, [Entry(RUN, outcome(number)) for number in range(8)])
    assert calls == [8]


@pytest.fixture
def beside(tmp_path: Path) -> Spool:
    """What a run that was killed has left: one outcome that is refused, and half a line."""
    spool = Spool.beside(tmp_path / "archive.sqlite3")
    file = spool.append("killed", [Entry(RUN, outcome(1)), Entry(Run("run-\udce9"), outcome(7))])
    with file.open("a") as handle:
        handle.write('{"run": {"run_id": "kil')
    return spool


def bad_in(spool: Spool) -> list[Path]:
    return sorted(spool.folder.glob("*.bad"))


def test_half_a_line_costs_no_other_that_is_set_aside_with_it(
    beside: Spool, tmp_path: Path
) -> None:
    archive = open_archive(tmp_path / "archive.sqlite3")
    assert beside.merge(archive) == 1
    archive.close()
    [file] = bad_in(beside)
    half, whole = file.read_text().splitlines()
    assert half == '{"run": {"run_id": "kil'
    assert json.loads(whole)["task"] == 7


def test_half_a_line_on_a_disk_that_was_full_costs_not_the_next(
    beside: Spool, tmp_path: Path
) -> None:
    beside.append("killed", [Entry(RUN, outcome(2))])
    archive = open_archive(tmp_path / "archive.sqlite3")
    assert beside.merge(archive) == 2
    archive.close()
    assert tasks_in(tmp_path / "archive.sqlite3") == {1, 2}


def test_what_was_set_aside_before_is_not_written_over(beside: Spool, tmp_path: Path) -> None:
    """Such as by a process that was killed before it removed what it had merged."""
    waiting = beside.folder / "killed.jsonl"
    waiting.rename(beside.folder / "killed-0142a277.merging")
    before = beside.folder / "killed-0142a277.bad"
    before.write_text("mended meanwhile\n")
    archive = open_archive(tmp_path / "archive.sqlite3")
    assert beside.merge(archive) == 1
    archive.close()
    assert before.read_text() == "mended meanwhile\n"
    [other] = [file for file in bad_in(beside) if file != before]
    assert len(other.read_text().splitlines()) == 2
