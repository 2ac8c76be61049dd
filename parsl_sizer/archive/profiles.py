"""A node's profile as a row of a table, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping

from parsl_sizer.model import NodeProfile

from .base import Refused
from .rows import clean

COLUMNS = ("executor", "host", "measured_at", "features", "methods")
MOST = 1e18

Row = tuple[str, str, float, str, str]


def profile_row(profile: NodeProfile) -> Row:
    """The values of a profile, in the order of `COLUMNS`; raises `Refused`."""
    features = {name: float(amount) for name, amount in profile.features.items()}
    for name, amount in features.items():
        if not -MOST <= amount <= MOST:
            raise Refused(f"The profile of {profile.name} says {amount} of {name}: that cannot be.")
    if not math.isfinite(profile.measured_at):
        raise Refused(f"The profile of {profile.name} is of the time {profile.measured_at}.")
    return (
        clean(profile.executor or ""),
        clean(profile.host),
        float(profile.measured_at),
        json.dumps(features, sort_keys=True),
        json.dumps(dict(profile.methods), sort_keys=True),
    )


def profile_of(
    executor: str, host: str, measured_at: float, features: str, methods: str
) -> NodeProfile:
    """The profile in a row that has the values of `COLUMNS`."""
    amounts: Mapping[str, float] = json.loads(features)
    return NodeProfile(host, amounts, json.loads(methods), measured_at, executor or None)


def newest(profiles: Iterable[NodeProfile]) -> list[NodeProfile]:
    """Of those of one name the newest, in the order of the names."""
    latest: dict[str, NodeProfile] = {}
    for profile in profiles:
        known = latest.get(profile.name)
        if known is None or profile.measured_at > known.measured_at:
            latest[profile.name] = profile
    return [latest[name] for name in sorted(latest)]
