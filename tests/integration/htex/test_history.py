"""What a run leaves behind, and what the next one makes of it."""

from __future__ import annotations

import getpass
import logging
import socket
import sqlite3
from pathlib import Path

import parsl
import pytest
import sizer_tasks as tasks
from parsl.data_provider.files import File
from sizer_runs import running, sized

from parsl_sizer import Kind, sizing_of
from parsl_sizer.archive.base import Entry, Query
from parsl_sizer.archive.open import open_archive
from parsl_sizer.model import Ending

LIMIT_S = 100
MB = 1e6


def entries(path: Path, query: Query | None = None) -> list[Entry]:
    archive = open_archive(path, read_only=True)
    found = list(archive.entries(query or Query()))
    archive.close()
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive.sqlite3"


def test_every_attempt_is_recorded_with_all_that_is_known(path: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"x" * 1000)
    node = "cores=2,memory=2GB"
    made = sized(archive=path, labels={"campaign": "May"}, node=node, grow=False)
    with running(made, tmp_path):
        spec = {"labels": {"sample": 7}, "category": "held"}
        assert tasks.hold(700, 0.5, parsl_resource_specification=spec).result(LIMIT_S) == 700
        tasks.size_of_inputs(inputs=[File(str(data))]).result(LIMIT_S)
        with pytest.raises(ValueError, match="as it should"):
            tasks.fail().result(LIMIT_S)
    by_category = {entry.outcome.attempt.task.category: entry for entry in entries(path)[::-1]}
    assert set(by_category) == {"held", "size_of_inputs", "fail"}
    run, outcome = by_category["held"]
    task = outcome.attempt.task
    assert (run.user, run.host, run.source) == (getpass.getuser(), socket.gethostname(), "live")
    assert run.versions["parsl"] == parsl.__version__
    assert run.labels == {"campaign": "May", "node_memory": 2_000_000_000}
    assert task.labels == {"sample": 7}
    assert task.command == "sizer_tasks.hold"
    assert task.code_hash
    assert outcome.ending is Ending.DONE
    assert outcome.usage.peak[Kind.MEMORY] == pytest.approx(700 * MB, rel=0.1)
    assert outcome.usage.series
    assert outcome.attempt.allocation[Kind.MEMORY] >= 700 * MB
    done, *stopped = entries(path, Query(category="held"))
    assert done.outcome.ending is Ending.DONE
    assert stopped
    assert all(entry.outcome.exhausted == {Kind.MEMORY} for entry in stopped)
    numbers = [entry.outcome.attempt.number for entry in (done, *stopped)]
    assert numbers == list(range(len(numbers), 0, -1))
    assert str(data) in by_category["size_of_inputs"].outcome.attempt.task.inputs[0]
    assert by_category["fail"].outcome.ending is Ending.RAISED
    assert len(entries(path, Query(labels={"campaign": "May", "sample": "7"}))) == len(numbers)


def test_the_next_run_begins_where_this_one_ended(path: Path, tmp_path: Path) -> None:
    for number in range(2):
        made = sized(archive=path, node="cores=2,memory=2GB", grow=False)
        with running(made, tmp_path / str(number)):
            futures = [tasks.hold(700, 0.2) for _ in range(6)]
            assert [future.result(LIMIT_S) for future in futures] == [700] * 6
            attempts = [attempt for future in futures for attempt in sizing_of(future).attempts]
            if number == 0:
                assert any(attempt.ending is Ending.EXHAUSTED for attempt in attempts)
                continue
            assert {attempt.ending for attempt in attempts} == {Ending.DONE}
            first = attempts[0]
            assert first.allocation[Kind.MEMORY] < 1500 * MB
            assert "from 6 tasks" in first.why
    assert len({entry.run.run_id for entry in entries(path)}) == 2


def test_an_archive_that_cannot_be_used_costs_no_task(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parsl_sizer.archive.sqlite.BUSY_S", 0.1)
    open_archive(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with caplog.at_level(logging.WARNING), running(sized(archive=path), tmp_path):
        assert tasks.add(1, 2).result(LIMIT_S) == 3
    assert "locked" in caplog.text
    assert "parsl-sizer import" in caplog.text
    holder.execute("ROLLBACK")
    holder.close()


def test_nothing_is_kept_if_that_is_not_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARSL_SIZER_ARCHIVE", str(tmp_path / "default.sqlite3"))
    with running(sized(archive=False), tmp_path):
        assert tasks.add(1, 2).result(LIMIT_S) == 3
    assert not (tmp_path / "default.sqlite3").exists()
    with running(sized(), tmp_path):
        assert tasks.add(1, 2).result(LIMIT_S) == 3
    assert len(entries(tmp_path / "default.sqlite3")) == 1
