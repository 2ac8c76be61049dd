"""Workflows of stages on a simulated queue, under the policies that run live."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsl_sizer.model import TraceError
from parsl_sizer.scaling import POLICIES, Geometry, Planner, Stage, WaitEstimator
from parsl_sizer.simulator.batch import Wait, drawn, read_waits, replayed
from parsl_sizer.simulator.staged import StagedResult, StagedWorkflow, replay_staged
from parsl_sizer.simulator.staged_shapes import MACHINES, PATTERNS, geometries, shaped

MANY, ONE = Geometry(4, 28), Geometry(1, 1)
TIMES = (1000.0, 100.0, 1000.0, 100.0)
STAGES = tuple(
    Stage(name, geometry, expected_s=time_s)
    for name, geometry, time_s in zip("abcd", (MANY, ONE) * 2, TIMES, strict=True)
)
WORKFLOW = StagedWorkflow("four", STAGES, TIMES)


def run(
    policy: str,
    wait_s: float = 300.0,
    workflow: StagedWorkflow = WORKFLOW,
    *,
    knows: bool = True,
    accrues: bool = True,
) -> StagedResult:
    waits = WaitEstimator()
    for geometry in (MANY, ONE) if knows else ():
        waits.observe(geometry, wait_s, Random(1))
    planner = Planner(policy, waits, Random(1), max_blocks=4)
    (found,) = replay_staged([(workflow, planner)], lambda *_: wait_s, accrues=accrues)
    return found


def test_a_big_job_waits_once_and_holds_all_cores_all_the_time() -> None:
    found = run("big-job")
    assert found.waits_s == [300.0, 0.0, 0.0, 0.0]
    assert (found.makespan_s, found.core_s) == (2500.0, 112 * 2200.0)


def test_per_stage_waits_for_each_stage_and_holds_what_it_needs() -> None:
    found = run("per-stage")
    assert found.waits_s == [300.0] * 4
    assert (found.makespan_s, found.core_s) == (3400.0, 112 * 2000.0 + 200.0)


@pytest.mark.parametrize("policy", ["asa", "asa-naive"])
def test_asa_that_knows_the_wait_takes_no_longer_than_a_big_job_and_no_more_than_per_stage(
    policy: str,
) -> None:
    found = run(policy)
    assert found.makespan_s == run("big-job").makespan_s
    assert found.core_s == run("per-stage").core_s
    assert found.misses == []


def test_asa_waits_as_long_as_per_stage_where_a_wait_begins_only_after_what_it_follows() -> None:
    assert run("asa", accrues=False).makespan_s == run("per-stage").makespan_s


def test_a_stage_that_takes_longer_than_thought_lets_the_next_ones_block_come_early() -> None:
    slow = StagedWorkflow("slow", STAGES, (1100.0, 100.0, 1000.0, 100.0))
    naive, asa = run("asa-naive", workflow=slow), run("asa", workflow=slow)
    assert [(miss.idle_s, miss.is_used) for miss in naive.misses] == [(100.0, True)] * 2
    assert naive.core_s == asa.core_s + 100.0 * ONE.cores + 100.0 * MANY.cores
    assert asa.misses == []


def test_a_queue_that_is_empty_does_not_make_blocks_flap() -> None:
    assert run("asa-naive", wait_s=0.0).requests <= 2 * len(STAGES)


def test_workflows_that_share_an_estimator_learn_from_each_other() -> None:
    waits = WaitEstimator()
    planners = [Planner("asa", waits, Random(seed), max_blocks=4) for seed in range(3)]
    replay_staged([(WORKFLOW, planner) for planner in planners], lambda *_: 300.0)
    assert waits.known == {str(MANY): 6, str(ONE): 6}


@given(
    st.sampled_from(list(POLICIES)),
    st.integers(0, 999),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 5000), st.floats(0, 3)), max_size=6),
)
@settings(max_examples=100, deadline=None)
def test_every_workflow_ends_and_every_miss_stays_within_its_bound(
    policy: str, seed: int, max_blocks: int, drawn_stages: list[tuple[int, float, float]]
) -> None:
    shapes = (MANY, ONE, Geometry(2, 28), Geometry(1, 28))
    stages = tuple(
        Stage(str(number), shapes[shape], expected_s=time_s if off < 2.9 else None)
        for number, (shape, time_s, off) in enumerate(drawn_stages)
    )
    times = tuple(time_s * off for _, time_s, off in drawn_stages)
    random = Random(seed)
    planner = Planner(policy, WaitEstimator(), random, max_blocks=max_blocks)
    queue = drawn(random, dict.fromkeys(shapes, (500.0, 900.0)) | {MANY: (4000.0, 400.0)})
    (found,) = replay_staged([(StagedWorkflow("any", stages, times), planner)], queue)
    assert not stages or math.isclose(
        found.makespan_s, math.fsum(times) + found.waited_s, abs_tol=1e-6
    )
    assert (planner.requested, planner.observed) == ((), ())
    for miss in found.misses:
        assert miss.core_s <= miss.bound_core_s * (1 + 1e-9) + 1e-6


def test_the_three_workflows_are_there_at_all_six_scales() -> None:
    for name, pattern in PATTERNS.items():
        for cores in MACHINES:
            made = shaped(name, cores, 1000.0, 0.6, known=1.1)
            assert math.isclose(math.fsum(made.times_s), 1000.0)
            assert [stage.name[0] for stage in made.stages] == list(pattern)
            assert max(stage.geometry.cores for stage in made.stages) == cores
            assert geometries(cores)["S"].cores == 1


SACCT = """Submit|Start|NNodes|NCPUS
2026-11-02T10:00:00|2026-11-02T10:05:00|4|112
2026-11-02T10:10:00|Unknown|4|112
2026-11-02T10:20:00|2026-11-02T11:20:00|1|1
"""


def test_waits_are_read_from_what_sacct_prints(tmp_path: Path) -> None:
    path = tmp_path / "waits.txt"
    path.write_text(SACCT)
    found = read_waits(path)
    assert found == [Wait(0.0, MANY, 300.0), Wait(1200.0, ONE, 3600.0)]
    queue = replayed(found)
    assert (queue(MANY, 0.0), queue(ONE, 0.0)) == (300.0, 3600.0)
    with pytest.raises(TraceError, match="No job in the trace has the geometry of 9 x 9 cores"):
        queue(Geometry(9, 9), 0.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "does not begin with the columns Submit, Start, NNodes, NCPUS"),
        ("Submit|Start\nx|y\n", "does not begin with the columns"),
        (SACCT.replace("|4|112", "|0|112"), "line 2"),
        (SACCT.replace("2026-11-02T10:05:00", "yesterday"), "line 2: Invalid isoformat"),
    ],
)
def test_a_file_that_is_no_trace_of_waits_is_refused(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "waits.txt"
    path.write_text(text)
    with pytest.raises(TraceError, match=complaint):
        read_waits(path)
