"""The labels of groups and of tasks, on cases worked out by hand."""

from __future__ import annotations

import math

import pytest

from parsl_sizer.model import Attempt, Ending, Kind, Node, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.placement.labels import TaskLabels, capacities, node_labels, usage

GROUPS = {"old": {"cpu": 1, "io": 1}, "mid": {"cpu": 2, "io": 1}, "new": {"cpu": 3, "io": 1}}
EVEN = {group: {"cpu": 40.0, "io": 5.0} for group in GROUPS}


def taught(capacity: dict[str, dict[str, float]], *cores: float) -> TaskLabels:
    """Tasks with such CPU use, each of its own category."""
    tasks = TaskLabels(GROUPS, capacity)
    for use in cores:
        tasks.learn(f"{use:g}", {"cpu": use})
    return tasks


def labels_of(tasks: TaskLabels, *cores: float) -> list[int]:
    found = [tasks.of(f"{use:g}") for use in cores]
    return [labels["cpu"] for labels in found if labels is not None]


def test_groups_are_ranked_feature_by_feature() -> None:
    profiles = {
        "a": {"cpu_single": 500.0, "memory_bandwidth": 1e10},
        "b": {"cpu_single": 300.0, "memory_bandwidth": 2e10},
        "c": {"cpu_single": 400.0, "memory_bandwidth": 3e10},
    }
    assert node_labels({"A": ["a"], "B": ["b"], "C": ["c"]}, profiles) == {
        "A": {"cpu": 3, "memory": 1},
        "B": {"cpu": 1, "memory": 2},
        "C": {"cpu": 2, "memory": 3},
    }


def test_groups_that_are_about_equal_share_a_label() -> None:
    profiles = {
        "a": {"cpu_single": 500.0, "io_read": 480.0},
        "b": {"cpu_single": 510.0, "io_read": 483.0},
        "c": {"cpu_single": 700.0, "io_read": 481.0},
    }
    labels = node_labels({"A": ["a"], "B": ["b"], "C": ["c"]}, profiles)
    assert labels == {"A": {"cpu": 1, "io": 1}, "B": {"cpu": 1, "io": 1}, "C": {"cpu": 2, "io": 1}}


def test_small_steps_do_not_add_up_to_one_label() -> None:
    """Each is within noise of the next, the last is not within noise of the first."""
    profiles = {name: {"cpu_single": 100 * 1.04**n} for n, name in enumerate("abc")}
    labels = node_labels({name: [name] for name in profiles}, profiles)
    assert [labels[name]["cpu"] for name in "abc"] == [1, 1, 2]


def test_what_is_not_known_of_some_node_has_no_label() -> None:
    profiles = {"a": {"cpu_single": 500.0, "io_read": 1.0}, "b": {"cpu_single": 300.0}}
    assert node_labels({"A": ["a"], "B": ["b"]}, profiles) == {"A": {"cpu": 2}, "B": {"cpu": 1}}
    assert node_labels({"A": ["a"], "B": ["x"]}, profiles) == {"A": {}, "B": {}}


def test_tasks_are_divided_as_the_cores_are() -> None:
    uses = [n / 10 for n in range(1, 11)]
    even = labels_of(taught(EVEN, *uses), *uses)
    assert even == [1, 1, 1, 2, 2, 2, 2, 3, 3, 3]
    capacity = {"old": {"cpu": 54.0}, "mid": {"cpu": 32.0}, "new": {"cpu": 14.0}}
    uneven = labels_of(taught(capacity, *uses), *uses)
    assert uneven == [1, 1, 1, 1, 1, 2, 2, 2, 2, 3]


def test_the_more_tasks_a_category_has_the_more_it_counts() -> None:
    tasks = taught(EVEN, 1.0, 2.0, 3.0)
    assert labels_of(tasks, 1.0, 2.0, 3.0) == [1, 2, 3]
    for _ in range(100):
        tasks.learn("3", {"cpu": 3.0})
    assert labels_of(tasks, 1.0, 2.0, 3.0) == [1, 1, 2]


def test_a_category_stands_in_the_middle_of_its_tasks() -> None:
    """Those from the 40th to the 70th of a hundred stand at 0.55."""
    tasks = TaskLabels(GROUPS, EVEN)
    for category, use, count in (("a", 1.0, 40), ("b", 2.0, 30), ("c", 3.0, 30)):
        for _ in range(count):
            tasks.learn(category, {"cpu": use})
    assert [tasks.of(name) for name in "abc"] == [{"cpu": 1}, {"cpu": 2}, {"cpu": 3}]
    assert labels_of(taught(EVEN, 1.0, 1.0, 1.0), 1.0) == [2]


def test_a_category_goes_by_its_mean() -> None:
    tasks = taught(EVEN, 1.0, 2.0, 3.0)
    tasks.learn("both", {"cpu": 1.0})
    tasks.learn("both", {"cpu": 3.1})
    assert tasks.of("both") == {"cpu": 2}


def test_a_feature_in_which_groups_do_not_differ_says_the_same_of_all_tasks() -> None:
    tasks = TaskLabels(GROUPS, EVEN)
    for name, rate in (("a", 0.0), ("b", 10.0), ("c", 1e9)):
        tasks.learn(name, {"io": rate})
    assert [tasks.of(name) for name in "abc"] == [{"io": 1}] * 3


def test_unknown_categories_and_unknown_uses_have_no_labels() -> None:
    tasks = taught(EVEN, 1.0)
    assert tasks.of("never seen") is None
    tasks.learn("unmeasured", {})
    assert tasks.of("unmeasured") is None
    tasks.learn("broken", {"cpu": math.nan, "memory": -1.0})
    assert tasks.of("broken") is None


def test_groups_may_change_and_what_was_learned_stays() -> None:
    tasks = taught(EVEN, 1.0, 2.0, 3.0)
    tasks.among({"old": {"cpu": 1}, "new": {"cpu": 2}}, {"old": {"cpu": 70}, "new": {"cpu": 30}})
    assert labels_of(tasks, 1.0, 2.0, 3.0) == [1, 1, 2]


def test_what_a_group_has_is_summed_over_its_nodes() -> None:
    nodes = [Node(f"n{n}", Resources(cores=8, memory=32e9), group="g") for n in range(3)]
    assert capacities(nodes) == {"g": {"cpu": 24.0, "memory": 96e9, "io": 3.0}}


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        (Usage({Kind.CORES: 2.0, Kind.MEMORY: 5e9}, 10.0, 12.0), {"cpu": 1.2, "memory": 5e9}),
        (Usage({Kind.CORES: 2.0}, 10.0), {"cpu": 2.0}),
        (Usage({}, 0.0, 0.0), {}),
    ],
)
def test_use_is_what_was_measured(used: Usage, expected: dict[str, float]) -> None:
    attempt = Attempt(TaskInfo(1, "align"), 1, {})
    assert usage(Outcome(attempt, Ending.DONE, usage=used)) == expected
