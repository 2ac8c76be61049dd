"""How many nodes of which group tasks would fill."""

from __future__ import annotations

import pytest

from parsl_sizer.model import Kind, Resources, TaskInfo
from parsl_sizer.sizing.demand import Need, Supply, demands

SMALL = Supply("small", Resources(cores=4, memory=4e9), most=2, slots=4)
LARGE = Supply("large", Resources(cores=16, memory=16e9), most=3, slots=16)
TASK = TaskInfo(1, "align")


def group_of(node: str) -> str:
    return node.partition("/")[0]


def waiting(gb: float, times: int) -> Need:
    return Need(TASK, {Kind.MEMORY: gb * 1e9}, times)


@pytest.mark.parametrize(
    ("needs", "small", "large"),
    [
        ([], 0, 0),
        ([waiting(1, 3)], 0.75, 0),
        ([waiting(1, 8)], 2, 0),
        ([waiting(1, 12)], 2, 0.25),
        ([waiting(8, 2)], 0, 1),
        ([waiting(8, 100)], 0, 3),
        ([waiting(32, 1)], 0, 0),
        ([waiting(1, 6), waiting(2, 2)], 2, 0.125),
    ],
)
def test_what_waits_goes_to_the_smallest_nodes_that_hold_it(
    needs: list[Need], small: float, large: float
) -> None:
    assert demands(needs, [LARGE, SMALL], group_of) == pytest.approx(
        {"small": small, "large": large}
    )


def test_what_runs_counts_where_it_runs_and_comes_first() -> None:
    running = Need(TASK, {Kind.MEMORY: 4e9}, node="small/a")
    found = demands(
        [waiting(4, 2), running, running._replace(node="gone/b")], [SMALL, LARGE], group_of
    )
    assert found == {"small": 2, "large": 0.25}


def test_a_preference_comes_before_size_and_none_leaves_it_to_size() -> None:
    needs = [waiting(1, 2)]
    assert demands(needs, [SMALL, LARGE], group_of, lambda task: ["large", "small"])["small"] == 0
    assert demands(needs, [SMALL, LARGE], group_of, lambda task: ())["large"] == 0


def test_while_nobody_knows_what_a_node_has_a_task_fills_it() -> None:
    unknown = Supply("unknown", None, most=2)
    assert demands([waiting(1, 9)], [unknown], group_of) == {"unknown": 2}


def test_tasks_that_are_not_sized_fill_a_slot_or_else_a_node() -> None:
    unsized = Need(TASK, {}, 3)
    assert demands([unsized], [SMALL], group_of) == {"small": 0.75}
    assert demands([unsized], [SMALL._replace(slots=0, most=5)], group_of) == {"small": 3}
