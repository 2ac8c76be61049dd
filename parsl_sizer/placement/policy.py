"""Of the nodes with room, which one does a task go to?

`any` is no policy: the ledger takes the node where least is left over. The others are for
nodes that differ. `tarema` sends each task to the group of nodes whose labels are nearest to
its own, so that demanding tasks are on strong nodes and light ones do not block these; the
rest are the schedulers that it is compared with.

J. Bader et al., "Tarema: Adaptive Resource Allocation for Scalable Scientific Workflows in
Heterogeneous Clusters", IEEE Big Data 2021, sections IV-D and V-E.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from parsl_sizer.model import Node, Outcome, SizerError, TaskInfo

from .labels import Labels, TaskLabels, capacities, usage


class UnknownPolicy(SizerError, ValueError):
    """A placement policy that nobody knows."""


class Place(Protocol):
    """A node that has room for a task, as it is now."""

    @property
    def name(self) -> str: ...

    @property
    def group(self) -> str: ...

    @property
    def load(self) -> float:
        """The largest share of any kind that is claimed."""
        ...


class Policy(Protocol):
    """Says where tasks go.

    Laws: `choose` returns the name of one of the places, of which there is at least one, and
    the task goes there; every place is a node that has joined and not left. What it knows it
    was told: it may be taught outcomes of earlier runs before it is used.
    """

    order: str | None
    """The order of waiting tasks that belongs to it, if any does."""

    def joined(self, node: Node) -> None:
        """A node is here; if it was before, its capacity is stated anew."""
        ...

    def left(self, name: str) -> None:
        """A node is not here any more."""
        ...

    def learn(self, outcome: Outcome) -> None:
        """A task has finished."""
        ...

    def choose(self, task: TaskInfo, places: Sequence[Place]) -> str:
        """The node that this task goes to, of those with room for it."""
        ...


class _Listed:
    """Nodes in the order in which they joined."""

    order: str | None = None

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._numbers: dict[str, int] = {}
        self._joined = 0

    def joined(self, node: Node) -> None:
        self._nodes[node.name] = node
        if node.name not in self._numbers:
            self._joined += 1
            self._numbers[node.name] = self._joined

    def left(self, name: str) -> None:
        self._nodes.pop(name, None)
        self._numbers.pop(name, None)

    def learn(self, outcome: Outcome) -> None:
        """What tasks use has no say."""

    def _least_loaded(self, places: Sequence[Place]) -> Place:
        return min(places, key=lambda place: (place.load, self._numbers[place.name]))


class RoundRobin(_Listed):
    """The next node in the list that has room, as Kubernetes does by default."""

    def __init__(self) -> None:
        super().__init__()
        self._last = 0

    def choose(self, task: TaskInfo, places: Sequence[Place]) -> str:
        numbers = {self._numbers[place.name]: place.name for place in places}
        behind = [number for number in numbers if number > self._last]
        self._last = min(behind or numbers)
        return numbers[self._last]


class Fair(_Listed):
    """The node with the least load, as Yarn and Slurm can be told to."""

    def choose(self, task: TaskInfo, places: Sequence[Place]) -> str:
        return self._least_loaded(places).name


class FillNodes(_Listed):
    """The first node in the list, until it is full."""

    def choose(self, task: TaskInfo, places: Sequence[Place]) -> str:
        return min(places, key=lambda place: self._numbers[place.name]).name


class _Labelled(_Listed):
    """Knows the labels of groups; a group without labels is weaker than any other."""

    def __init__(self, labels: Mapping[str, Labels]) -> None:
        super().__init__()
        self._labels = labels

    def relabel(self, labels: Mapping[str, Labels]) -> None:
        """From now on groups have these labels."""
        self._labels = labels

    def _power(self, group: str) -> int:
        return sum(self._labels.get(group, {}).values())


class ShortestJobFastestNode(_Labelled):
    """The first node of the most powerful group; who waits comes by the shortest time.

    It fills one node after the other, as the authors' own scheduler does.
    """

    order: str | None = "shortest-first"

    def choose(self, task: TaskInfo, places: Sequence[Place]) -> str:
        return min(
            places, key=lambda place: (-self._power(place.group), self._numbers[place.name])
        ).name


class Tarema(_Labelled):
    """The group whose labels are nearest to the task's, there the node with the least load.

    The distance of a group is the sum over the features of the difference of labels. Of
    groups at the same distance the most powerful is taken, which has the largest sum of
    labels. If the nearest group has no room the next one is taken, and so on. A task of an
    unknown category goes to the node with the least load.

    >>> policy = Tarema({"old": {"cpu": 1, "memory": 2}, "new": {"cpu": 2, "memory": 1}})
    >>> policy.distance("old", {"cpu": 2, "memory": 1}), policy.distance("new", {"cpu": 2})
    (2, 0)
    """

    def __init__(self, labels: Mapping[str, Labels]) -> None:
        super().__init__(labels)
        self.tasks = TaskLabels()
        self._is_stale = True

    def joined(self, node: Node) -> None:
        super().joined(node)
        self._is_stale = True

    def left(self, name: str) -> None:
        super().left(name)
        self._is_stale = True

    def relabel(self, labels: Mapping[str, Labels]) -> None:
        super().relabel(labels)
        self._is_stale = True

    def learn(self, outcome: Outcome) -> None:
        self.tasks.learn(outcome.attempt.task.category, usage(outcome))

    def distance(self, group: str, wanted: Labels) -> float:
        """How far a group is from what a task wants; without end if it has no labels."""
        labels = self._labels.get(group)
        if not labels:
            return float("inf")
        return sum(abs(labels[name] - label) for name, label in wanted.items() if name in labels)

    def choose(self, task: TaskInfo, places: Sequence[Place]) -> str:
        if self._is_stale:
            self.tasks.among(self._labels, capacities(self._nodes.values()))
            self._is_stale = False
        wanted = self.tasks.of(task.category)
        if wanted is None:
            return self._least_loaded(places).name
        ranks = {
            group: (self.distance(group, wanted), -self._power(group))
            for group in {place.group for place in places}
        }
        nearest = min(ranks.values())
        return self._least_loaded([p for p in places if ranks[p.group] == nearest]).name


POLICIES: dict[str, Callable[[Mapping[str, Labels]], Policy | None]] = {
    "any": lambda labels: None,
    "tarema": Tarema,
    "round-robin": lambda labels: RoundRobin(),
    "fair": lambda labels: Fair(),
    "fill-nodes": lambda labels: FillNodes(),
    "shortest-job-fastest-node": ShortestJobFastestNode,
    "sjfn": ShortestJobFastestNode,
}
"""All of them by name. Each is made with the labels of the groups."""


def policy(name: str, labels: Mapping[str, Labels] | None = None) -> Policy | None:
    """The policy of this name, for groups with these labels; None is best fit, by the ledger.

    >>> policy("any") is None, type(policy("fair")).__name__
    (True, 'Fair')
    """
    made = POLICIES.get(name)
    if made is None:
        known = ", ".join(map(repr, POLICIES))
        raise UnknownPolicy(f"{name!r} is no placement; there is {known}.")
    return made(labels or {})
