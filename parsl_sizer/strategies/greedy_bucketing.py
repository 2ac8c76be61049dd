"""Greedy bucketing: split the sorted peaks where that saves most, then the halves likewise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Family, Setting
from .bucketing import Bucketing
from .per_kind import PerKind

if TYPE_CHECKING:
    from .bucketing import Column


class GreedyBucketing(Bucketing):
    """Buckets by repeated splitting at the point of the lowest expected waste.

    >>> from parsl_sizer.model import Kind, TaskInfo
    >>> strategy, task = GreedyBucketing(Kind.MEMORY, deterministic=True), TaskInfo(1, "align")
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
        return greedy_ends(peaks, significance, deterministic=self.deterministic)


def greedy_ends(peaks: Column, significance: Column, *, deterministic: bool = False) -> list[int]:
    """The indices at which the buckets end."""
    import numpy as np

    weight = np.concatenate(([0.0], np.cumsum(significance)))
    moment = np.concatenate(([0.0], np.cumsum(significance * peaks)))
    found: list[int] = []
    ranges = [(0, len(peaks))]
    while ranges:
        start, stop = ranges.pop()
        total = weight[stop] - weight[start]
        costs = break_costs(
            peaks[start:stop],
            (weight[start + 1 : stop + 1] - weight[start]) / total,
            (moment[start + 1 : stop + 1] - moment[start]) / total,
            deterministic=deterministic,
        )
        # Of equal costs the last.
        split = stop - int(costs[::-1].argmin())
        if split == stop:
            found.append(stop - 1)
        else:
            ranges += [(split, stop), (start, split)]
    return found


def break_costs(
    peaks: Column, share: Column, moment: Column, *, deterministic: bool = False
) -> Column:
    """The expected waste of a range of points if it is split after each of them.

    `share` is the part of the range's significance up to and with each point, p1;
    `moment` is p1 E1, with E1 the mean of those points. A task from below the break
    drawn into the upper bucket wastes m - E1, one from above drawn into the lower
    wastes b + m - E2, and so on; the deterministic variant never draws.

    >>> import numpy as np
    >>> break_costs(np.array([1.0, 4.0]), np.array([0.5, 1.0]), np.array([0.5, 2.5]))
    array([1. , 1.5])
    """
    largest = peaks[-1]
    above, moment_above = 1.0 - share, moment[-1] - moment
    costs: Column
    if deterministic:
        costs = share * peaks - moment + above * (peaks + largest) - moment_above
    else:
        costs = (
            share * (share * peaks - moment)
            + above * (share * largest - moment)
            + share * (above * (peaks + largest) - moment_above)
            + above * (above * largest - moment_above)
        )
    return costs


def build(setting: Setting, *, deterministic: bool = False) -> Family:
    """Buckets split greedily where that saves most, drawn by their share of recent tasks."""
    return lambda category: PerKind.of(
        setting.kinds,
        lambda kind: GreedyBucketing(kind, deterministic=deterministic, seed=f"{setting.seed}"),
    )
