from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.archive.importers import wfcommons
from parsl_sizer.archive.importers.base import ImportFailed, Notes
from parsl_sizer.model import Kind

OLD = {
    "name": "montage",
    "schemaVersion": "1.3",
    "wms": {"name": "Pegasus", "version": "5.0"},
    "workflow": {
        "executedAt": "20200413T041642+0000",
        "tasks": [
            {
                "name": "mProject_ID0000001",
                "id": "ID0000001",
                "runtime": 16.5,
                "cores": 2,
                "memory": 14800,
                "avgCPU": 50.0,
                "machine": "node1",
                "command": {"program": "mProject", "arguments": ["-X", "a.fits"]},
                "files": [
                    {"link": "input", "name": "a.fits", "size": 100},
                    {"link": "input", "name": "b.hdr", "size": 20},
                    {"link": "output", "name": "c.fits", "size": 7},
                ],
            }
        ],
    },
}
NEW = {
    "name": "montage",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                {"name": "mAdd_ID1", "id": "mAdd_ID1", "inputFiles": ["a"]},
                {"name": "mAdd_ID2", "id": "mAdd_ID2", "inputFiles": ["a", "lost"]},
                {"name": "mAdd_ID3", "id": "mAdd_ID3"},
            ],
            "files": [{"id": "a", "sizeInBytes": 9}],
        },
        "execution": {
            "executedAt": "2020-12-27T18:23:37+00:00",
            "tasks": [
                {"id": "mAdd_ID1", "runtimeInSeconds": 2, "memoryInBytes": 5000},
                {"id": "mAdd_ID2", "runtimeInSeconds": 2, "memoryInBytes": 0},
            ],
        },
    },
}


def test_every_task_of_the_real_instances_is_taken(imported, data):
    found = sorted((data / "workflows").glob("*.json"))
    assert found
    for path in found:
        entries, notes = imported(wfcommons, path)
        ran = json.loads(path.read_text())["workflow"]["execution"]["tasks"]
        assert len(entries) == len(ran)
        assert not notes.skipped
        assert entries[0].run.started_at > 1.5e9
        categories = {entry.outcome.attempt.task.category for entry in entries}
        assert len(categories) < len(entries)
        assert not any("_ID0" in category for category in categories)


def test_a_real_task(imported, data):
    entries, _ = imported(wfcommons, data / "workflows" / "montage-chameleon-2mass-005d-001.json")
    outcome = entries[0].outcome
    assert outcome.attempt.task.category == "mProject"
    assert outcome.attempt.task.features == {"input_size": 1529220.0 + 277.0}
    assert outcome.usage.peak == {Kind.MEMORY: 14.8e6}
    assert outcome.usage.wall_s == 16.712
    assert outcome.layers == ()


def test_processes_of_nextflow_are_called_as_in_its_traces(imported, data):
    entries, _ = imported(wfcommons, data / "workflows" / "rnaseq-dirt02-001.json")
    assert entries[0].outcome.attempt.task.category == "SAMPLESHEET_CHECK"
    assert entries[0].outcome.layers == (SAMPLED,)


def test_the_old_layout_has_memory_in_kilobytes(imported):
    [entry], _ = imported(wfcommons, json.dumps(OLD))
    task, usage = entry.outcome.attempt.task, entry.outcome.usage
    assert (task.task_id, task.category) == ("mProject_ID0000001", "mProject")
    assert task.features == {"input_size": 120.0}
    assert task.inputs == ("a.fits", "b.hdr")
    assert task.requested == {Kind.CORES: 2.0}
    assert task.command == "mProject -X a.fits"
    assert usage.peak == {Kind.MEMORY: 14.8e6}
    assert (usage.wall_s, usage.cpu_s) == (16.5, 8.25)
    assert entry.outcome.host == "node1"
    assert entry.run.versions == {"Pegasus": "5.0"}
    assert entry.run.started_at == 1586751402.0


def test_what_is_not_known_of_a_task_is_absent(imported):
    entries, notes = imported(wfcommons, json.dumps(NEW))
    first, second = (entry.outcome for entry in entries)
    assert first.attempt.task.features == {"input_size": 9.0}
    assert second.attempt.task.features == {}
    assert second.usage.peak == {}
    assert notes.skipped == {wfcommons.NEVER_RUN: 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", r"line 1: .*expected a WfCommons instance"),
        ("[" * 100_000, "nesting without bounds"),
        ('{"workflow": 3}', "found no workflow"),
        ('{"workflow": {"specification": {"tasks": [{}]}}}', "expected an executed workflow"),
    ],
)
def test_what_is_no_instance_is_refused(tmp_path, text, reason):
    path = tmp_path / "w.json"
    path.write_text(text)
    with pytest.raises(ImportFailed, match=reason):
        list(wfcommons.read(path, Notes()))


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(wfcommons, "MOST_BYTES", 10)
    (tmp_path / "w.json").write_text(json.dumps(NEW))
    with pytest.raises(ImportFailed, match="is larger than 1e"):
        list(wfcommons.read(tmp_path / "w.json", Notes()))


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


@given(data=st.data(), instance=st.sampled_from([OLD, NEW]), value=junk)
def test_any_value_may_be_of_any_type(tmp_path_factory, data, instance, value):
    path = tmp_path_factory.getbasetemp() / "any.json"
    instance = json.loads(json.dumps(instance))
    *parents, last = data.draw(st.sampled_from([p for p in places(instance) if p]))
    place = instance
    for key in parents:
        place = place[key]
    place[last] = value
    path.write_text(json.dumps(instance))
    try:
        entries = list(wfcommons.read(path, Notes()))
    except ImportFailed:
        return
    assert {outcome.attempt.task.task_id for _, outcome in entries} <= set(wfcommons.places(path))
    for _, outcome in entries:
        json.dumps([outcome.attempt.task.category, *outcome.usage.peak.values()]).encode()
