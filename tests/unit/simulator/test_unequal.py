"""Workflows on machines that differ, on cases small enough to be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parsl_sizer.model import Kind, Node, OptOut, Resources, TaskInfo
from parsl_sizer.placement import node_labels, policy
from parsl_sizer.simulator.machines import (
    REFERENCE,
    Machine,
    in_groups,
    paper_cluster,
    without,
)
from parsl_sizer.simulator.trace import Row
from parsl_sizer.simulator.unequal import UnequalResult, replay_unequal, together
from parsl_sizer.simulator.workflows import Workflow, connected
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Setting, catalog

LABELS = {"1": {"cpu": 1}, "2": {"cpu": 2}}


def machine(name: str, speed: float = 1.0, cores: float = 4.0) -> Machine:
    """One with so many times the reference's CPU speed, and its disk."""
    profile = {**REFERENCE, "cpu_single": REFERENCE["cpu_single"] * speed}
    return Machine(Node(name, Resources(cores=cores, memory=64e9)), profile)


def row(
    task: str, time_s: float = 10.0, *, busy: float = 1.0, cores: float = 1.0, category: str = "t"
) -> Row:
    info = TaskInfo(
        task, category, requested={Kind.CORES: cores}, opt_outs=frozenset({OptOut.FIXED})
    )
    return Row(0, info, {Kind.CORES: busy}, time_s)


def flow(*rows: Row, **parents: list[str]) -> Workflow:
    return connected("w", rows, parents)


def run(workflow: Workflow, *machines: Machine, **how: object) -> UnequalResult:
    family = catalog.family("user-estimate", Setting((Kind.CORES,)))
    return replay_unequal(workflow, Categories(family), machines, **how)  # type: ignore[arg-type]


def ends(result: UnequalResult) -> dict[int | str, float]:
    return {outcome.attempt.task.task_id: outcome.ended_at for outcome in result.outcomes}


def test_a_faster_machine_takes_less_time_for_what_goes_by_the_cpu() -> None:
    assert ends(run(flow(row("a")), machine("m", 2.0)))["a"] == pytest.approx(5.0)
    half = row("a", busy=0.5)
    assert ends(run(flow(half), machine("m", 2.0)))["a"] == pytest.approx(7.5)
    assert ends(run(flow(row("a", busy=3.0)), machine("m", 2.0)))["a"] == pytest.approx(5.0)


def test_a_neighbour_slows_a_task_while_it_is_there() -> None:
    """Of 4 cores the other keeps one busy: 1.1 times as long, until it is gone."""
    found = ends(run(flow(row("a", 10.0), row("b", 20.0)), machine("m"), alpha=0.4))
    assert found["a"] == pytest.approx(11.0)
    assert found["b"] == pytest.approx(11.0 + 10.0)


def test_a_neighbour_that_comes_later_slows_what_is_left() -> None:
    """When b comes, a has 5 s left; they take 1.1 times as long, and then b is alone."""
    workflow = flow(row("p", 5.0, cores=2.0, busy=0.0), row("a", 10.0), row("b", 10.0), b=["p"])
    found = ends(run(workflow, machine("m"), alpha=0.4))
    assert found["p"] == pytest.approx(5.0 * 1.1)
    done_by_then = found["p"]
    assert found["a"] == pytest.approx(done_by_then + (10.0 - done_by_then) * 1.1)
    b_left = 10.0 - (found["a"] - done_by_then) / 1.1
    assert found["b"] == pytest.approx(found["a"] + b_left)


def test_without_interference_neighbours_do_not_matter() -> None:
    found = ends(run(flow(row("a"), row("b"), row("c")), machine("m")))
    assert set(found.values()) == {10.0}


def test_tasks_wait_for_others_and_for_room() -> None:
    workflow = flow(row("a"), row("b", cores=4.0), row("c"), b=["a"], c=["b"])
    assert list(ends(run(workflow, machine("m"))).values()) == [10.0, 20.0, 30.0]
    full = flow(*(row(name, cores=4.0) for name in "abc"))
    assert sorted(ends(run(full, machine("m"))).values()) == [10.0, 20.0, 30.0]


