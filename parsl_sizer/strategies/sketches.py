"""What a strategy keeps of the tasks it has seen, in bounded memory."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXACT = 4096
"""Distinct values kept as they are, so that most categories lose nothing."""

BIN = math.log(1.005)
"""The width of a bin, in logarithms, once there are more: half a percent."""

_LEAST, _MOST = math.log(1e-3), math.log(1e18)
"""Values outside share the two outermost bins: there are at most some 10,000."""


class SortedPoints:
    """A sorted multiset of values; each distinct value carries `width` sums.

    What the sums mean is the owner's business: how many tasks, their run time, their
    significance. Up to `exact` distinct values nothing is lost. Then values are merged
    into log-spaced bins, each as large as the largest value in it, so that what covered
    a task still does, and memory stays bounded however much is added.

    >>> points = SortedPoints(2)
    >>> for peak, wall_s in (3.0, 10.0), (1.0, 20.0), (3.0, 5.0):
    ...     points.add(peak, 1, wall_s)
    >>> list(points.values), [list(column) for column in points.sums]
    ([1.0, 3.0], [[1.0, 2.0], [20.0, 15.0]])
    """

    __slots__ = ("binned", "exact", "sums", "values")

    def __init__(self, width: int = 1, *, exact: int = EXACT) -> None:
        self.values = array("d")
        self.sums = tuple(array("d") for _ in range(width))
        self.exact = exact
        self.binned = False

    def __len__(self) -> int:
        """The number of distinct values."""
        return len(self.values)

    @property
    def largest(self) -> float:
        """The largest value; 0 where there is none."""
        return self.values[-1] if self.values else 0.0

    def add(self, value: float, *weights: float) -> None:
        """Add `weights`, one for each sum, at `value`."""
        if not 0 <= value < math.inf:
            raise ValueError(f"a peak must be a finite number of at least 0, not {value!r}")
        values = self.values
        at = bisect_left(values, value)
        if at == len(values) or values[at] != value:
            if self.binned:
                at = self._place_in_bin(value, at)
            else:
                self._insert(at, value)
        for column, weight in zip(self.sums, weights, strict=True):
            column[at] += weight
        if not self.binned and len(values) > self.exact:
            self._merge()

    def columns(self) -> tuple[NDArray[np.float64], ...]:
        """The values and then each of the sums, as arrays of their own."""
        import numpy as np

        return tuple(np.array(column) for column in (self.values, *self.sums))

    def _insert(self, at: int, value: float) -> None:
        self.values.insert(at, value)
        for column in self.sums:
            column.insert(at, 0.0)

    def _place_in_bin(self, value: float, at: int) -> int:
        """The index of the value's bin; `at` is where the value itself would stand."""
        values, wanted = self.values, _bin(value)
        if at < len(values) and _bin(values[at]) == wanted:
            return at
        if at > 0 and _bin(values[at - 1]) == wanted:
            values[at - 1] = value
            return at - 1
        self._insert(at, value)
        return at

    def _merge(self) -> None:
        """From here on, one point for each bin."""
        old_values, old_sums = self.values, self.sums
        self.values = array("d")
        self.sums = tuple(array("d") for _ in old_sums)
        self.binned = True
        for value, *weights in zip(old_values, *old_sums, strict=True):
            at = self._place_in_bin(value, len(self.values))
            for column, weight in zip(self.sums, weights, strict=True):
                column[at] += weight


def _bin(value: float) -> int:
    logarithm = math.log(value) if value > 0 else _LEAST
    return math.floor(min(max(logarithm, _LEAST), _MOST) / BIN)
