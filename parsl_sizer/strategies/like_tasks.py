"""Ladders for tasks that are alike in one feature, such as the size of their input."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .evidence import Evidence
from .ladder import Ladder
from .views import ALWAYS_REFIT, RETRY_PRICE, Found, Samples, growth, priced_ladder, samples

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


class LikeTasks:
    """Ladders around a curve of peak on one feature, in logarithms.

    At a few anchors along the feature a line is fitted to the nearest tasks (tricube
    weights, as in Cleveland's lowess), and a ladder to their residuals; in between the
    curve is interpolated and the nearest anchor's ladder scaled by it. `reach` says how
    many neighbours count, in multiples of n^0.6.

    The lines are fitted at once, an anchor's ladder when somebody first asks for it: until
    the next fit that is often nobody.
    """

    ANCHORS = 12
    BEYOND = (0.7, 2.0)
    """Anchors past either end of what was seen, where lines are drawn out: at 2 and 7
    times the largest feature."""
    MOST_TASKS = 256
    MOST_CANDIDATES = 24
    FEWEST = 4
    FEWEST_NEIGHBOURS = 8
    RIDGE = 0.02
    """Pulls slopes of few tasks to 0."""
    EARLY_GROWTH = 0.2
    LONGEST = 8192.0

    def __init__(self, feature: int, reach: float, price: float = RETRY_PRICE) -> None:
        self._price = price
        self._feature = feature
        self._reach = reach
        self._places: list[float] = []
        self._heights: list[float] = []
        self._residuals: Samples | None = None
        self._ladders: list[Ladder | None] = []
        self._theta, self._known = 1.0, 0.0
        self.due_at = float(self.FEWEST)

    def refit(self, evidence: Evidence) -> None:
        import numpy as np

        tasks = evidence.tasks
        share = self.EARLY_GROWTH if tasks < ALWAYS_REFIT else growth(evidence)
        self.due_at = tasks + min(max(share * tasks, 1.0), self.LONGEST)
        self._places = []
        index = self._feature
        window = [
            seen
            for seen in list(evidence.recent)[-self.MOST_TASKS :]
            if len(seen.features) > index and seen.features[index] == seen.features[index]
        ]
        if len(window) < self.FEWEST:
            return
        x = np.array([seen.features[index] for seen in window])
        order = np.argsort(x, kind="stable")
        x = x[order]
        if x[0] == x[-1]:
            return
        y = np.log(np.array([seen.peak for seen in window]))[order]
        times = np.array([seen.wall_s for seen in window])[order]
        self._draw(self._anchored(x), x, y, times)
        self._theta, self._known = evidence.theta, evidence.known

    def ladder(self, features: Sequence[float]) -> Found | None:
        places = self._places
        if not places or len(features) <= self._feature:
            return None
        x = features[self._feature]
        if math.isnan(x):
            return None
        right = bisect_left(places, x)
        if right == 0 or right == len(places):
            end = 0 if right == 0 else len(places) - 1
            return self._ladder(end), math.exp(self._heights[end])
        part = (x - places[right - 1]) / (places[right] - places[right - 1])
        low, high = self._heights[right - 1], self._heights[right]
        nearest = right if part > 0.5 else right - 1
        return self._ladder(nearest), math.exp(low + part * (high - low))

    def _anchored(self, x: Numbers) -> Numbers:
        """The anchors along rising `x`."""
        import numpy as np

        steps = np.linspace(0, len(x) - 1, min(self.ANCHORS, 1 + len(x) // 2))
        seen = np.unique(x[np.round(steps).astype(int)])
        beyond = np.array(self.BEYOND)
        return np.concatenate([seen[0] - beyond[::-1], seen, seen[-1] + beyond])

    def _draw(self, places: Numbers, x: Numbers, y: Numbers, times: Numbers) -> None:
        """Fit a line at every place, each in a row of its own."""
        import numpy as np

        neighbours = int(max(self.FEWEST_NEIGHBOURS, int(len(x) ** 0.6)) * self._reach)
        near = _nearest(x, places, min(len(x), neighbours))
        low, high = float(y.min()) - 0.7, float(y.max()) + 0.7
        x, y, place = x[near], y[near], places[:, None]
        far = np.abs(x - place)
        weights = (1.0 - (far / (_largest(far) * 1.1 + 0.02)) ** 3) ** 3
        total = _summed(weights)
        mean_x, mean_y = _summed(weights * x) / total, _summed(weights * y) / total
        x = x - mean_x
        spread = _summed(weights * x * x) + self.RIDGE
        slope = _summed(weights * x * (y - mean_y)) / spread
        size = total * total / _summed(weights * weights)
        # As wide as a new task scatters around a line fitted to so few, so far away.
        wider = np.minimum(2.0, np.sqrt(1.0 + 1.0 / size + (place - mean_x) ** 2 / spread))
        leverage = weights * (1.0 / total + x * x / spread)
        residuals = (y - mean_y - slope * x) / np.maximum(1.0 - leverage, 0.3) * wider
        heights = np.clip(mean_y + slope * (place - mean_x), low, high)
        self._residuals = samples(
            np.exp(np.clip(residuals, -6.0, 6.0)),
            times[near],
            weights * (size / total),
            self.MOST_CANDIDATES,
        )
        self._places, self._heights = places.tolist(), heights[:, 0].tolist()
        self._ladders = [None] * len(places)

    def _ladder(self, anchor: int) -> Ladder:
        found = self._ladders[anchor]
        if found is None:
            assert self._residuals is not None, "anchors have residuals"
            points = self._residuals.points(anchor)
            found = priced_ladder(points, self._price, self._theta, self._known)
            self._ladders[anchor] = found
        return found


def _nearest(x: Numbers, places: Numbers, neighbours: int) -> NDArray[np.intp]:
    """For each place the indices of the `neighbours` rising values around it."""
    import numpy as np

    # A window slides along the values until its two ends are equally far.
    first, last = x[: len(x) - neighbours + 1], x[neighbours - 1 :]
    ends = np.maximum(np.abs(first - places[:, None]), np.abs(last - places[:, None]))
    near: NDArray[np.intp] = np.argmin(ends, axis=1)[:, None] + np.arange(neighbours)
    return near


def _summed(rows: Numbers) -> Numbers:
    sums: Numbers = rows.sum(axis=1, keepdims=True)
    return sums


def _largest(rows: Numbers) -> Numbers:
    largest: Numbers = rows.max(axis=1, keepdims=True)
    return largest
