"""How strong is a group of nodes, and how demanding is a task? Labels 1, 2, 3 ...

A group has a label per feature, its rank among the groups. A category of tasks has a label per
feature, too: all tasks seen are put in the order of their use and divided in proportion to
what the groups have, so that if a third of all cores is in the weakest group, the third of the
tasks with the least CPU use has label 1.

J. Bader et al., "Tarema", IEEE Big Data 2021, sections IV-B and IV-C.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence

from parsl_sizer.model import Kind, Node, Outcome

from .groups import NOISE, Profile

MEASURED = {
    "cpu": ("cpu_single",),
    "memory": ("memory_bandwidth",),
    "io": ("io_read", "io_write", "io_random_read", "io_random_write"),
}
"""What of a profile each label is of; of several, their geometric mean counts."""

Labels = Mapping[str, int]
"""A label per feature. A feature of which nothing is known is absent."""

BIN = 1.01
"""Uses are counted in bins of 1 %, so that memory stays bounded however many tasks there are."""
NEWS = 1.05
"""Labels are worked out anew when 5 % more tasks are known."""


def node_labels(
    groups: Mapping[str, Sequence[str]], profiles: Mapping[str, Profile]
) -> dict[str, dict[str, int]]:
    """The labels of each group, by its name; `groups` names the nodes of each.

    Groups that are about equal in a feature share its label, so a feature in which all are
    has no say in where tasks go. What is not known of some node has no label.

    >>> old, new = {"cpu_single": 367, "io_read": 481}, {"cpu_single": 525, "io_read": 480}
    >>> node_labels({"old": ["a"], "new": ["b"]}, {"a": old, "b": new})
    {'old': {'cpu': 1, 'io': 1}, 'new': {'cpu': 2, 'io': 1}}
    """
    labels: dict[str, dict[str, int]] = {group: {} for group in groups}
    for feature, measured in MEASURED.items():
        members = {
            group: [profiles.get(node, {}) for node in nodes] for group, nodes in groups.items()
        }
        known = [
            name
            for name in measured
            if all(profile.get(name, 0) > 0 for some in members.values() for profile in some)
        ]
        if not known or not all(members.values()):
            continue
        strength = {group: _strength(some, known) for group, some in members.items()}
        for group, label in _ranked(strength).items():
            labels[group][feature] = label
    return labels


def _strength(profiles: Sequence[Profile], names: Sequence[str]) -> float:
    """The geometric mean of what was measured."""
    logs = [math.log(profile[name]) for profile in profiles for name in names]
    return math.exp(math.fsum(logs) / len(logs))


def _ranked(strength: Mapping[str, float]) -> dict[str, int]:
    labels, label, last = {}, 0, 0.0
    for group, value in sorted(strength.items(), key=lambda item: item[1]):
        if value > last * (1 + NOISE):
            label, last = label + 1, value
        labels[group] = label
    return labels


def capacities(nodes: Iterable[Node]) -> dict[str, dict[str, float]]:
    """What each group has of each feature: cores, bytes of memory, nodes to read and write on."""
    found: dict[str, dict[str, float]] = {}
    for node in nodes:
        has = found.setdefault(node.group, dict.fromkeys(MEASURED, 0.0))
        has["cpu"] += node.capacity.cores
        has["memory"] += node.capacity.memory
        has["io"] += 1.0
    return found


def usage(outcome: Outcome) -> dict[str, float]:
    """What an attempt made use of: CPU in cores on average, memory in bytes at most.

    Nothing measures what a task reads and writes, so that is not known.
    """
    used = outcome.usage
    found = {}
    if used.cpu_s is not None and used.wall_s > 0:
        found["cpu"] = used.cpu_s / used.wall_s
    elif Kind.CORES in used.peak:
        found["cpu"] = used.peak[Kind.CORES]
    if Kind.MEMORY in used.peak:
        found["memory"] = used.peak[Kind.MEMORY]
    return found


class TaskLabels:
    """Learns what tasks use and labels their categories; unknown ones have no labels.

    `labels` are those of the groups, `capacity` is what each of them has of each feature. Both
    may be replaced as nodes come and go; what was learned stays.

    >>> groups = {"old": {"cpu": 1}, "new": {"cpu": 2}}
    >>> tasks = TaskLabels(groups, {"old": {"cpu": 60}, "new": {"cpu": 40}})
    >>> for category, cores in (("index", 0.3), ("sort", 0.9), ("align", 2.1)):
    ...     tasks.learn(category, {"cpu": cores})
    >>> tasks.of("index"), tasks.of("align"), tasks.of("merge")
    ({'cpu': 1}, {'cpu': 2}, None)
    """

    def __init__(
        self,
        labels: Mapping[str, Labels] | None = None,
        capacity: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        self._uses: dict[str, dict[int, int]] = {}  # per feature, tasks by bin
        self._means: dict[str, dict[str, tuple[int, float]]] = {}  # per category and feature
        self._shares: dict[str, list[float]] = {}  # per feature, the upper ends of intervals
        self._ranks: dict[str, _Ranks] = {}
        self._learned = 0
        self._good_for = -1.0
        self.among(labels or {}, capacity or {})

    def among(
        self, labels: Mapping[str, Labels], capacity: Mapping[str, Mapping[str, float]]
    ) -> None:
        """From now on tasks are labelled for these groups."""
        self._shares = {}
        for feature in dict.fromkeys(itertools.chain.from_iterable(labels.values())):
            has: dict[int, float] = {}
            for group, some in labels.items():
                if feature in some:
                    amount = capacity.get(group, {}).get(feature, 0.0)
                    has[some[feature]] = has.get(some[feature], 0.0) + amount
            total = math.fsum(has.values())
            if total > 0:
                upto = itertools.accumulate(has[label] / total for label in sorted(has))
                self._shares[feature] = list(upto)[:-1]
        self._good_for = -1.0

    def learn(self, category: str, used: Mapping[str, float]) -> None:
        """Take in what one task made use of."""
        means = self._means.setdefault(category, {})
        for feature, amount in used.items():
            if not 0 <= amount < math.inf:
                continue
            count, mean = means.get(feature, (0, 0.0))
            means[feature] = count + 1, mean + (amount - mean) / (count + 1)
            uses = self._uses.setdefault(feature, {})
            at = _bin(amount)
            uses[at] = uses.get(at, 0) + 1
        self._learned += 1

    def of(self, category: str) -> Labels | None:
        """The labels of a category; None while no task of it is known."""
        means = self._means.get(category)
        if not means:
            return None
        if self._learned > self._good_for:
            self._ranks = {feature: _Ranks(uses) for feature, uses in self._uses.items()}
            self._good_for = self._learned * NEWS
        return {
            feature: 1 + bisect_right(shares, self._ranks[feature].of(means[feature][1]))
            for feature, shares in self._shares.items()
            if feature in means and feature in self._ranks
        }


class _Ranks:
    """Where a use stands among all uses seen, from 0 to 1.

    The paper's intervals have their bounds in common, and of few categories many tasks are at
    a bound. So a use stands in the middle of its like: of tasks that are all alike, at 0.5.
    """

    def __init__(self, uses: Mapping[int, int]) -> None:
        self._bins = sorted(uses)
        self._upto = [0, *itertools.accumulate(uses[at] for at in self._bins)]

    def of(self, amount: float) -> float:
        at = _bin(amount)
        below = self._upto[bisect_left(self._bins, at)]
        with_equals = self._upto[bisect_right(self._bins, at)]
        return (below + with_equals) / 2 / self._upto[-1]


def _bin(amount: float) -> int:
    return math.floor(math.log(amount) / math.log(BIN)) if amount > 0 else -(10**9)
