"""Summaries of resource_monitor, of today and of old."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.archive.importers import resource_monitor
from parsl_sizer.archive.importers.base import ImportFailed, Notes
from parsl_sizer.archive.importers.cctools_summaries import BAD_SUMMARY
from parsl_sizer.archive.importers.cells import USELESS
from parsl_sizer.archive.importers.resource_monitor import MANAGER
from parsl_sizer.model import Ending, Kind

MIB = 2**20
OLD = """\
# made by CCTools 4.4
command: ./simulate -n 3
category:      sim
start:                1439221567.123456 s
end:                  1439221577.123456 s
exit_type:                        normal
exit_status:                           0
cores:                                 2
wall_time:                     10.000000 s
max_concurrent_processes:             3 procs
cpu_time:                      12.500000 s
virtual_memory:                     300 MB
resident_memory:                    120 MB
workdir_footprint:                    7 MB
--

command: /opt/bin/simulate -n 4
start:                1439221567123456
exit_type:                        limits
exit_status:                         143
limits_exceeded:    resident_memory: 100, wall_time: 3
wall_time:                     10.000000 s
resident_memory:                    120 MB
limits_resident_memory:             100 MB
--
"""


def summary(**more: object) -> str:
    return json.dumps(
        {
            "monitor_version": "8.0.0",
            "category": "calm",
            "command": "sleep 2",
            "exit_status": 0,
            "exit_type": "normal",
            "wall_time": [2.0, "s"],
            "memory": [3, "MB"],
        }
        | more
    )


def test_a_single_summary_is_read(samples: Path, imported) -> None:
    ((run, outcome),), _ = imported(resource_monitor, samples / "resource_monitor.summary")
    assert run.run_id.startswith("resource_monitor-")
    assert outcome.ending is Ending.EXHAUSTED
    assert outcome.exhausted == {Kind.MEMORY}
    assert outcome.attempt.allocation == {Kind.MEMORY: 50 * MIB}
    assert outcome.usage.peak == {
        Kind.CORES: pytest.approx(0.361),
        Kind.MEMORY: 213 * MIB,
        Kind.DISK: MIB,
    }
    assert outcome.usage.wall_s == pytest.approx(1.042962)
    assert outcome.usage.cpu_s == pytest.approx(0.37614)
    assert outcome.usage.series == ((1.025, 213 * MIB),)
    assert outcome.attempt.launched_at == pytest.approx(1794851713.77518)
    assert outcome.ended_at == pytest.approx(1794851714.818142)
    assert outcome.host == "node-1"
    assert outcome.layers == (SAMPLED,)
    assert outcome.attempt.task.category == "python3"
    assert "bytearray" in str(outcome.attempt.task.command)


def test_many_summaries_are_read(samples: Path, imported) -> None:
    entries, notes = imported(resource_monitor, samples / "resource_monitor.summaries")
    endings = {
        outcome.attempt.task.task_id: (outcome.attempt.task.category, outcome.ending)
        for _, outcome in entries
    }
    assert endings == {
        1: ("calm", Ending.DONE),
        2: ("calm", Ending.RAISED),
        3: ("calm", Ending.LOST),
        4: ("hog", Ending.DONE),
        5: ("tight", Ending.EXHAUSTED),
        6: ("absent", Ending.DONE),
        8: ("calm", Ending.DONE),
    }
    assert not notes.skipped


def test_the_published_run_is_read(data: Path, imported) -> None:
    path = data / "formats" / "workqueue_transactions_colmena.log"
    entries, notes = imported(resource_monitor, path)
    assert len(entries) == 228
    assert notes.skipped == {MANAGER: 1}
    run = entries[0].run
    assert run.workflow == "colmena-xtb"
    assert run.started_at == pytest.approx(1617127319.57, abs=0.01)
    first = entries[0].outcome
    assert first.attempt.task.task_id == 28
    assert first.usage.peak[Kind.MEMORY] == 6202 * MIB
    assert first.usage.series == ((157.398522, 6202 * MIB),)


def test_a_monitor_that_only_measures_stops_nobody(data: Path, imported) -> None:
    """In that run 102 tasks were above their limits, and went on for minutes after that."""
    path = data / "formats" / "workqueue_transactions_colmena.log"
    entries, _ = imported(resource_monitor, path)
    assert {entry.outcome.ending for entry in entries} == {Ending.DONE}
    free = [entry.outcome for entry in entries if not entry.outcome.attempt.enforced]
    assert len(free) == 102
    assert all(outcome.attempt.allocation for outcome in free)


def test_old_summaries_are_read(imported) -> None:
    entries, notes = imported(resource_monitor, OLD)
    first, second = (entry.outcome for entry in entries)
    assert not notes.skipped
    assert first.attempt.task.category == "sim"
    assert first.attempt.task.command == "./simulate -n 3"
    assert first.usage.peak == {Kind.CORES: 2, Kind.MEMORY: 120 * MIB, Kind.DISK: 7 * MIB}
    assert (first.usage.wall_s, first.usage.cpu_s) == (10.0, 12.5)
    assert first.ending is Ending.DONE
    assert second.attempt.task.category == "simulate"
    assert second.exhausted == {Kind.MEMORY}
    assert second.attempt.allocation == {Kind.MEMORY: 100 * MIB}
    assert second.attempt.launched_at == pytest.approx(1439221567.123456)


@pytest.mark.parametrize("between", [",\n", ",", "\n", ""])
def test_summaries_may_be_a_list_or_follow_each_other(imported, between: str) -> None:
    text = between.join([summary(task_id="1"), summary(task_id="2"), summary()])
    for whole in (text, f"[{text}]"):
        entries, notes = imported(resource_monitor, whole)
        ids = [entry.outcome.attempt.task.task_id for entry in entries]
        assert ids == [1, 2, 3]
        assert not notes.skipped


@pytest.mark.parametrize(
    ("more", "ending"),
    [
        ({"exit_status": 3}, Ending.RAISED),
        ({"exit_status": -1}, Ending.RAISED),
        ({"exit_type": "signal", "signal": 9, "exit_status": 137}, Ending.LOST),
        ({"exit_type": "signal", "signal": 11, "exit_status": 139}, Ending.RAISED),
        (
            {"exit_type": "limits", "exit_status": 143, "limits_exceeded": {"wall_time": [1, "s"]}},
            Ending.LOST,
        ),
        ({"exit_type": "strange"}, Ending.LOST),
    ],
)
def test_every_end_has_a_meaning(imported, more: dict[str, object], ending: Ending) -> None:
    ((_, outcome),), _ = imported(resource_monitor, summary(**more))
    assert outcome.ending is ending
    assert not outcome.exhausted


def test_a_task_that_is_tried_again_has_another_attempt(imported) -> None:
    over = {"exit_type": "limits", "exit_status": 143, "limits_exceeded": {"memory": [2, "MB"]}}
    text = "\n".join([summary(task_id=7, **over), summary(task_id=8), summary(task_id=7)])
    entries, _ = imported(resource_monitor, text)
    attempts = [entry.outcome.attempt for entry in entries]
    assert [(attempt.task.task_id, attempt.number) for attempt in attempts] == [
        (7, 1),
        (8, 1),
        (7, 2),
    ]


def test_one_damaged_summary_spoils_no_other(imported) -> None:
    useless = summary(wall_time=[-1, "s"], memory="N/A")
    text = "\n".join([summary(), summary()[:-30], summary(), useless, '{"a": 1}', summary()[:40]])
    entries, notes = imported(resource_monitor, text)
    assert len(entries) == 2
    assert notes.skipped == {BAD_SUMMARY: 3, USELESS: 1}


def test_what_was_not_measured_is_absent(imported) -> None:
    more = {"memory": [0, "MB"], "cores": [0, "cores"], "gpus": [0, "gpus"], "disk": [0, "MB"]}
    ((_, outcome),), _ = imported(resource_monitor, summary(**more))
    assert outcome.usage.peak == {Kind.DISK: 0.0}
    assert outcome.usage.cpu_s is None


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for text in ("category,memory_mb\nalign,3\n", '{"schemaVersion": "1.5", "workflow": {}}'):
        path.write_text(text)
        assert not resource_monitor.recognises(path, path.read_bytes())
    path.write_text("category,memory_mb\nalign,3\n")
    with pytest.raises(ImportFailed, match=r"table.csv, line 1: .*expected a summary"):
        list(resource_monitor.read(path, Notes()))
