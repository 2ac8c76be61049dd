from __future__ import annotations

from collections import Counter

import pytest

from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.archive.importers import nextflow
from parsl_sizer.archive.importers.cells import RAGGED, USELESS
from parsl_sizer.model import Ending, Kind

GB = 2**30
FIELDS = "task_id hash name status exit submit duration realtime %cpu peak_rss rchar"
RETRY = "\t".join([*FIELDS.split(), "memory", "attempt"])


def rows(*lines):
    return "\n".join("\t".join(line.split(";")) for line in lines) + "\n"


def test_a_real_trace_with_raw_numbers(imported, data):
    path = data / "formats" / "nextflow_trace_methylseq.csv"
    entries, notes = imported(nextflow, path)
    endings = Counter(entry.outcome.ending for entry in entries)
    assert endings == {Ending.DONE: 1011, Ending.RAISED: 72}
    assert not notes.skipped
    run, outcome = entries[0]
    task = outcome.attempt.task
    assert run.workflow == "NFCORE_METHYLSEQ"
    assert (task.task_id, task.category) == ("25", "TRIMGALORE")
    assert task.labels["tag"] == "SAMN10172311"
    assert task.requested == {Kind.CORES: 12.0, Kind.MEMORY: 77309411328.0}
    assert task.features == {"input_size": 451684785.0}
    assert outcome.usage.peak == {Kind.MEMORY: 311390208.0}
    assert outcome.usage.wall_s == 10.0
    assert outcome.usage.cpu_s == pytest.approx(28.25)
    assert outcome.layers == (SAMPLED,)
    assert outcome.attempt.launched_at == 1718920125.0
    assert outcome.ended_at == 1718920136.0
    unmeasured = [e.outcome for e in entries if e.outcome.ending is Ending.RAISED]
    assert all(not outcome.usage.peak and outcome.usage.wall_s for outcome in unmeasured)


def test_a_trace_as_nextflow_writes_it_by_default(imported):
    header = "\t".join(FIELDS.split())
    line = "2;8/f;ALL:QC:FASTP (a b);COMPLETED;0;2024-02-09 14:44:43.053;6m 44s;6m 31s;456.6%"
    [entry], _ = imported(nextflow, rows(header, line + ";2.4 GB;540 B"))
    outcome = entry.outcome
    assert outcome.attempt.task.category == "FASTP"
    assert outcome.attempt.task.features == {"input_size": 540.0}
    assert outcome.usage.peak == {Kind.MEMORY: 2.4 * GB}
    assert outcome.usage.wall_s == 391.0
    assert outcome.usage.cpu_s == pytest.approx(4.566 * 391)
    assert outcome.ended_at - outcome.attempt.task.submitted_at == pytest.approx(404)
    assert outcome.ended_at - outcome.attempt.launched_at == pytest.approx(391)


def test_a_task_too_short_to_be_seen_has_no_peak(imported):
    header = "\t".join(FIELDS.split())
    [entry], _ = imported(nextflow, rows(header, "1;a;P;COMPLETED;0;-;4.6s;9ms;125.2%;0;171 KB"))
    assert entry.outcome.usage.peak == {}
    assert entry.outcome.usage.wall_s == pytest.approx(0.009)


def test_a_killed_attempt_ran_out_of_memory_and_its_retry_is_the_same_task(imported):
    entries, _ = imported(
        nextflow,
        rows(
            RETRY,
            "1;a;P (x);FAILED;137;-;-;5s;-;-;-;1 GB;1",
            "2;b;P (y);FAILED;1;-;-;5s;-;-;-;1 GB;1",
            "3;c;P (x);FAILED;137;-;-;6s;-;-;-;2 GB;2",
            "4;d;P (x);COMPLETED;0;-;-;9s;-;2.5 GB;-;4 GB;3",
            "5;e;Q (x);FAILED;137;-;-;9s;-;-;-;-;1",
        ),
    )
    found = [(e.outcome.attempt.task.task_id, e.outcome.attempt.number) for e in entries]
    assert found == [("1", 1), ("2", 1), ("1", 2), ("1", 3), ("5", 1)]
    endings = [entry.outcome.ending for entry in entries]
    assert endings[:2] == [Ending.EXHAUSTED, Ending.RAISED]
    assert endings[2:] == [Ending.EXHAUSTED, Ending.DONE, Ending.RAISED]
    assert entries[0].outcome.exhausted == {Kind.MEMORY}
    assert entries[0].outcome.attempt.allocation == {Kind.MEMORY: GB}


def test_what_did_not_run_here_is_left_out(imported):
    header = "\t".join(FIELDS.split())
    lines = [f"1;a;P;{status};-;-;-;1s;-;-;-" for status in ("CACHED", "ABORTED", "RUNNING")]
    lines += ["1;a;-;COMPLETED;0;-;-;1s;-;-;-", "1;a;P;COMPLETED;0;-;-;-;-;-;-", "of a script"]
    entries, notes = imported(nextflow, rows(header, *lines))
    assert not entries
    assert set(notes.skipped.values()) == {1}
    assert set(notes.skipped) == {
        *nextflow.LEFT_OUT.values(),
        nextflow.NOT_FINISHED,
        nextflow.NO_NAME,
        USELESS,
        RAGGED,
    }
