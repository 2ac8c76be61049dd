"""Transaction logs of Work Queue and TaskVine, made by running both."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from parsl_sizer.archive.base import SAMPLED, Entry
from parsl_sizer.archive.importers import cctools_log
from parsl_sizer.archive.importers.base import ImportFailed, Notes
from parsl_sizer.archive.importers.cctools_log import (
    BAD_LINE,
    CUT_OFF,
    FORGOTTEN,
    NEVER_RAN,
    STOPPED,
    TOO_LONG,
    UNKNOWN_TASK,
)
from parsl_sizer.model import Ending, Kind, Outcome

MIB = 2**20
START = "1794851003562757 9 MANAGER START"


def outcomes(entries: Iterable[Entry]) -> dict[tuple[int | str, int], Outcome]:
    return {
        (outcome.attempt.task.task_id, outcome.attempt.number): outcome for _, outcome in entries
    }


def line(second: float, event: str) -> str:
    return f"{1794851003000000 + round(second * 1e6)} 9 {event}"


def waits(task_id: int, category: str = "calm") -> str:
    return f'TASK {task_id} WAITING {category} FIRST_RESOURCES {{"memory":[200,"MB"]}}'


def runs(task_id: int) -> str:
    return f'TASK {task_id} RUNNING h:1  FIRST_RESOURCES {{"memory":[200,"MB"]}}'


def test_work_queue_tells_how_every_attempt_ended(samples: Path, imported) -> None:
    entries, notes = imported(cctools_log, samples / "workqueue.log")
    found = outcomes(entries)
    assert {key: outcome.ending for key, outcome in found.items()} == {
        (1, 1): Ending.DONE,
        (2, 1): Ending.RAISED,
        (3, 1): Ending.RAISED,
        (4, 1): Ending.EXHAUSTED,
        (4, 2): Ending.DONE,
        (5, 1): Ending.EXHAUSTED,
        (6, 1): Ending.LOST,
        (8, 1): Ending.LOST,
        (8, 2): Ending.DONE,
    }
    assert notes.skipped == {STOPPED: 1}
    assert {entry.run.run_id for entry in entries} == {entries[0].run.run_id}
    assert entries[0].run.started_at == pytest.approx(1794851003.562757)


def test_a_retry_has_another_allocation_and_the_same_task(samples: Path, imported) -> None:
    found = outcomes(imported(cctools_log, samples / "workqueue.log")[0])
    first, second = found[4, 1], found[4, 2]
    assert first.exhausted == {Kind.MEMORY}
    assert first.attempt.allocation[Kind.MEMORY] == 100 * MIB
    assert second.attempt.allocation == {
        Kind.CORES: 1,
        Kind.MEMORY: 1000 * MIB,
        Kind.DISK: 500 * MIB,
    }
    assert first.attempt.task == second.attempt.task
    assert first.attempt.task.requested[Kind.MEMORY] == 100 * MIB
    assert second.usage.peak == {
        Kind.CORES: pytest.approx(0.071),
        Kind.MEMORY: 309 * MIB,
        Kind.DISK: MIB,
    }
    assert second.usage.wall_s == pytest.approx(4.370586)
    assert second.usage.cpu_s == pytest.approx(0.311071)
    assert second.layers == (SAMPLED,)
    assert second.host == "127.0.0.1"
    assert first.attempt.enforced
    assert second.attempt.enforced
    assert first.ended_at == pytest.approx(1794851005.647862)


def test_a_lost_worker_takes_its_task_along(samples: Path, imported) -> None:
    lost = outcomes(imported(cctools_log, samples / "workqueue.log")[0])[8, 1]
    assert lost.node_lost
    assert not lost.usage.peak
    assert lost.usage.wall_s == pytest.approx(30.015, abs=0.01)
    assert not lost.attempt.enforced


def test_task_vine_is_read_as_well(samples: Path, imported) -> None:
    entries, notes = imported(cctools_log, samples / "taskvine.log")
    found = outcomes(entries)
    assert found[5, 1].ending is Ending.EXHAUSTED
    assert found[5, 1].exhausted == {Kind.MEMORY}
    assert found[4, 1].ending is Ending.DONE
    assert found[4, 1].usage.peak[Kind.MEMORY] == 309 * MIB
    assert found[8, 1].ending is Ending.LOST
    assert found[8, 1].node_lost
    assert found[4, 1].host == "127.0.0.1"
    assert notes.skipped == {STOPPED: 1, CUT_OFF: 1}


@pytest.mark.parametrize("name", ["workqueue_unmonitored.log", "taskvine_unmonitored.log"])
def test_what_nobody_measured_is_no_peak(samples: Path, imported, name: str) -> None:
    entries, _ = imported(cctools_log, samples / name)
    assert entries
    for _, outcome in entries:
        assert not outcome.usage.peak
        assert not outcome.layers
        assert outcome.usage.wall_s > 0
        assert outcome.attempt.allocation[Kind.MEMORY] > 0
        assert not outcome.attempt.enforced


def test_one_that_was_seen_above_its_allocation_was_not_held_to_it(imported) -> None:
    measured = '{"cpu_time":[1,"s"],"memory":[300,"MB"],"wall_time":[2,"s"],"disk":[-1,"MB"]}'
    log = [line(0, waits(1)), line(1, runs(1)), line(4, f"TASK 1 DONE SUCCESS 0 {{}} {measured}")]
    entries, _ = imported(cctools_log, "\n".join(log))
    ((_, outcome),) = entries
    assert outcome.usage.peak == {Kind.MEMORY: 300 * MIB}
    assert not outcome.attempt.enforced


@pytest.mark.parametrize(
    ("end", "ending", "kinds"),
    [
        ("FORSAKEN -1 {} {}", Ending.LOST, set()),
        ("MAX_WALL_TIME 9 {} {}", Ending.LOST, set()),
        ("SIGNAL 9", Ending.LOST, set()),
        ("SUCCESS 0", Ending.DONE, set()),
        ("SUCCESS -3", Ending.RAISED, set()),
        ("DISK_ALLOC_FULL 1 {} {}", Ending.EXHAUSTED, {Kind.DISK}),
        ('RESOURCE_EXHAUSTION 143 {"wall_time":[3,"s"]} {}', Ending.LOST, set()),
        (
            'RESOURCE_EXHAUSTION 143 {"disk":[3,"MB"],"cores":[2,"cores"]} {}',
            Ending.EXHAUSTED,
            {Kind.DISK, Kind.CORES},
        ),
        (
            'RESOURCE_EXHAUSTION 143 {} {"cpu_time":[1,"s"],"memory":[900,"MB"]}',
            Ending.EXHAUSTED,
            {Kind.MEMORY},
        ),
    ],
)
def test_every_result_has_a_meaning(imported, end: str, ending: Ending, kinds: set[Kind]) -> None:
    log = [line(0, waits(1)), line(1, runs(1)), line(3, f"TASK 1 DONE {end}")]
    ((_, outcome),), _ = imported(cctools_log, "\n".join(log))
    assert (outcome.ending, outcome.exhausted) == (ending, kinds)
    assert outcome.usage.wall_s == pytest.approx(2.0)


def test_what_is_strange_is_left_out_with_a_reason(imported) -> None:
    log = [
        line(0, waits(1, "two words")),
        "gibberish",
        line(1, "TASK nobody RUNNING"),
        line(1, "TASK 7 DONE SUCCESS 0 {} {}"),
        line(1, waits(2)),
        line(1, "TASK 2 DONE FORSAKEN -1 {} {}"),
        line(2, runs(1)),
        line(2, f"TASK 1 RETRIEVED {'x' * (1 << 21)}"),
        line(3, "TASK 1 RETRIEVED SUCCESS 0 {} {}"),
        line(3, waits(3)),
    ]
    entries, notes = imported(cctools_log, "\n".join(log))
    assert [entry.outcome.attempt.task.category for entry in entries] == ["two words"]
    assert notes.skipped == {BAD_LINE: 2, UNKNOWN_TASK: 1, NEVER_RAN: 1, TOO_LONG: 1, CUT_OFF: 1}


def test_a_second_manager_in_the_same_file_has_other_tasks(imported) -> None:
    once = [START, line(0, waits(1)), line(1, runs(1)), line(3, "TASK 1 DONE SUCCESS 0")]
    entries, _ = imported(cctools_log, "\n".join(once * 2))
    assert [entry.outcome.attempt.task.task_id for entry in entries] == [1, "2.1"]


def test_only_so_many_tasks_are_remembered(imported, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cctools_log, "MOST_OPEN", 3)
    log = [line(task, waits(task)) for task in range(5)]
    _, notes = imported(cctools_log, "\n".join(log))
    assert notes.skipped == {FORGOTTEN: 2, CUT_OFF: 3}


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("category,memory_mb\nalign,3\n")
    assert not cctools_log.recognises(path, path.read_bytes())
    with pytest.raises(ImportFailed, match=r"table.csv, line 1: found 'category.*expected a trans"):
        list(cctools_log.read(path, Notes()))
