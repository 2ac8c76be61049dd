"""How strong each of several groups is: its labels, for a placement that goes by them.

They are of what `parsl-sizer profile` has measured, if the archive knows that of every
group, measured in the same way. Otherwise what a node has stands in for what it can do: cores
for their speed, memory for its bandwidth.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from parsl_sizer.engines.several import Several
from parsl_sizer.model import NodeProfile, Resources, TaskInfo
from parsl_sizer.placement import Policy, node_labels
from parsl_sizer.placement.labels import Labels
from parsl_sizer.placement.policy import Tarema


class Labelling:
    """Tells a policy the labels of groups, whenever what is known of these changes."""

    def __init__(self, policy: Policy, groups: Several) -> None:
        self.policy = policy
        self.profiles: Sequence[NodeProfile] = ()
        self._groups = groups
        self._labels: Mapping[str, Labels] = {}
        groups.preference = self._preference

    def look(self) -> None:
        """Nodes may have come or gone."""
        relabel = getattr(self.policy, "relabel", None)
        labels = group_labels(self._groups.capacities(), self.profiles)
        if relabel is not None and labels != self._labels:
            self._labels = labels
            relabel(labels)

    def _preference(self, task: TaskInfo) -> Collection[str]:
        if not isinstance(self.policy, Tarema):
            return ()
        return self.policy.priorities(task, self._groups.parts)


def group_labels(
    rooms: Mapping[str, Resources], profiles: Sequence[NodeProfile]
) -> Mapping[str, Labels]:
    """The labels of groups whose nodes have this, and of which these were profiled.

    >>> rooms = {"big": Resources(cores=4, memory=64e9), "fast": Resources(cores=4, memory=16e9)}
    >>> group_labels(rooms, ())
    {'big': {'cpu': 1, 'memory': 2}, 'fast': {'cpu': 1, 'memory': 1}}
    >>> speeds = {"big": 300.0, "fast": 900.0}
    >>> profiles = [NodeProfile("h", {"cpu_single": speeds[one]}, executor=one) for one in speeds]
    >>> group_labels(rooms, profiles)
    {'big': {'cpu': 1}, 'fast': {'cpu': 2}}
    >>> other = NodeProfile("h", {"sysbench_cpu_single": 9.0}, executor="fast")
    >>> group_labels(rooms, [profiles[0], other])  # there is nothing to compare
    {'big': {'cpu': 1, 'memory': 2}, 'fast': {'cpu': 1, 'memory': 1}}
    """
    measured = {
        group: [profile.name for profile in profiles if profile.executor == group]
        for group in rooms
    }
    labels = node_labels(measured, {profile.name: profile.features for profile in profiles})
    if any(labels.values()):
        return labels
    facts = {
        group: {"cpu_single": room.cores, "memory_bandwidth": room.memory}
        for group, room in rooms.items()
    }
    return node_labels({group: [group] for group in rooms}, facts)
