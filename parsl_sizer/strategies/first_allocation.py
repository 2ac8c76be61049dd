"""What min-waste and max-throughput share: a first allocation, then the largest peak seen.

B. Tovar et al., "A Job Sizing Strategy for High-Throughput Scientific Workflows",
IEEE TPDS 2018, sections 3.4 and 4.3.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from parsl_sizer.model import MB, Kind, TaskInfo, UnknownStrategy, is_bytes

from .base import Predictor
from .sketches import SortedPoints

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

LEAST_TASKS = 10
"""Finished tasks before anything is computed; also how far back the variance is compared."""

STEADY = 0.05
"""The relative change of the variance, over so many tasks, that counts as convergence."""


class FirstAllocation(Predictor):
    """Try all tasks at a computed first allocation, those that fail at the largest peak seen.

    What fails there too gets the largest node. Until `LEAST_TASKS` have finished the
    user's request or the largest node is used; from then on both steps follow what is
    seen, a new maximum included.

    With ``online=True`` the paper's six steps decide when to compute: in step 2 at least
    `LEAST_TASKS` tasks run with the request or the largest node until the variance of
    all peaks has changed by less than `STEADY` over the last `LEAST_TASKS`; a new
    maximum leads back to step 2.

    Where `bin_width` is not 0, peaks are counted in bins, each as large as its upper end.
    """

    goal = "first allocation"

    def __init__(self, *, online: bool = False, bin_width: float = 0.0) -> None:
        self.bin_width = bin_width
        self.tasks = 0
        self.largest_peak = 0.0
        self._points = SortedPoints(2)
        self._convergence = Convergence() if online else None

    @abstractmethod
    def first(self, peaks: Column, counts: Column, seconds: Column) -> float:
        """The first allocation for points with these distinct, rising peaks.

        Each peak was that of `counts` tasks which took `seconds` in all. Of equally good
        ones the largest, which is the largest peak where no task took any time.
        """

    @property
    def ready(self) -> bool:
        """Whether a first allocation is computed."""
        if self._convergence is not None:
            return self._convergence.reached
        return self.tasks >= LEAST_TASKS

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        if not self.ready:
            return None
        import numpy as np

        peaks, counts, seconds = self._points.columns()
        return self.first(np.minimum(peaks, self.largest_peak), counts, seconds)

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float | None:
        if self.ready and failed[-1] < self.largest_peak:
            return self.largest_peak
        return None

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        self._points.add(binned(peak, self.bin_width), 1.0, wall_s)
        if self._convergence is not None:
            self._convergence.observe(peak, is_new_maximum=peak > self.largest_peak)
        self.tasks += 1
        self.largest_peak = max(self.largest_peak, peak)

    def observe_failure(self, task: TaskInfo, allocated: float, wall_s: float) -> None:
        if self._convergence is not None and allocated >= self.largest_peak:
            self._convergence.restart()

    def why(self, task: TaskInfo, amount: float) -> str:
        return f"{self.goal} over {self.tasks} tasks"


class Convergence:
    """Whether the variance of the peaks has settled: steps 2 and 6 of the online procedure.

    >>> convergence = Convergence()
    >>> for _ in range(10):
    ...     convergence.observe(5.0, is_new_maximum=False)
    >>> convergence.reached
    True
    >>> convergence.observe(6.0, is_new_maximum=True)
    >>> convergence.reached
    False
    """

    def __init__(self) -> None:
        self.reached = False
        self._count = 0
        self._mean = 0.0
        self._squares = 0.0
        self._since_restart = 0
        self._variances = deque([0.0], maxlen=LEAST_TASKS + 1)

    def observe(self, peak: float, *, is_new_maximum: bool) -> None:
        self._count += 1
        deviation = peak - self._mean
        self._mean += deviation / self._count
        self._squares += deviation * (peak - self._mean)
        self._variances.append(self._squares / self._count)
        self._since_restart += 1
        if self.reached and is_new_maximum:
            self.restart()
        elif self._since_restart >= LEAST_TASKS:
            before, now = self._variances[0], self._variances[-1]
            self.reached = self.reached or abs(now - before) <= STEADY * now

    def restart(self) -> None:
        """Back to step 2."""
        self.reached = False
        self._since_restart = 0


def binned(peak: float, width: float) -> float:
    """The upper end of the peak's bin.

    >>> binned(101.0, 50.0), binned(100.0, 50.0), binned(101.0, 0.0)
    (150.0, 100.0, 101.0)
    """
    return math.ceil(peak / width) * width if width else peak


def bin_width(kind: Kind, megabytes: object) -> float:
    """The option ``bin``, given in MB, as a width for the kind; counts are not binned."""
    if not isinstance(megabytes, (int, float)) or not 0 <= megabytes < math.inf:
        raise UnknownStrategy(f"bin must be a number of MB of at least 0, not {megabytes!r}.")
    return megabytes * MB if is_bytes(kind) else 0.0
