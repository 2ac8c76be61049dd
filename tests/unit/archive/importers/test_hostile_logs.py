"""No log and no database makes its importer fail in a way that it does not explain."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parsl_sizer.archive.importers import cctools_log, parsl_monitoring, resource_monitor
from parsl_sizer.archive.importers.base import HEAD, MOST, ImportFailed, Notes

SAMPLES = Path(__file__).resolve().parents[3] / "data" / "importers"
DATABASE = (SAMPLES / "parsl_monitoring.db").read_bytes()
OLD = b"""command: ./a -n 3
exit_type:    limits
exit_status:  143
limits_exceeded: resident_memory: 100, cores: 2
start:        1439221567.1 s
wall_time:    10.0 s
resident_memory: 120 MB
--
command: ./b
wall_time:    1.0 s
exit_status:  0
--
"""
TEXTS = [
    (cctools_log, (SAMPLES / "workqueue.log").read_bytes()),
    (cctools_log, (SAMPLES / "taskvine.log").read_bytes()),
    (resource_monitor, (SAMPLES / "resource_monitor.summaries").read_bytes()),
    (resource_monitor, (SAMPLES / "resource_monitor.summary").read_bytes()),
    (resource_monitor, OLD),
]
IDS = ["workqueue", "taskvine", "summaries", "summary", "old"]
each = pytest.mark.parametrize(("importer", "valid"), TEXTS, ids=IDS)
quick = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
NUMBERS = [b"9" * 400, b"-1", b"nan", b"1e999", b"-inf", b"1_0", b"Infinity", "٣".encode()]
STRANGE = [b"\0", b"\xff\xfe", b'"', b"{", b"}", b"[", b":", b"\r", b"\n", b"\\", b"\xed\xa0\x80"]


@st.composite
def mutations(draw, valid: bytes) -> bytes:
    """A valid file, with some damage done to it."""
    content = bytearray(valid)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        kind = draw(st.sampled_from(["cut", "flip", "repeat", "number", "insert"]))
        if kind == "cut":
            del content[at:]
        elif kind == "flip" and content:
            content[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "repeat":
            lines = content.splitlines(keepends=True)
            content = bytearray(b"".join(lines + lines[draw(st.integers(0, 20)) :]))
        elif kind == "number":
            digits = [index for index, byte in enumerate(content) if 48 <= byte <= 57]
            if digits:
                index = draw(st.sampled_from(digits))
                content[index : index + 1] = draw(st.sampled_from(NUMBERS))
        else:
            content[at:at] = draw(st.sampled_from(STRANGE)) * draw(st.integers(1, 3))
    return bytes(content)


def check(importer: ModuleType, path: Path, content: bytes) -> int:
    """Import the content, and tell how many entries there were."""
    path.write_bytes(content)
    assert importer.recognises(path, content[:HEAD]) in (True, False)
    notes, count, failure = Notes(), 0, str(path)
    try:
        for run, outcome in importer.read(path, notes):
            count += 1
            attempt, task, usage = outcome.attempt, outcome.attempt.task, outcome.usage
            times = [run.started_at, task.submitted_at, attempt.launched_at, outcome.ended_at]
            numbers = [*usage.peak.values(), usage.wall_s, usage.cpu_s or 0.0, *times]
            numbers += [*task.requested.values(), *attempt.allocation.values()]
            numbers += [number for pair in usage.series for number in pair]
            assert all(math.isfinite(number) and 0 <= number <= MOST for number in numbers)
            texts = [run.user, run.workflow, run.host, dict(run.labels), run.run_id]
            texts += [task.task_id, task.category, outcome.host, task.command, *task.inputs]
            written = json.dumps([*texts, dict(task.labels)], ensure_ascii=False).encode()
            assert b"\\u0000" not in written
            assert task.category
            assert 1 <= attempt.number < 2**31
            assert outcome.exhausted <= set(attempt.allocation) or importer is not resource_monitor
    except ImportFailed as error:
        failure = str(error)
    assert str(path) in failure
    assert notes.taken == count
    return count


@each
def test_the_valid_file_is_taken(importer: ModuleType, valid: bytes, tmp_path: Path) -> None:
    assert check(importer, tmp_path / "file", valid) > 0


@each
def test_only_its_own_importer_recognises_a_file(importer, valid, tmp_path) -> None:
    modules = (cctools_log, resource_monitor, parsl_monitoring)
    path = tmp_path / "file"
    path.write_bytes(valid)
    assert [module for module in modules if module.recognises(path, valid[:HEAD])] == [importer]


@each
@quick
@given(data=st.data())
def test_damage_is_survived(importer, valid, tmp_path, data) -> None:
    check(importer, tmp_path / "file", data.draw(mutations(valid)))


@pytest.mark.parametrize("importer", [cctools_log, resource_monitor, parsl_monitoring])
@quick
@given(content=st.binary(max_size=400))
def test_anything_at_all_is_survived(importer, tmp_path, content) -> None:
    check(importer, tmp_path / "file", content)
    for head in (b"{", b"command: ", b"1794851003562757 9 TASK ", b"SQLite format 3\0"):
        check(importer, tmp_path / "file", head + content)


@pytest.mark.parametrize("importer", [cctools_log, resource_monitor])
@pytest.mark.parametrize(
    "content",
    [
        b"{" * 300_000,
        b'{"a":' * 100_000,
        b'{"memory":' + b"[" * 300_000,
        b'{"' + b'\\"' * 400_000,
        b'{"a": "' + b'"\\' * 400_000,
        b"command: " + b":" * 900_000,
        b"limits_exceeded: " + b"a:1," * 200_000,
        b"1794851003562757 9 TASK 1 WAITING" + b" FIRST_RESOURCES " * 50_000,
        b"1794851003562757 9 TASK 1 WAITING a FIRST_RESOURCES " + b" " * 900_000,
        b"1794851003562757 9 TASK 1 WAITING a FIRST_RESOURCES {" + b"[" * 900_000,
        b"x" * (3 << 20),
        b"{}\n" * 100_000,
    ],
    ids=lambda content: f"{content[:20]!r}",
)
def test_what_is_made_to_be_slow_is_not(importer, tmp_path: Path, content: bytes) -> None:
    check(importer, tmp_path / "file", content)
    check(importer, tmp_path / "file", b"1794851003562757 9 MANAGER START\n" + content)


@settings(quick, max_examples=150)
@given(
    flips=st.lists(
        st.tuples(st.integers(0, len(DATABASE) - 1), st.integers(0, 255)), min_size=1, max_size=40
    ),
    length=st.one_of(st.just(len(DATABASE)), st.integers(0, len(DATABASE))),
)
def test_a_damaged_database_is_survived(tmp_path, flips, length) -> None:
    content = bytearray(DATABASE)
    for at, byte in flips:
        content[at] = byte
    check(parsl_monitoring, tmp_path / "file", bytes(content[:length]))


@quick
@given(flips=st.lists(st.tuples(st.integers(0, 4095), st.integers(0, 255)), max_size=6))
def test_a_damaged_schema_is_survived(tmp_path, flips) -> None:
    content = bytearray(DATABASE)
    for at, byte in flips:
        content[at] = byte
    check(parsl_monitoring, tmp_path / "file", bytes(content))


TABLES = ("workflow", "task", "try", "status", "resource")
VALUES = [
    "NULL",
    "-1",
    "9e999",
    "9223372036854775807",
    "'text'",
    "x'00ff'",
    "CAST(x'ff00fe' AS TEXT)",
    "'2026-11-16 17:53:44.5+99:99'",
    "'9999-12-31 23:59:59'",
    "zeroblob(100)",
    "char(0, 55296)",
]


@settings(quick, max_examples=100)
@given(data=st.data())
def test_a_database_with_anything_in_it_is_survived(tmp_path, data) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATABASE)
    with closing(sqlite3.connect(path)) as database:
        for _ in range(data.draw(st.integers(1, 4))):
            table = data.draw(st.sampled_from(TABLES))
            kind = data.draw(st.sampled_from(["drop", "loose", "value", "value"]))
            columns = database.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
            if not columns:
                continue
            if kind == "drop":
                database.execute(f'DROP TABLE "{table}"')
                continue
            if kind == "loose":  # no key, no type, and every row many times
                database.execute(f'CREATE TABLE other AS SELECT * FROM "{table}"')
                database.execute("INSERT INTO other SELECT * FROM other")
                database.execute(f'DROP TABLE "{table}"')
                database.execute(f'ALTER TABLE other RENAME TO "{table}"')
            (column,) = data.draw(st.sampled_from(columns))
            value = data.draw(st.sampled_from(VALUES))
            database.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = {value}')
        database.commit()
    check(parsl_monitoring, path, path.read_bytes())


@pytest.mark.parametrize("table", TABLES)
def test_a_view_that_says_it_is_a_table_is_not_asked(tmp_path: Path, table: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATABASE)
    names = ", ".join(f"i AS {name}" for name in ("run_id", "task_id", "try_id", "timestamp"))
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute(
            "UPDATE sqlite_master SET sql = ?, rootpage = 0 WHERE name = ?",
            (f'CREATE VIEW "{table}" AS {endless} SELECT {names} FROM n', table),
        )
        database.commit()
    check(parsl_monitoring, path, path.read_bytes())