def test_what_no_machine_holds_is_said() -> None:
    with pytest.raises(ValueError, match="2 tasks found no machine"):
        run(flow(row("a"), row("b"), b=["a"]))
    with pytest.raises(ValueError, match="alpha must be 0 or more"):
        run(flow(row("a")), machine("m"), alpha=-1.0)


def test_tarema_knows_in_the_second_run_what_the_first_one_taught() -> None:
    machines = in_groups([machine("old1"), machine("old2"), machine("new1", 2), machine("new2", 2)])
    assert [one.node.group for one in machines] == ["1", "1", "2", "2"]
    workflow = flow(
        *(row(f"light{n}", busy=0.1, category="light") for n in range(4)),
        *(row(f"heavy{n}", busy=1.0, category="heavy") for n in range(4)),
    )
    first = run(workflow, *machines, policy=policy("tarema", LABELS))
    second = run(workflow, *machines, policy=policy("tarema", LABELS), before=first.outcomes)
    places = {
        outcome.attempt.task.category: {
            str(one.attempt.node)[:3]
            for one in second.outcomes
            if one.attempt.task.category == outcome.attempt.task.category
        }
        for outcome in second.outcomes
    }
    assert places == {"light": {"old"}, "heavy": {"new"}}
    heavy = [
        {end for task, end in ends(r).items() if "heavy" in str(task)} for r in (first, second)
    ]
    assert heavy == [{5.0, 10.0}, {5.0}]


def test_the_shortest_come_first_once_they_are_known() -> None:
    tasks = [row("long", 9.0, cores=4, category="long"), row("short", cores=4, category="short")]
    tasks[1] = replace(tasks[1], time_s=1.0)
    workflow = flow(*tasks)
    first = run(workflow, machine("m"), order="shortest-first")
    second = run(workflow, machine("m"), order="shortest-first", before=first.outcomes)
    assert list(ends(first)) == ["long", "short"]
    assert list(ends(second)) == ["short", "long"]


def test_evenness_is_one_if_all_machines_are_used_alike_and_less_otherwise() -> None:
    workflow = flow(*(row(name, cores=4.0) for name in "abcd"))
    assert run(workflow, machine("m"), machine("n")).evenness == pytest.approx(1.0)
    single = run(flow(row("a")), machine("m"), machine("n"))
    assert sorted(single.use.values()) == [0.0, 2.5]
    assert single.evenness == pytest.approx(0.5)


def test_two_workflows_run_side_by_side_and_are_told_apart() -> None:
    chain = flow(row("a"), row("b"), b=["a"])
    both = together(chain, replace(chain, name="v"))
    found = ends(run(both, machine("m")))
    assert found == {"w/a": 10.0, "w/b": 20.0, "v/a": 10.0, "v/b": 20.0}
    assert {r.task.category for r in both.rows} == {"w/t", "v/t"}


@pytest.mark.parametrize(("name", "sizes"), [("5;5;5", [5, 5, 5]), ("5;4;4;2", [9, 4, 2])])
def test_the_paper_s_clusters_have_the_groups_of_its_table(name: str, sizes: list[int]) -> None:
    machines = paper_cluster(name)
    groups: dict[str, list[str]] = {}
    for one in machines:
        groups.setdefault(one.node.group, []).append(one.node.name)
    assert [len(groups[group]) for group in sorted(groups)] == sizes
    labels = node_labels(groups, {one.node.name: one.profile for one in machines})
    assert labels == {
        str(rank): {"cpu": rank, "memory": rank, "io": 1} for rank in range(1, 1 + len(sizes))
    }


@pytest.mark.parametrize(("share", "left"), [(0.0, [5, 5, 5]), (0.2, [4, 4, 4]), (0.4, [3, 3, 3])])
def test_a_share_of_each_group_can_be_off(share: float, left: list[int]) -> None:
    machines = without(paper_cluster("5;5;5"), share)
    groups = [one.node.group for one in machines]
    assert [groups.count(group) for group in ("1", "2", "3")] == left
