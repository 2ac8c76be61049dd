"""Parsl's monitoring database: a real one, and what other versions of it may lack."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.archive.importers import parsl_monitoring, sqlite_file
from parsl_sizer.archive.importers.base import HEAD, ImportFailed, Notes
from parsl_sizer.archive.importers.cells import USELESS
from parsl_sizer.archive.importers.parsl_monitoring import (
    BAD_ROW,
    JOINED,
    MEMOISED,
    NEVER_RAN,
    NOT_OVER,
    inputs_of,
)
from parsl_sizer.model import Ending, Kind

Changed = Callable[..., Path]


@pytest.fixture
def sample(samples: Path) -> Path:
    return samples / "parsl_monitoring.db"


@pytest.fixture
def changed(sample: Path, tmp_path: Path) -> Changed:
    """A copy of the database in which something was done."""

    def change(*statements: str) -> Path:
        path = tmp_path / "monitoring.db"
        shutil.copy(sample, path)
        with closing(sqlite3.connect(path)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()
        return path

    return change


def outcomes(entries):
    return {
        (outcome.attempt.task.task_id, outcome.attempt.number): outcome for _, outcome in entries
    }


def test_every_try_is_an_attempt(sample: Path, imported) -> None:
    entries, notes = imported(parsl_monitoring, sample)
    endings = {
        (outcome.attempt.task.category, outcome.attempt.number, outcome.ending)
        for _, outcome in entries
    }
    assert endings == {
        ("calm", 1, Ending.DONE),
        ("grown", 1, Ending.DONE),
        ("busy", 1, Ending.DONE),
        ("listed", 1, Ending.DONE),
        ("remembered", 1, Ending.DONE),
        ("fails", 1, Ending.RAISED),
        ("fails", 2, Ending.DONE),
        ("wrong", 1, Ending.RAISED),
        ("wrong", 2, Ending.RAISED),
        ("dies", 1, Ending.LOST),
        ("dies", 2, Ending.LOST),
    }
    assert len(entries) == 14
    assert notes.skipped == {JOINED: 1, MEMOISED: 1, NEVER_RAN: 1}
    ended = [outcome.ended_at for _, outcome in entries]
    assert ended == sorted(ended)


def test_a_run_is_what_parsl_calls_one(sample: Path, imported) -> None:
    entries, _ = imported(parsl_monitoring, sample)
    (run,) = {entry.run.run_id: entry.run for entry in entries}.values()
    assert run.run_id == "parsl-98f6b377-3bca-47ce-8c89-fa52e98a8f1f"
    assert (run.user, run.workflow, run.host) == ("someone", "sample", "node-1")
    assert run.labels == {"workflow_version": "3"}
    assert run.started_at > 1.79e9


def test_what_was_measured_is_told(sample: Path, imported) -> None:
    found = outcomes(imported(parsl_monitoring, sample)[0])
    calm, grown, busy = found[0, 1], found[1, 1], found[2, 1]
    assert grown.usage.peak == {Kind.MEMORY: 355471360.0}
    assert grown.layers == (SAMPLED,)
    assert grown.usage.wall_s == pytest.approx(1.824778)
    assert grown.host == "node-1"
    assert grown.attempt.task.labels == {"executor": "htex"}
    assert not grown.attempt.allocation
    assert calm.attempt.task.inputs == ("in.txt",)
    assert calm.attempt.launched_at - calm.attempt.task.submitted_at == pytest.approx(6.644429)
    assert busy.usage.cpu_s == pytest.approx(7.03)
    assert busy.usage.peak[Kind.CORES] == pytest.approx(0.964, abs=0.001)


def test_processor_time_of_earlier_tasks_is_not_counted(sample: Path, imported) -> None:
    """The worker of this short task had computed for 7 s before."""
    late = outcomes(imported(parsl_monitoring, sample)[0])[11, 1]
    assert late.usage.cpu_s == pytest.approx(0.04)


def test_a_single_sample_tells_no_processor_time(sample: Path, imported) -> None:
    short = outcomes(imported(parsl_monitoring, sample)[0])[3, 1]
    assert short.usage.cpu_s is None
    assert short.usage.peak


def test_without_samples_times_are_kept(changed: Changed, imported) -> None:
    entries, _ = imported(parsl_monitoring, changed("DROP TABLE resource"))
    assert len(entries) == 14
    assert not any(entry.outcome.usage.peak for entry in entries)
    assert all(entry.outcome.usage.wall_s > 0 for entry in entries)


def test_without_states_the_history_of_failures_tells(changed: Changed, imported) -> None:
    entries, _ = imported(parsl_monitoring, changed("DROP TABLE status", "DROP TABLE workflow"))
    found = outcomes(entries)
    assert found[0, 1].ending is Ending.DONE
    assert found[3, 1].ending is Ending.RAISED
    assert found[7, 1].ending is Ending.LOST
    assert entries[0].run.run_id.startswith("parsl-98f6")
    assert entries[0].run.user is None


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("workflow", "workflow_version"),
        ("task", "task_inputs"),
        ("try", "hostname"),
        ("try", "task_fail_history"),
        ("resource", "psutil_process_pid"),
        ("resource", "psutil_process_time_user"),
        ("resource", "psutil_process_memory_resident"),
    ],
)
def test_a_column_that_a_version_lacks_is_unknown(changed, imported, table, column) -> None:
    path = changed(f'ALTER TABLE "{table}" DROP COLUMN {column}')
    entries, _ = imported(parsl_monitoring, path)
    assert len(entries) == 14


@pytest.mark.parametrize(
    ("failure", "node_lost"),
    [
        ("ManagerLost(''a1'', ''node-1'')", True),
        ("Task failure due to loss of manager a1 on host node-1", True),
        ("Task failure due to loss of worker 1 on host node-1", False),  # Parsl 2023.6.19
    ],
)
def test_a_lost_manager_is_a_lost_node(changed, imported, failure, node_lost) -> None:
    path = changed(f"UPDATE \"try\" SET task_fail_history = '{failure}' WHERE task_id = 7")
    outcome = outcomes(imported(parsl_monitoring, path)[0])[7, 1]
    assert (outcome.ending, outcome.node_lost) == (Ending.LOST, node_lost)


def test_what_work_queue_stopped_had_too_little(changed: Changed, imported) -> None:
    history = "task_fail_history = 'WorkQueueTaskFailure(more resources than requested)'"
    entries, _ = imported(
        parsl_monitoring, changed(f'UPDATE "try" SET {history} WHERE task_id = 4')
    )
    assert outcomes(entries)[4, 1].ending is Ending.EXHAUSTED


def test_a_try_that_is_not_over_comes_with_a_later_import(changed: Changed, imported) -> None:
    path = changed(
        "DELETE FROM status WHERE task_id = 2 AND task_status_name IN "
        "('exec_done', 'running_ended')",
        'UPDATE "try" SET task_try_time_returned = NULL WHERE task_id = 2',
    )
    entries, notes = imported(parsl_monitoring, path)
    assert len(entries) == 13
    assert notes.skipped[NOT_OVER] == 1


def test_numbers_that_cannot_be_are_unknown(changed: Changed, imported) -> None:
    path = changed(
        "UPDATE resource SET psutil_process_memory_resident = -1 WHERE task_id = 0",
        "UPDATE resource SET psutil_process_memory_resident = 9e999 WHERE task_id = 1",
        "UPDATE resource SET psutil_process_memory_resident = 'much' WHERE task_id = 2",
        "UPDATE task SET task_func_name = '' WHERE task_id = 5",
        "UPDATE \"try\" SET task_try_time_running = '2999-01-01' WHERE task_id = 8",
        "DELETE FROM resource WHERE task_id = 8",
    )
    entries, notes = imported(parsl_monitoring, path)
    found = outcomes(entries)
    assert not any(Kind.MEMORY in found[task, 1].usage.peak for task in (0, 1, 2))
    assert notes.skipped[BAD_ROW] == 1
    assert notes.skipped[USELESS] == 1


def test_it_is_left_as_it_was(sample: Path, tmp_path: Path, imported) -> None:
    path = tmp_path / "monitoring.db"
    shutil.copy(sample, path)
    before = path.read_bytes()
    imported(parsl_monitoring, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_still_in_a_write_ahead_log_is_read(changed: Changed, imported) -> None:
    path = changed()
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("UPDATE task SET task_func_name = 'renamed' WHERE task_id = 1")
        writer.commit()
        entries, _ = imported(parsl_monitoring, path)
    assert outcomes(entries)[1, 1].attempt.task.category == "renamed"


@pytest.mark.parametrize("table", ["task", "try"])
def test_a_database_without_its_tables_is_refused(changed: Changed, table: str) -> None:
    path = changed(f'DROP TABLE "{table}"')
    assert not parsl_monitoring.recognises(path, path.read_bytes()[:HEAD])
    with pytest.raises(ImportFailed, match=f"monitoring.db: found no column .* table {table}"):
        list(parsl_monitoring.read(path, Notes()))


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"


def test_a_view_is_never_asked(changed: Changed, imported) -> None:
    names = "i AS run_id, i AS task_id, i AS try_id, i AS timestamp"
    path = changed("DROP TABLE resource", f"CREATE VIEW resource AS {ENDLESS.format(names)}")
    entries, _ = imported(parsl_monitoring, path)
    assert len(entries) == 14
    path = changed('DROP TABLE "try"', f'CREATE VIEW "try" AS {ENDLESS.format(names)}')
    assert not parsl_monitoring.recognises(path, path.read_bytes()[:HEAD])


def test_no_query_goes_on_for_ever(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "LEAST_STEPS", 1_000_000)
    with (
        sqlite_file.opened(sample) as database,
        pytest.raises(sqlite3.OperationalError, match="interrupted"),
    ):
        database.execute(ENDLESS.format("max(i)")).fetchall()


def test_nothing_can_be_written(sample: Path) -> None:
    with (
        sqlite_file.opened(sample) as database,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        database.execute("DELETE FROM task")


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        assert not parsl_monitoring.recognises(path, sqlite_file.MAGIC)
        with pytest.raises(ImportFailed, match="cannot be read"):
            list(parsl_monitoring.read(path, Notes()))


def test_only_files_are_inputs() -> None:
    assert inputs_of("[<DataFuture at 0x1 state=pending>, 3]") == ()
    assert inputs_of(None) == ()
    many = "<File at 0x1 url=globus://a/b c.txt scheme=globus netloc=a>, " * 2
    assert inputs_of(many) == ("globus://a/b c.txt",) * 2
