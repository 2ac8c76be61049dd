"""No file makes an importer fail in a way that it does not explain.

To have one more importer tried, add it to `IMPORTERS` with a small file that it takes.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parsl_sizer.archive.importers import nextflow, sacct, snakemake, trace_csv, wfcommons
from parsl_sizer.archive.importers.base import HEAD, MOST, ImportFailed, Notes

SAMPLES = Path(__file__).resolve().parents[3] / "data" / "importers"

NEXTFLOW = b"""\
task_id\tprocess\tname\tstatus\texit\tsubmit\tduration\trealtime\t%cpu\tpeak_rss\trchar\tmemory\tattempt
1\tW:P\tW:P (a)\tFAILED\t137\t2024-02-09 14:44:43.053\t9s\t4s\t72.6%\t2.4 MB\t40 MB\t1 GB\t1
2\tW:P\tW:P (a)\tCOMPLETED\t0\t1718920118229\t17771\t10000\t282.5\t311390208\t451684785\t2 GB\t2
"""
WFCOMMONS = b"""{"name": "w", "schemaVersion": "1.5", "workflow": {
"specification": {"tasks": [{"name": "a_ID1", "id": "a_ID1", "inputFiles": ["f"]}],
"files": [{"id": "f", "sizeInBytes": 9}]},
"execution": {"executedAt": "20200413T041642+0000", "tasks": [
{"id": "a_ID1", "runtimeInSeconds": 2.5, "memoryInBytes": 5000, "avgCPU": 50.5,
"command": {"program": "a", "arguments": ["x"]}, "machines": ["n1"]}]}}}
"""
TRACE = b"""\
category,input_size,cores,memory_mb,disk_mb,time_s,user_memory_mb
align,1000,1,1500.5,20,60,2000
"sort, unique",,,,,1.5,
"""


class Tried(NamedTuple):
    importer: ModuleType
    valid: bytes


IMPORTERS = [
    Tried(nextflow, NEXTFLOW),
    Tried(snakemake, (SAMPLES / "snakemake_extended.tsv").read_bytes()),
    Tried(sacct, (SAMPLES / "sacct.txt").read_bytes()),
    Tried(wfcommons, WFCOMMONS),
    Tried(trace_csv, TRACE),
]
STRANGERS = [
    b"SQLite format 3\0\x10\0\x02\x02",
    b"# time manager_pid MANAGER START|END time_from_origin\n1 2 MANAGER 2 START 0\n",
    b'{"executable_type":"dynamic","monitor_version":"8.0","category":"a","memory":[1,"MB"]}',
    b"",
    b"\xef\xbb\xbf",
    b"category\n",
    b"name,status,exit\n",
]
each = pytest.mark.parametrize("tried", IMPORTERS, ids=lambda tried: tried.importer.NAME)
quick = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


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
            content = bytearray(b"".join(lines + lines[draw(st.integers(0, 2)) :]))
        elif kind == "number":
            digits = [index for index, byte in enumerate(content) if chr(byte).isdigit()]
            if digits:
                index = draw(st.sampled_from(digits))
                numbers = [b"9" * 400, b"-1", b"nan", b"1e999", b"-inf", b"1_0", "٣".encode()]
                content[index : index + 1] = draw(st.sampled_from(numbers))
        else:
            strange = [b"\0", b"\xff\xfe", b'"', b"\t", b"|", b",", b"\r", b"\n", b"\x85", b"\\"]
            content[at:at] = draw(st.sampled_from(strange)) * draw(st.integers(1, 3))
    return bytes(content)


def check(importer: ModuleType, path: Path, content: bytes) -> int:
    """Import the content, and tell how many entries there were."""
    path.write_bytes(content)
    assert importer.recognises(path, content[:HEAD]) in (True, False)
    notes, count, failure = Notes(), 0, str(path)
    try:
        for _, outcome in importer.read(path, notes):
            count += 1
            task, usage = outcome.attempt.task, outcome.usage
            times = [task.submitted_at, outcome.attempt.launched_at, outcome.ended_at]
            numbers = [*usage.peak.values(), usage.wall_s, usage.cpu_s or 0.0, *times]
            numbers += [*task.features.values(), *task.requested.values()]
            assert all(math.isfinite(number) and number >= 0 for number in numbers)
            assert all(number <= MOST for number in numbers)
            texts = [task.task_id, task.category, outcome.host, task.command, *task.inputs]
            written = json.dumps([*texts, dict(task.labels)], ensure_ascii=False).encode()
            assert b"\\u0000" not in written
            assert task.category
            assert 1 <= outcome.attempt.number < 2**31
    except ImportFailed as error:
        failure = str(error)
    assert str(path) in failure
    assert notes.taken == count
    return count


@each
def test_the_valid_file_is_taken(tried, tmp_path):
    assert check(tried.importer, tmp_path / "file", tried.valid) > 0


@each
def test_only_its_own_importer_recognises_a_file(tried, tmp_path):
    path = tmp_path / "file"
    others = [other.importer for other in IMPORTERS if other is not tried]
    assert tried.importer.recognises(path, tried.valid[:HEAD])
    assert not any(other.recognises(path, tried.valid[:HEAD]) for other in others)
    assert not any(tried.importer.recognises(path, head) for head in STRANGERS)


@each
@quick
@given(data=st.data())
def test_damage_is_survived(tried, tmp_path, data):
    check(tried.importer, tmp_path / "file", data.draw(mutations(tried.valid)))


@each
@quick
@given(content=st.binary(max_size=400))
def test_anything_at_all_is_survived(tried, tmp_path, content):
    check(tried.importer, tmp_path / "file", content)
    header = tried.valid.split(b"\n", 1)[0] + b"\n"
    check(tried.importer, tmp_path / "file", header + content)


@each
def test_what_is_no_file_is_refused(tried, tmp_path):
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(ImportFailed, match="cannot be read"):
            list(tried.importer.read(path, Notes()))
