"""Exhaustive bucketing: of ten sets of evenly spaced buckets the cheapest."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .base import Family, Setting
from .bucketing import Bucketing
from .per_kind import PerKind

if TYPE_CHECKING:
    from .bucketing import Column

MOST = 10
"""The most parts into which the range of the peaks is divided."""


class ExhaustiveBucketing(Bucketing):
    """Buckets at even parts of the largest peak and at powers of two below the first of them.

    >>> from parsl_sizer.model import Kind, TaskInfo
    >>> strategy = ExhaustiveBucketing(Kind.MEMORY, deterministic=True)
    >>> task = TaskInfo(1, "align")
    >>> for peak in [1.0e9, 1.1e9, 8.0e9, 8.1e9] * 5:
    ...     strategy.observe(task, peak, 60.0)
    >>> strategy.values
    [1100000000.0, 8100000000.0]
    >>> strategy.predict(task, 64e9), strategy.grow(task, [1.1e9], 64e9)
    (1100000000.0, 8100000000.0)

    T. S. Phung and D. Thain, "Adaptive Task-Oriented Resource Allocation for Large Dynamic
    Workflows on Opportunistic Resources", IPDPS 2024.
    """

    def ends(self, peaks: Column, significance: Column) -> list[int]:
        return exhaustive_ends(
            peaks, significance, unit=self.unit, deterministic=self.deterministic
        )


def exhaustive_ends(
    peaks: Column, significance: Column, *, unit: float, deterministic: bool = False
) -> list[int]:
    """The indices at which the buckets of the cheapest set end; of equals that of fewest parts."""
    import numpy as np

    # Lists: what follows looks at some twenty points of each set, one by one.
    points = peaks.tolist()
    weight = np.cumsum(significance).tolist()
    moment = np.cumsum(significance * peaks).tolist()
    cost = cost_in_order if deterministic else cost_by_draw
    limits = (candidates(points[-1], parts, unit) for parts in range(1, MOST + 1))
    # Each set as the numbers of points up to its buckets' ends; many of the ten are the same.
    sets = dict.fromkeys(
        tuple(sorted({bisect_right(points, limit) for limit in some} - {0})) for some in limits
    )

    def total(counts: tuple[int, ...]) -> float:
        values = [points[count - 1] for count in counts]
        weights = _differences([weight[count - 1] for count in counts])
        moments = _differences([moment[count - 1] for count in counts])
        shares = [own / weight[-1] for own in weights]
        means = [own / of for own, of in zip(moments, weights, strict=True)]
        return cost(values, shares, means)

    return [count - 1 for count in min(sets, key=total)]


def candidates(largest: float, parts: int, unit: float) -> list[float]:
    """Powers of two units strictly below the last within a part, then the ends of all parts.

    >>> candidates(20.0, 2, 1.0)
    [1.0, 2.0, 4.0, 10.0, 20.0]
    """
    part = largest / parts / unit
    powers = math.floor(math.log2(part)) if part >= 1 else 0
    found = [unit * 2.0**power for power in range(powers)]
    return found + [largest * i / parts for i in range(1, parts)] + [largest]


def cost_by_draw(values: Sequence[float], shares: Sequence[float], means: Sequence[float]) -> float:
    """The expected waste of a task if buckets are drawn by their shares.

    The paper's W[i][j] is the waste of a task of bucket i from its being tried at bucket
    j on: v_j - E_i if j >= i, else v_j and the mean of the W[i][k] with k > j by their
    shares. The sum over j by the shares comes to the mean value of the buckets from i
    on, less E_i, and for every smaller bucket its value times the chance that it is
    drawn from among itself and the larger ones; so one pass gives the sum over i too.

    >>> cost_by_draw([1.0, 4.0], [0.5, 0.5], [1.0, 4.0])
    1.0
    """
    total = above = held = 0.0  # from the largest down: sums over the buckets above, of p and p v
    for value, share, mean in zip(reversed(values), reversed(shares), reversed(means), strict=True):
        held += share * value
        own_and_above = share + above
        total += share * (held / own_and_above - mean + value * above / own_and_above)
        above = own_and_above
    return total


def cost_in_order(
    values: Sequence[float], shares: Sequence[float], means: Sequence[float]
) -> float:
    """The expected waste of a task if buckets are taken in order.

    >>> cost_in_order([1.0, 4.0], [0.5, 0.5], [1.0, 4.0])
    0.5
    """
    total = held = 0.0
    for value, share, mean in zip(values, shares, means, strict=True):
        held += value
        total += share * (held - mean)
    return total


def _differences(sums: list[float]) -> list[float]:
    return [after - before for before, after in zip([0.0, *sums], sums, strict=False)]


def build(setting: Setting, *, deterministic: bool = False) -> Family:
    """The cheapest of ten sets of evenly spaced buckets, drawn by their share of recent tasks."""
    return lambda category: PerKind.of(
        setting.kinds,
        lambda kind: ExhaustiveBucketing(kind, deterministic=deterministic, seed=f"{setting.seed}"),
    )
