"""Which nodes are alike? Groups of nodes by what was measured of them.

k-means++ over standardised features, once for every number of groups; the silhouette score
says which number fits. A *profile* is what is known of a node: a number per feature, larger
is better.

J. Bader et al., "Tarema: Adaptive Resource Allocation for Scalable Scientific Workflows in
Heterogeneous Clusters", IEEE Big Data 2021, section IV-B. P. J. Rousseeuw, "Silhouettes",
Journal of Computational and Applied Mathematics 20, 1987.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Points = NDArray[np.float64]
    Assigned = NDArray[np.intp]

Profile = Mapping[str, float]

FEATURES = (
    "cpu_single",
    "memory_bandwidth",
    "io_read",
    "io_write",
    "io_random_read",
    "io_random_write",
)
"""What nodes are grouped by unless other features are named: the paper's."""

NOISE = 0.05
"""Two nodes that differ by less, as a share of the mean, may be the same node measured twice.
So a feature is divided by its standard deviation or by this share of its mean, whichever is
more: else 107 against 108 operations a second would count as much as 367 against 525."""

MOST = 8
"""The most groups there are; more would be labels that nobody tells apart."""
STARTS, STEPS = 10, 100
"""k-means finds what is near where it starts: it starts so often, and stops after so many
steps at the latest."""


def grouped(
    profiles: Mapping[str, Profile],
    features: Sequence[str] | None = None,
    *,
    most: int = MOST,
    seed: int = 0,
) -> tuple[tuple[str, ...], ...]:
    """The names of the nodes by group, the weakest group first, names in order.

    Without `features` nodes are grouped by those of `FEATURES` that are known of all of them;
    nodes of which nothing is known in common are one group. The same profiles give the same
    groups, in whatever order they come.

    >>> speeds = {"a": 367, "b": 525, "c": 384, "d": 523}
    >>> grouped({name: {"cpu_single": speed} for name, speed in speeds.items()})
    (('a', 'c'), ('b', 'd'))
    """
    names = sorted(profiles)
    if not names:
        return ()
    if features is None:
        features = [f for f in FEATURES if all(f in profile for profile in profiles.values())]
    points = _standardised(names, profiles, features)
    if not _differ(points):
        return (tuple(names),)
    assigned = _best(points, min(most, len(names)), Random(seed))
    strength = [float(points[assigned == group].mean()) for group in range(assigned.max() + 1)]
    order = sorted(range(len(strength)), key=lambda group: strength[group])
    return tuple(
        tuple(name for name, at in zip(names, assigned, strict=True) if at == group)
        for group in order
    )


def named(groups: Sequence[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The groups by the names that the paper gives them: 1 is the weakest.

    >>> named((("a", "c"), ("b",)))
    {'1': ('a', 'c'), '2': ('b',)}
    """
    return {str(number): tuple(group) for number, group in enumerate(groups, start=1)}


def _standardised(
    names: Sequence[str], profiles: Mapping[str, Profile], features: Sequence[str]
) -> Points:
    import numpy as np

    rows = [[_value(name, profiles[name], feature) for feature in features] for name in names]
    values = np.array(rows, dtype=float).reshape(len(names), len(features))
    mean = values.mean(axis=0)
    scale = np.maximum(values.std(axis=0), NOISE * np.abs(mean))
    points: Points = (values - mean) / np.where(scale > 0, scale, 1.0)
    return points


def _value(name: str, profile: Profile, feature: str) -> float:
    value = profile.get(feature)
    if value is None:
        raise ValueError(
            f"The profile of node {name!r} has no {feature!r}; profile it anew, or group by "
            f"what is known of all nodes."
        )
    if not math.isfinite(value):
        raise ValueError(f"{feature} of node {name!r} must be a finite number, not {value!r}")
    return value


def _differ(points: Points) -> bool:
    """Whether some feature has nodes further apart than `NOISE` makes them."""
    return bool(points.size) and bool((points.max(axis=0) - points.min(axis=0) > 1.0).any())


def _best(points: Points, most: int, random: Random) -> Assigned:
    """The grouping with the highest silhouette score; of equal ones that with fewest groups."""
    import numpy as np

    best, highest = np.arange(len(points)), -math.inf  # two nodes that differ are two groups
    for count in range(2, min(most, len(points) - 1) + 1):
        assigned = _k_means(points, count, random)
        score = _silhouette(points, assigned)
        if score > highest + 1e-9:
            best, highest = assigned, score
    return best


def _k_means(points: Points, count: int, random: Random) -> Assigned:
    """The grouping into so many with the least distance to the centres, of several tries."""
    import numpy as np

    best, least = np.zeros(len(points), dtype=np.intp), math.inf
    for _ in range(STARTS):
        centres = _seeds(points, count, random)
        assigned = best
        for step in range(STEPS):
            nearest = _squares(points, centres).argmin(axis=1)
            if step and (nearest == assigned).all():
                break
            assigned = nearest
            for group in range(len(centres)):
                if (members := points[assigned == group]).size:
                    centres[group] = members.mean(axis=0)
        distance = float(_squares(points, centres).min(axis=1).sum())
        if distance < least - 1e-12:
            best, least = np.unique(assigned, return_inverse=True)[1], distance
    return best


def _seeds(points: Points, count: int, random: Random) -> Points:
    """Points to start from, each drawn by its squared distance from those before (k-means++)."""
    import numpy as np

    chosen = [random.randrange(len(points))]
    while len(chosen) < count:
        squares = _squares(points, points[chosen]).min(axis=1)
        if not squares.any():  # there are fewer different points
            break
        chosen.append(random.choices(range(len(points)), weights=squares.tolist())[0])
    return np.array(points[chosen])


def _squares(points: Points, centres: Points) -> Points:
    squares: Points = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return squares


def _silhouette(points: Points, assigned: Assigned) -> float:
    """How much nearer nodes are to their own group than to the next one, on average: -1 to 1.

    A node that is a group by itself counts as 0.
    """
    import numpy as np

    sizes = np.bincount(assigned)
    if len(sizes) < 2:
        return -1.0
    total = 0.0
    for point, own in zip(points, assigned, strict=True):
        if sizes[own] == 1:
            continue
        sums = np.bincount(assigned, weights=np.sqrt(((points - point) ** 2).sum(axis=1)))
        within = sums[own] / (sizes[own] - 1)
        apart = np.delete(sums / sizes, own).min()
        total += (apart - within) / max(apart, within) if max(apart, within) > 0 else 0.0
    return float(total / len(points))
