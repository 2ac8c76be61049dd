"""Online linear regression of the peak on the input size, with an offset (seed 003, IV)."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from parsl_sizer.model import Kind, TaskInfo, UnknownStrategy

from .base import Family, Predictor, Setting
from .per_kind import PerKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEATURE = "input_size"
OFFSETS = ("none", "mean+-", "mean-", "max-")

EXACT = 4096
"""Observations kept for the offset before they are thinned."""


class Line:
    """The least-squares line through all observations, updated one at a time.

    >>> line = Line()
    >>> for x, y in (1, 3), (2, 5), (3, 7):
    ...     line.add(x, y)
    >>> line.slope, line.intercept
    (2.0, 1.0)
    """

    def __init__(self) -> None:
        self.n = 0
        self._mean_x = self._mean_y = 0.0
        self._xx = self._xy = 0.0

    @property
    def slope(self) -> float:
        """0 while all x are equal: the line is then the mean."""
        return self._xy / self._xx if self._xx > 0 else 0.0

    @property
    def intercept(self) -> float:
        return self._mean_y - self.slope * self._mean_x

    def add(self, x: float, y: float) -> None:
        # Welford's update: plain sums of squares of bytes would lose the small differences.
        self.n += 1
        away = x - self._mean_x
        self._mean_x += away / self.n
        self._mean_y += (y - self._mean_y) / self.n
        self._xx += away * (x - self._mean_x)
        self._xy += away * (y - self._mean_y)


class Residuals:
    """How far observations lie above the line, in bounded memory, for one of the offsets.

    Up to `exact` observations are kept. Beyond that the means are those of every second,
    fourth, ... observation, and of the candidates for the largest underprediction the
    half that lies farthest above the line stays.
    """

    def __init__(self, offset: str, exact: int = EXACT) -> None:
        self._offset = offset
        self._exact = exact
        self._every = 1
        self._seen = 0
        self._x, self._y = array("d"), array("d")

    def __len__(self) -> int:
        return len(self._x)

    def add(self, x: float, y: float, line: Line) -> None:
        self._seen += 1
        if self._seen % self._every:
            return
        self._x.append(x)
        self._y.append(y)
        if len(self) > self._exact:
            self._halve(line)

    def offset(self, line: Line) -> float:
        """Equations 1 (``mean+-``), 2 (``mean-``) and 3 (``max-``) of the paper.

        With a single underprediction equation 2 has 0 to divide by; it is 1 here.
        """
        above = self._above(line)
        if self._offset == "max-":
            return max(0.0, float(above.max()))
        if self._offset == "mean-":
            above = above[above > 0]
        return math.sqrt(above @ above / max(1, len(above) - 1))

    def _halve(self, line: Line) -> None:
        if self._offset == "max-":
            kept = np.argsort(-self._above(line), kind="stable")[: len(self) // 2]
        else:
            kept = np.arange(1, len(self), 2)
            self._every *= 2
        self._x, self._y = (array("d", np.array(column)[kept]) for column in (self._x, self._y))

    def _above(self, line: Line) -> NDArray[np.float64]:
        return np.array(self._y) - (line.intercept + line.slope * np.array(self._x))


class Regression(Predictor):
    """The peak that the line through the finished tasks' input sizes predicts, plus an offset.

    Ready after two observations; before that a task gets the user's request, else the
    largest node. So does a task without an input size: the paper has none. A prediction
    that is not above 0 is replaced by the largest peak seen. After a failed prediction
    the amount is doubled; after a failed request the prediction is taken, if there is
    one by now and it is larger.

    >>> regression = Regression(Kind.MEMORY, "max-")
    >>> for size, peak in (1, 3), (2, 6), (3, 7):
    ...     regression.observe(TaskInfo(size, "align", features={"input_size": size}), peak, 60)
    >>> task = TaskInfo(4, "align", features={"input_size": 4})
    >>> round(regression.predict(task, 64), 3)
    10.0
    >>> regression.grow(task, [10.0], 64)
    20.0

    C. Witt, D. Wagner and U. Leser, "Feedback-Based Resource Allocation for Batch
    Scheduling of Scientific Workflows", HPCS 2019, sections III.B and IV.
    """

    def __init__(self, kind: Kind, offset: str = "none") -> None:
        self.kind = kind
        self.offset = offset
        self._line = Line()
        self._residuals = Residuals(offset)
        self._added = 0.0
        self._largest_peak = 0.0

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        size = _input_size(task)
        if self._line.n < 2 or size is None:
            return None
        predicted = self._line.intercept + self._line.slope * size + self._added
        return predicted if predicted > 0 else self._largest_peak

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float:
        if len(failed) == 1 and failed[0] == task.requested.get(self.kind):
            predicted = self.predict(task, largest)
            if predicted is not None and predicted > failed[0]:
                return predicted
        return 2 * failed[-1]

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        size = _input_size(task)
        if size is None:
            return
        self._largest_peak = max(self._largest_peak, peak)
        self._line.add(size, peak)
        if self.offset != "none":
            self._residuals.add(size, peak, self._line)
            self._added = self._residuals.offset(self._line)

    def why(self, task: TaskInfo, amount: float) -> str:
        added = f", offset {self.offset}" if self.offset != "none" else ""
        return f"input size, on a line through {self._line.n} tasks{added}"


def _input_size(task: TaskInfo) -> float | None:
    size = task.features.get(FEATURE)
    return size if size is not None and math.isfinite(size) else None


def build(setting: Setting, *, offset: str = "none") -> Family:
    """A line through input sizes and peaks, plus an offset; doubled after every failure.

    `offset` is the spread of the line's errors (``mean+-``), of its underpredictions
    (``mean-``), the largest underprediction (``max-``), or ``none``.
    """
    if offset not in OFFSETS:
        raise UnknownStrategy(f"offset must be one of {', '.join(OFFSETS)}, not {offset!r}.")
    return lambda category: PerKind.of(setting.kinds, lambda kind: Regression(kind, offset))
