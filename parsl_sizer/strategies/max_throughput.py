"""Max-throughput: the first allocation with which most tasks finish per time and resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Family, Setting
from .first_allocation import FirstAllocation, bin_width
from .per_kind import PerKind

if TYPE_CHECKING:
    from .first_allocation import Column


class MaxThroughput(FirstAllocation):
    """The first allocation with the most throughput, then the largest peak seen.

    Of ten tasks nine need 1 GB and one needs 4 GB: in 4 GB four tasks run at once.

    >>> from parsl_sizer.model import TaskInfo
    >>> strategy, task = MaxThroughput(), TaskInfo(1, "align")
    >>> for peak in [1e9] * 9 + [4e9]:
    ...     strategy.observe(task, peak, 60.0)
    >>> strategy.predict(task, 64e9), strategy.grow(task, [1e9], 64e9)
    (1000000000.0, 4000000000.0)

    B. Tovar et al., "A Job Sizing Strategy for High-Throughput Scientific Workflows",
    IEEE TPDS 2018, equation 3. With ``whole_jobs=True`` no fractions of tasks run at
    once (section 3.4.4).
    """

    goal = "most throughput"

    def __init__(
        self, *, whole_jobs: bool = False, online: bool = False, bin_width: float = 0.0
    ) -> None:
        super().__init__(online=online, bin_width=bin_width)
        self.whole_jobs = whole_jobs

    def first(self, peaks: Column, counts: Column, seconds: Column) -> float:
        rates = throughputs(peaks, counts, seconds, whole_jobs=self.whole_jobs)
        return float(peaks[::-1][rates[::-1].argmax()])


def throughputs(
    peaks: Column, counts: Column, seconds: Column, *, whole_jobs: bool = False
) -> Column:
    """Tasks finished per second in the largest peak's room, for each peak as first allocation.

    Equation 3: in the largest peak a_m, a_m/a tasks run at once that need at most a; one
    that needs more runs alone in it, and twice.

    >>> import numpy as np
    >>> throughputs(np.array([1.0, 2.0]), np.array([3.0, 1.0]), np.array([30.0, 10.0]))
    array([0.14, 0.1 ])
    """
    import numpy as np

    at_once = np.divide(peaks[-1], peaks, out=np.ones_like(peaks), where=peaks > 0)
    if whole_jobs:
        at_once = np.floor(at_once)
    succeed, below = np.cumsum(counts), np.cumsum(seconds)
    finished = at_once * succeed + (succeed[-1] - succeed)
    taken = below[-1] + (below[-1] - below)
    rates: Column = np.divide(finished, taken, out=np.zeros_like(peaks), where=taken > 0)
    return rates


def build(
    setting: Setting, *, whole_jobs: bool = False, online: bool = False, bin: float = 0.0
) -> Family:
    """Most throughput of two steps: a first allocation, then the largest peak seen."""
    widths = {kind: bin_width(kind, bin) for kind in setting.kinds}
    return lambda category: PerKind.of(
        setting.kinds,
        lambda kind: MaxThroughput(whole_jobs=whole_jobs, online=online, bin_width=widths[kind]),
    )
