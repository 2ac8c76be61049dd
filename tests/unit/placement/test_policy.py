"""Where tasks go, by each policy, on cases worked out by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from parsl_sizer.model import Attempt, Ending, Kind, Node, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.placement import POLICIES, Policy, UnknownPolicy, policy

CAPACITY = Resources(cores=8, memory=32e9)
LABELS = {
    "old": {"cpu": 1, "memory": 1, "io": 1},
    "mid": {"cpu": 2, "memory": 2, "io": 1},
    "new": {"cpu": 3, "memory": 3, "io": 1},
}
NODES = ("new1", "old1", "mid1", "old2", "new2", "mid2")
"""In the order in which they join."""


@dataclass(frozen=True)
class At:
    """A node with room."""

    name: str
    load: float = 0.0

    @property
    def group(self) -> str:
        return self.name[:3]


def made(name: str) -> Policy:
    found = policy(name, LABELS)
    assert found is not None
    for node in NODES:
        found.joined(Node(node, CAPACITY, group=node[:3]))
    return found


def taught(name: str = "tarema") -> Policy:
    """Three categories, with a third of the tasks each."""
    found = made(name)
    for category, cores, memory in (("light", 0.2, 1e8), ("usual", 1.0, 1e9), ("heavy", 2.0, 9e9)):
        for _ in range(5):
            found.learn(done(category, cores, memory))
    found.learn(done("odd", 0.1, 9.5e9))
    return found


def done(category: str, cores: float, memory: float) -> Outcome:
    used = Usage({Kind.MEMORY: memory}, 10.0, 10.0 * cores)
    return Outcome(Attempt(TaskInfo(0, category), 1, {}), Ending.DONE, usage=used)


def placed(found: Policy, category: str, places: Iterable[At]) -> str:
    return found.choose(TaskInfo(1, category), list(places))


ALL = [At(name) for name in sorted(NODES)]


def test_round_robin_takes_the_next_in_the_list_that_has_room() -> None:
    found = made("round-robin")
    assert [placed(found, "any", ALL) for _ in range(7)] == [*NODES, NODES[0]]
    assert placed(found, "any", [At("new1"), At("new2")]) == "new2"
    assert placed(found, "any", ALL) == "mid2"


def test_fair_takes_the_node_with_the_least_load() -> None:
    found = made("fair")
    assert placed(found, "any", [At("new1", 0.5), At("mid1", 0.2), At("old1", 0.25)]) == "mid1"
    assert placed(found, "any", ALL) == NODES[0]


def test_fill_nodes_stays_with_a_node_until_it_is_full() -> None:
    found = made("fill-nodes")
    assert placed(found, "any", [At("old1"), At("new1", 0.9), At("mid1")]) == "new1"
    assert placed(found, "any", [At("mid1"), At("old1", 0.3)]) == "old1"


@pytest.mark.parametrize("name", ["sjfn", "shortest-job-fastest-node"])
def test_the_fastest_node_is_the_first_of_the_strongest_group(name: str) -> None:
    found = made(name)
    assert found.order == "shortest-first"
    assert placed(found, "any", [At("new1", 0.9), *ALL[:3]]) == "new1"
    assert placed(found, "any", [At("old1"), At("mid2"), At("mid1", 0.5)]) == "mid1"


def test_a_task_goes_to_the_group_with_its_labels() -> None:
    found = taught()
    assert [placed(found, category, ALL)[:3] for category in ("light", "usual", "heavy")] == [
        "old",
        "mid",
        "new",
    ]


def test_without_room_there_it_goes_to_the_next_nearest_and_of_these_to_the_stronger() -> None:
    found = taught()
    assert placed(found, "heavy", [At("old1"), At("mid1", 0.9)]) == "mid1"
    assert placed(found, "light", [At("new1"), At("mid1", 0.9)]) == "mid1"
    assert placed(found, "usual", [At("old1"), At("new1", 0.9)]) == "new1"


def test_of_groups_at_the_same_distance_the_most_powerful_is_taken() -> None:
    """Labels 1 and 3: four from no group, two from each."""
    assert placed(taught(), "odd", ALL)[:3] == "new"


def test_within_a_group_the_node_with_the_least_load_is_taken() -> None:
    found = taught()
    assert placed(found, "heavy", [At("new1", 0.5), At("new2", 0.25), At("old1")]) == "new2"


def test_an_unknown_task_goes_to_the_node_with_the_least_load() -> None:
    assert placed(taught(), "never seen", [At("new1", 0.2), At("old1", 0.1)]) == "old1"


def test_a_node_that_left_has_no_say_in_labels() -> None:
    """With the strong group gone, two thirds of what is left is weak."""
    found = taught()
    for name in ("new1", "new2", "mid2"):
        found.left(name)
    rest = [At("old1"), At("old2"), At("mid1")]
    assert placed(found, "usual", rest)[:3] == "old"
    assert placed(found, "heavy", rest)[:3] == "mid"


def test_groups_without_labels_come_last() -> None:
    found = taught()
    found.joined(Node("xyz1", CAPACITY, group="xyz"))
    assert placed(found, "light", [At("xyz1"), At("new1", 0.9)]) == "new1"
    assert placed(found, "light", [At("xyz1", 0.9)]) == "xyz1"


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "any"])
def test_every_policy_chooses_one_of_the_places(name: str) -> None:
    found = taught(name)
    for category in ("light", "heavy", "unknown"):
        for place in ALL:
            assert placed(found, category, [place]) == place.name


def test_an_unknown_policy_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UnknownPolicy, match=r"'best' is no placement; there is 'any', 'tarema'"):
        policy("best")
