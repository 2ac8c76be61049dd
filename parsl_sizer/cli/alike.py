"""Which of some profiled nodes are alike, as far as their profiles can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from parsl_sizer.model import NodeProfile, SizerError
from parsl_sizer.placement import grouped, named, node_labels
from parsl_sizer.placement.groups import FEATURES


class Alike(NamedTuple):
    """The groups of nodes by name, the weakest first, and what they were told apart by."""

    groups: Mapping[str, Sequence[str]]
    labels: Mapping[str, Mapping[str, int]]
    features: Sequence[str]
    left_out: Mapping[str, str]
    """Features that say nothing, and why."""

    def group_of(self, node: str) -> str:
        """The name of a node's group."""
        return next(group for group, nodes in self.groups.items() if node in nodes)

    def place_of(self, node: str) -> int:
        """Where a node's group is among the groups."""
        return [*self.groups].index(self.group_of(node))

    def labels_of(self, node: str) -> Mapping[str, int]:
        """The labels of a node's group."""
        return self.labels[self.group_of(node)]


def alike(profiles: Sequence[NodeProfile], by: Sequence[str] | None) -> Alike:
    """The groups of these nodes, by the features in `by` or else by the usual ones.

    What was measured in one way here and in another there cannot be compared.
    """
    left_out = {
        feature: why
        for feature in (FEATURES if by is None else by)
        if (why := _why_not(feature, profiles)) is not None
    }
    if by is not None and left_out:
        feature, why = next(iter(left_out.items()))
        raise SizerError(f"Nodes cannot be compared by {feature}: {why}.")
    features = [feature for feature in (by or FEATURES) if feature not in left_out]
    known = {
        profile.name: {
            name: amount for name, amount in profile.features.items() if name not in left_out
        }
        for profile in profiles
    }
    groups = named(grouped(known, features))
    return Alike(groups, node_labels(groups, known), features, left_out)


def _why_not(feature: str, profiles: Sequence[NodeProfile]) -> str | None:
    """Why nodes cannot be compared by a feature; None if they can."""
    for profile in profiles:
        if feature not in profile.features:
            return f"it is not known of {profile.name}"
    ways: dict[str, str] = {}
    for profile in profiles:
        ways.setdefault(profile.methods.get(feature, ""), profile.name)
    if len(ways) > 1:
        (one, here), (other, there) = [*ways.items()][:2]
        return (
            f"it was measured in two ways, of {here} by {one!r} and of {there} by {other!r}; "
            "parsl-sizer profile --built-in is the same everywhere"
        )
    return None
