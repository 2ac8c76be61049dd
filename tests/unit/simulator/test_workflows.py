"""Workflows: made, connected, and replayed in the order that they allow."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.model import Ending, Kind, Resources, TaskInfo, TraceError
from parsl_sizer.placement import ORDERS
from parsl_sizer.simulator import Replayed, Row
from parsl_sizer.simulator.cluster import replay_workflow
from parsl_sizer.simulator.shapes import SHAPES
from parsl_sizer.simulator.workflows import (
    TERABYTE_WEEK,
    Workflow,
    connected,
    generated,
    recorded,
)
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family

POOL = Resources(cores=128, memory=1952e9)
GB = 1e9


def categories(strategy: str = "auto") -> Categories:
    return Categories(family(strategy, Setting((Kind.MEMORY,))))


def row(task_id: int, category: str = "t", memory: float = GB, time_s: float = 1.0) -> Row:
    return Row(task_id, TaskInfo(task_id, category), {Kind.MEMORY: memory}, time_s)


def run(
    workflow: Workflow, order: str = "first-come", node: Resources = POOL, strategy: str = "auto"
) -> dict[int | str, tuple[float, float, Ending]]:
    """When each task was first launched, when it was over, and how."""
    found: dict[int | str, tuple[float, float, Ending]] = {}

    def note(replayed: Replayed) -> None:
        if replayed.outcomes:
            first, last = replayed.outcomes[0], replayed.outcomes[-1]
            launched = first.attempt.launched_at
            found[replayed.row.task.task_id] = launched, last.ended_at, last.ending

    replay_workflow(workflow, categories(strategy), node, order=order, settled=note)
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tasks", [30, 1000])
def test_generated_workflows_have_their_size_and_work(shape: str, tasks: int) -> None:
    made = generated(shape, tasks, seed=3)
    assert len(made.rows) == pytest.approx(tasks, rel=0.3 if tasks < 100 else 0.02)
    work = math.fsum(row.peak[Kind.MEMORY] * row.time_s for row in made.rows)
    assert work == pytest.approx(TERABYTE_WEEK)
    assert all(0 < row.peak[Kind.MEMORY] <= POOL.memory for row in made.rows)
    assert all(row.task.requested[Kind.MEMORY] > 0 for row in made.rows)
    ends = {task for parents in made.parents.values() for task in parents}
    assert any(row.task.task_id not in ends for row in made.rows)


def test_a_seed_gives_the_same_workflow_again() -> None:
    assert generated("ligo", 100, 5) == generated("ligo", 100, 5)
    assert generated("ligo", 100, 5) != generated("ligo", 100, 6)


@pytest.mark.parametrize("estimate", ["none", "power10", "max:1.2"])
def test_users_estimate_in_different_ways(estimate: str) -> None:
    made = generated("genome", 200, estimate=estimate)
    largest = max(row.peak[Kind.MEMORY] for row in made.rows if row.task.category == "map")
    [asked] = {
        row.task.requested.get(Kind.MEMORY) for row in made.rows if row.task.category == "map"
    }
    if estimate == "none":
        assert asked is None
    elif estimate == "max:1.2":
        assert asked == pytest.approx(min(1.2 * largest, POOL.memory))
    else:
        assert math.log10(asked / GB) == pytest.approx(round(math.log10(asked / GB)))


def test_a_shape_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="no workflow is called 'loop'; there are cybershake"):
        generated("loop")


def test_depth_and_rank_are_the_longest_ways() -> None:
    made = connected("x", map(row, range(5)), {1: [0], 2: [1], 3: [0, 2], 4: []})
    places = {row.task.task_id: (row.task.depth, row.task.rank) for row in made.rows}
    assert places == {0: (0, 3), 1: (1, 2), 2: (2, 1), 3: (3, 0), 4: (0, 0)}


def test_parents_that_are_not_there_or_named_twice_do_no_harm() -> None:
    made = connected("x", map(row, range(2)), {1: [0, 0, 77]})
    assert made.parents == {0: (), 1: (0,)}
    assert len(run(made)) == 2


def test_a_circle_is_refused() -> None:
    with pytest.raises(TraceError, match="The workflow x has a circle: task 1 is to wait"):
        connected("x", map(row, range(3)), {1: [2], 2: [1]})


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_starts_before_what_it_waits_for_has_finished(shape: str, order: str) -> None:
    made = generated(shape, 120, seed=1)
    found = run(made, order)
    assert len(found) == len(made.rows)
    for task, parents in made.parents.items():
        assert found[task][2] is Ending.DONE
        for parent in parents:
            assert found[parent][1] <= found[task][0]


@given(
    edges=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40),
    order=st.sampled_from(sorted(ORDERS)),
)
def test_any_graph_is_run_to_its_end(edges: list[tuple[int, int]], order: str) -> None:
    parents: dict[int | str, list[int]] = {}
    for one, other in edges:
        if one != other:
            parents.setdefault(max(one, other), []).append(min(one, other))
    made = connected("x", (row(n, f"c{n % 3}", (1 + n) * GB) for n in range(12)), parents)  # type: ignore[arg-type]
    found = run(made, order, Resources(cores=4, memory=16 * GB))
    assert len(found) == 12
    for task, before in made.parents.items():
        assert all(found[parent][1] <= found[task][0] for parent in before)


def test_the_order_decides_who_starts_when_there_is_room_for_one() -> None:
    """Two chains that begin together, of 2 and of 4 tasks."""
    parents: dict[int | str, list[int | str]] = {1: [0], 11: [10], 12: [11], 13: [12]}
    rows = [row(n, memory=GB) for n in (0, 1, 10, 11, 12, 13)]
    made = connected("x", rows, parents)
    node = Resources(cores=1, memory=GB)

    def sequence(order: str) -> list[int | str]:
        found = run(made, order, node, "whole-machine")
        return sorted(found, key=lambda task: found[task][0])

    assert sequence("first-come") == [0, 10, 1, 11, 12, 13]
    assert sequence("bfs") == [0, 10, 1, 11, 12, 13]
    assert sequence("dfs") == [0, 1, 10, 11, 12, 13]
    assert sequence("topology-rank") == [10, 11, 0, 12, 1, 13]


def test_what_waits_for_a_task_that_fits_nowhere_is_not_run() -> None:
    rows = [row(0), row(1, memory=5000 * GB), row(2)]
    made = connected("x", rows, {2: [1]})
    result = replay_workflow(made, categories(), POOL)
    assert (result.done, result.impossible) == (1, 1)


def test_a_workflow_that_was_run_is_read_from_a_file(tmp_path: Path) -> None:
    tasks = [
        {"id": "a_1", "name": "a_1", "inputFiles": ["x"], "outputFiles": ["y"]},
        {"id": "b_1", "name": "b_1", "inputFiles": ["y"], "parents": ["a_1"]},
        {"id": "b_2", "name": "b_2", "inputFiles": ["y", "?"]},
    ]
    tasks[0]["children"] = ["b_1", "b_2"]
    ran = [
        {"id": "b_1", "runtimeInSeconds": 4, "memoryInBytes": 100, "avgCPU": 150, "readBytes": 9},
        {"id": "b_2", "runtimeInSeconds": 5},
        {"id": "a_1", "runtimeInSeconds": 3, "coreCount": 2, "executedAt": "2020-12-27T18:23:37Z"},
    ]
    files = [{"id": "x", "sizeInBytes": 7}, {"id": "y", "sizeInBytes": 8}]
    whole = {"specification": {"tasks": tasks, "files": files}, "execution": {"tasks": ran}}
    path = tmp_path / "made.json"
    path.write_text(json.dumps({"name": "x", "schemaVersion": "1.5", "workflow": whole}))
    made = recorded(path)
    assert made.name == "made"
    assert made.parents == {"a_1": (), "b_1": ("a_1",), "b_2": ("a_1",)}
    first, second, third = made.rows
    assert (first.task.category, first.task.rank, first.time_s) == ("a", 1, 3.0)
    assert first.task.submitted_at == 0
    assert first.task.requested == {Kind.CORES: 2.0}
    assert first.task.features == {"input_size": 7.0}
    assert first.task.labels == {"read_bytes": 7.0, "written_bytes": 8.0}
    assert first.peak == {}
    assert second.peak == {Kind.MEMORY: 100.0, Kind.CORES: 1.5}
    assert second.task.labels == {"read_bytes": 9.0}
    assert third.task.labels == {}
    assert third.task.features == {}


def test_workflows_of_old_files_name_their_parents(tmp_path: Path) -> None:
    tasks = [
        {"name": "a_ID1", "id": "ID1", "runtime": 1},
        {"name": "b_ID2", "id": "ID2", "runtime": 1, "parents": ["ID1", "a_ID1", "c", 5]},
    ]
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"name": "x", "schemaVersion": "1.3", "workflow": {"tasks": tasks}}))
    assert recorded(path).parents == {"a_ID1": (), "b_ID2": ("a_ID1",)}


def test_the_public_workflows_are_run_to_their_ends(traces: Path) -> None:
    found = sorted((traces.parent / "workflows").glob("*.json"))
    assert found
    for path in found:
        made = recorded(path)
        assert max(row.task.depth for row in made.rows) > 0
        result = replay_workflow(made, categories(), POOL)
        assert result.done == len(made.rows)
        assert result.makespan_s >= max(row.time_s for row in made.rows)
