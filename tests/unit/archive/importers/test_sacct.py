from __future__ import annotations

from collections import Counter

import pytest

from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.archive.importers import sacct
from parsl_sizer.archive.importers.base import ImportFailed, Notes
from parsl_sizer.model import Ending, Kind

KIB, MIB = 2**10, 2**20


@pytest.fixture
def jobs(imported, samples):
    entries, _ = imported(sacct, samples / "sacct.txt")
    return {entry.outcome.attempt.task.task_id: entry.outcome for entry in entries}


def test_jobs_are_joined_with_their_steps(jobs):
    sort = jobs["3"]
    assert sort.usage.peak == {Kind.MEMORY: 94728 * KIB}
    assert (sort.usage.wall_s, sort.usage.cpu_s) == (8.0, 0.445)
    assert sort.attempt.task.requested == {Kind.CORES: 2.0, Kind.MEMORY: 400 * MIB}
    assert (sort.host, sort.layers) == ("n2", (SAMPLED,))
    assert sort.ended_at - sort.attempt.launched_at == 8.0
    assert sort.attempt.task.labels["User"] == "user1"


def test_categories_have_no_numbers_at_their_ends(jobs):
    categories = Counter(outcome.attempt.task.category for outcome in jobs.values())
    assert categories["align"] == 2
    assert categories["merge"] == 3
    assert {"4_1", "4_2", "4_3"} <= set(jobs)


def test_states_become_endings(jobs):
    assert jobs["1"].ending is Ending.DONE
    assert jobs["6"].ending is Ending.RAISED
    assert jobs["7"].ending is Ending.LOST
    assert not jobs["7"].node_lost


def test_a_job_that_failed_above_its_memory_ran_out_of_it(jobs):
    assert jobs["5"].ending is Ending.EXHAUSTED
    assert jobs["5"].exhausted == {Kind.MEMORY}
    assert jobs["5"].usage.peak[Kind.MEMORY] > jobs["5"].attempt.allocation[Kind.MEMORY]


def test_a_job_that_was_requeued_is_tried_again(jobs):
    assert jobs["9"].attempt.number == 2
    assert jobs["9"].ending is Ending.DONE


def test_cancelled_and_unfinished_jobs_are_left_out(imported, samples):
    _, notes = imported(sacct, samples / "sacct.txt")
    assert notes.skipped == {sacct.CANCELLED: 1, sacct.NOT_FINISHED: 1}


@pytest.mark.parametrize(
    ("state", "ending", "node_lost"),
    [
        ("OUT_OF_MEMORY", Ending.EXHAUSTED, False),
        ("NODE_FAIL", Ending.LOST, True),
        ("PREEMPTED", Ending.LOST, True),
    ],
)
def test_states_that_the_sample_has_not(imported, state, ending, node_lost):
    # Written by hand, as sacct's manual has them, in the old form with n and c and a last |.
    text = (
        "JobID|JobName|State|Elapsed|ReqMem|ReqCPUS|MaxRSS|AveCPU|NTasks|\n"
        f"7|sim-3|{state}|1-00:00:01|2Gc|4||||\n"
        f"7.batch|batch|{state}|1-00:00:01|2Gc|4|1.5G|00:00:02|2|\n"
        "7.extern|extern|COMPLETED|1-00:00:01|2Gc|4|0|00:00:00|1|\n"
    )
    [entry], _ = imported(sacct, text)
    outcome = entry.outcome
    assert (outcome.ending, outcome.node_lost) == (ending, node_lost)
    assert outcome.attempt.task.category == "sim"
    assert outcome.attempt.allocation == {Kind.CORES: 4.0, Kind.MEMORY: 8192 * MIB}
    assert outcome.usage.peak == {Kind.MEMORY: 1536 * MIB}
    assert (outcome.usage.wall_s, outcome.usage.cpu_s) == (86401.0, 4.0)


def test_a_job_ran_out_if_one_of_its_steps_did(imported):
    text = "JobID|JobName|State|Elapsed\n7|a|FAILED|00:01\n7.0|x|OUT_OF_MEMORY|00:01\n"
    [entry], _ = imported(sacct, text)
    assert entry.outcome.ending is Ending.EXHAUSTED


def test_a_step_without_its_job_is_left_out(imported):
    text = "JobID|JobName|State|Elapsed\n7.0|x|COMPLETED|00:01\n8|a|COMPLETED|00:01\n"
    entries, notes = imported(sacct, text)
    assert len(entries) == 1
    assert notes.skipped == {sacct.NO_JOB: 1}


def test_a_file_without_a_header_is_refused(tmp_path):
    path = tmp_path / "jobs.txt"
    path.write_text("7|a|COMPLETED|00:01\n")
    with pytest.raises(ImportFailed, match="line 1: found no column JobID"):
        list(sacct.read(path, Notes()))
