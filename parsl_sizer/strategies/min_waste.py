"""Min-waste: the first allocation with the least expected waste."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parsl_sizer.model import UnknownStrategy

from .base import Family, Setting
from .first_allocation import FirstAllocation, bin_width
from .per_kind import PerKind

if TYPE_CHECKING:
    from .first_allocation import Column


class MinWaste(FirstAllocation):
    """The first allocation with the least expected waste, then the largest peak seen.

    Of ten tasks nine need 1 GB and one needs 4 GB. Trying all at 1 GB costs 10 GB and
    4 GB more for the one that is retried; 4 GB at once would cost 40 GB.

    >>> from parsl_sizer.model import TaskInfo
    >>> strategy, task = MinWaste(), TaskInfo(1, "align")
    >>> for peak in [1e9] * 9 + [4e9]:
    ...     strategy.observe(task, peak, 60.0)
    >>> strategy.predict(task, 64e9), strategy.grow(task, [1e9], 64e9)
    (1000000000.0, 4000000000.0)

    B. Tovar et al., "A Job Sizing Strategy for High-Throughput Scientific Workflows",
    IEEE TPDS 2018: equation 1, which weighs by run time, or 2, which does not. With
    ``whole_jobs=True`` the open range from a half of the largest peak to all of it is
    not considered: there, too, only one task fits where the largest does (section 3.4.4).
    """

    goal = "least waste"

    def __init__(
        self,
        *,
        equation: int = 1,
        whole_jobs: bool = False,
        online: bool = False,
        bin_width: float = 0.0,
    ) -> None:
        super().__init__(online=online, bin_width=bin_width)
        self.equation = equation
        self.whole_jobs = whole_jobs

    def first(self, peaks: Column, counts: Column, seconds: Column) -> float:
        weights = seconds if self.equation == 1 else counts
        return least_waste(peaks, weights, whole_jobs=self.whole_jobs)


def least_waste(peaks: Column, weights: Column, *, whole_jobs: bool = False) -> float:
    """Equation 1 where the `weights` of the peaks are run times, 2 where they are counts.

    The allocation a that minimises a w + a_m w(r > a), with w the weight of all tasks,
    w(r > a) that of those with larger peaks, a_m the largest peak; of equals the largest.

    >>> import numpy as np
    >>> least_waste(np.array([1.0, 2.0, 3.0]), np.array([5.0, 4.0, 1.0]))
    2.0
    """
    import numpy as np

    maximum = peaks[-1]
    below = np.cumsum(weights)
    cost = peaks * below[-1] + maximum * (below[-1] - below)
    if whole_jobs:
        cost[(peaks > maximum / 2) & (peaks < maximum)] = np.inf
    return float(peaks[::-1][cost[::-1].argmin()])


def build(
    setting: Setting,
    *,
    equation: int = 1,
    whole_jobs: bool = False,
    online: bool = False,
    bin: float = 0.0,
) -> Family:
    """Least expected waste of two steps: a first allocation, then the largest peak seen."""
    if equation not in (1, 2):
        raise UnknownStrategy(f"min-waste: equation must be 1 or 2, not {equation!r}.")
    widths = {kind: bin_width(kind, bin) for kind in setting.kinds}
    return lambda category: PerKind.of(
        setting.kinds,
        lambda kind: MinWaste(
            equation=equation, whole_jobs=whole_jobs, online=online, bin_width=widths[kind]
        ),
    )
