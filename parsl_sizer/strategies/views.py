"""Ladders seen from different sides of the same evidence.

Each view refits itself from the `Evidence` on a schedule, so that reading a ladder
is a lookup: all tasks alike, recent tasks first, or tasks with like features.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .evidence import TIME_FLOOR, Evidence, tail, with_bounds
from .ladder import Ladder, Point, cheapest_ladder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

RETRY_PRICE = 0.05
"""What a retry costs beside its allocation, as a share of a typical task's. Without it
flat distributions take more than one retry per task for 1 % of waste."""
MANY_RETRIES = 0.55
"""Retries per task, as far as they last, above which they are made dearer, up to..."""
HIGHEST_PRICE = 0.25
"""...this. An exponential distribution takes 0.8 retries per task at a price of 0.02 and
0.5 at 0.2, for 2 % more waste."""
GROWTH = 0.03
"""Refit when the number of tasks grew by this much."""
ALWAYS_REFIT = 40
"""Refit the plain ladder after every task while there are no more than this."""
SHORT_S = 0.05
STALE, VERY_MANY = 256.0, 20_000
"""Refit what forgets old tasks after this many at the latest; twice that from so many on."""

Found = tuple[Ladder, float]
"""A ladder and the factor to scale it by."""


class View(Protocol):
    """A way to turn evidence into ladders."""

    due_at: float
    """The number of tasks at which to fit again."""

    def refit(self, evidence: Evidence) -> None:
        """Compute the ladders anew."""
        ...

    def ladder(self, features: Sequence[float]) -> Found | None:
        """The ladder for a task with these features; None if this view has none for it."""
        ...


def fit(points: Sequence[Point], evidence: Evidence, price: float) -> Ladder:
    """The cheapest ladder, a retry costing `price` times what a typical task does."""
    used = sum([peak * time for peak, time, _ in points])
    return cheapest_ladder(points, theta=evidence.theta, price=price * used, known=evidence.known)


def growth(evidence: Evidence) -> float:
    """The share by which the tasks must have grown before ladders are fitted again.

    To fit takes a millisecond or so: where tasks take hardly more, it must not be often.
    """
    return GROWTH if evidence.mean_s >= SHORT_S else 10 * GROWTH


class AllTasks:
    """One ladder from every task seen.

    Where it takes many retries, as on heavy tails, the price of a retry is raised.
    """

    def __init__(self, price: float = RETRY_PRICE) -> None:
        self._price = price
        self._fitted: Found | None = None
        self._next = 0.0
        self._maximum = 0.0
        self._failing = 0

    def due(self, evidence: Evidence) -> bool:
        return (
            evidence.tasks >= self._next
            or evidence.maximum > self._maximum * (1.0 if evidence.tasks < ALWAYS_REFIT else 1.01)
            or len(evidence.failing) > self._failing + 1 + GROWTH * evidence.tasks
        )

    def refit(self, evidence: Evidence) -> None:
        points, theta, price = evidence.points(), evidence.theta, self._price
        ladder = fit(points, evidence, price)
        while price < HIGHEST_PRICE and theta * ladder.retries() > MANY_RETRIES:
            price = min(2.0 * price + 0.01, HIGHEST_PRICE)
            ladder = fit(points, evidence, price)
        self._fitted = ladder, 1.0
        self._next = evidence.tasks + 1.0
        if evidence.tasks >= ALWAYS_REFIT:
            self._next += growth(evidence) * evidence.tasks
        self._maximum = evidence.maximum
        self._failing = len(evidence.failing)

    @property
    def found(self) -> Found:
        """The ladder, once there is evidence."""
        assert self._fitted is not None, "refit comes first"
        return self._fitted

    def ladder(self, features: Sequence[float]) -> Found | None:
        return self._fitted


class RecentTasks:
    """One ladder in which a task's weight halves every `half_life` tasks."""

    MOST_CANDIDATES = 96

    def __init__(self, half_life: float, price: float = RETRY_PRICE) -> None:
        self._price = price
        self._half_life = half_life
        self._found: Found | None = None
        self.due_at = 0.25 * half_life  # nothing is old before

    def refit(self, evidence: Evidence) -> None:
        import numpy as np

        share = growth(evidence)
        stale = STALE * share / GROWTH * (1 if evidence.tasks < VERY_MANY else 2)
        self.due_at = evidence.tasks + min(max(share * evidence.tasks, 1.0), stale)
        window = list(evidence.recent)[-int(8 * self._half_life) :]
        points = weighted_points(
            np.array([seen.peak for seen in window]),
            np.array([seen.wall_s for seen in window]),
            0.5 ** (np.arange(len(window) - 1, -1, -1) / self._half_life),
            self.MOST_CANDIDATES,
        )
        if evidence.failing:
            points = with_bounds(points, evidence.bounds(), evidence.mean_s)
        self._found = fit(points, evidence, self._price), 1.0

    def ladder(self, features: Sequence[float]) -> Found | None:
        return self._found


class _Anchor(NamedTuple):
    height: float
    ladder: Ladder


class LikeTasks:
    """Ladders around a curve of peak on one feature, in logarithms.

    At a few anchors along the feature a line is fitted to the nearest tasks (tricube
    weights, as in Cleveland's lowess), and a ladder to their residuals; in between the
    curve is interpolated and the nearest anchor's ladder scaled by it. `reach` says how
    many neighbours count, in multiples of n^0.6.
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
        self._anchors: list[_Anchor] = []
        self._places: list[float] = []
        self.due_at = float(self.FEWEST)

    def refit(self, evidence: Evidence) -> None:
        import numpy as np

        tasks = evidence.tasks
        share = self.EARLY_GROWTH if tasks < ALWAYS_REFIT else growth(evidence)
        self.due_at = tasks + min(max(share * tasks, 1.0), self.LONGEST)
        self._anchors = []
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
        steps = np.linspace(0, len(x) - 1, min(self.ANCHORS, 1 + len(x) // 2))
        seen_places = np.unique(x[np.round(steps).astype(int)])
        places = [
            *(seen_places[0] - np.array(self.BEYOND[::-1])),
            *seen_places,
            *(seen_places[-1] + np.array(self.BEYOND)),
        ]
        neighbours = int(max(self.FEWEST_NEIGHBOURS, int(len(x) ** 0.6)) * self._reach)
        low, high = float(y.min()) - 0.7, float(y.max()) + 0.7
        for place in places:
            near = _nearest(x, float(place), min(len(x), neighbours))
            height, ladder = self._anchor(float(place), x[near], y[near], times[near], evidence)
            self._anchors.append(_Anchor(min(max(height, low), high), ladder))
        self._places = [float(place) for place in places]

    def _anchor(
        self, place: float, x: Numbers, y: Numbers, times: Numbers, evidence: Evidence
    ) -> tuple[float, Ladder]:
        import numpy as np

        far = np.abs(x - place)
        weights = (1.0 - (far / (far.max() * 1.1 + 0.02)) ** 3) ** 3
        total = float(weights.sum())
        mean_x = float(weights @ x) / total
        mean_y = float(weights @ y) / total
        x = x - mean_x
        spread = float(weights @ (x * x)) + self.RIDGE
        slope = float(weights @ (x * (y - mean_y))) / spread
        size = total * total / float(weights @ weights)
        # As wide as a new task scatters around a line fitted to so few, so far away.
        wider = min(2.0, math.sqrt(1.0 + 1.0 / size + (place - mean_x) ** 2 / spread))
        leverage = weights * (1.0 / total + x * x / spread)
        residuals = (y - mean_y - slope * x) / np.maximum(1.0 - leverage, 0.3) * wider
        points = weighted_points(
            np.exp(np.clip(residuals, -6.0, 6.0)),
            times,
            weights * (size / total),
            self.MOST_CANDIDATES,
        )
        return mean_y + slope * (place - mean_x), fit(points, evidence, self._price)

    def ladder(self, features: Sequence[float]) -> Found | None:
        anchors = self._anchors
        if not anchors or len(features) <= self._feature:
            return None
        x = features[self._feature]
        if math.isnan(x):
            return None
        places = self._places
        right = bisect_left(places, x)
        if right == 0 or right == len(places):
            end = anchors[0 if right == 0 else -1]
            return end.ladder, math.exp(end.height)
        part = (x - places[right - 1]) / (places[right] - places[right - 1])
        low, high = anchors[right - 1], anchors[right]
        height = low.height + part * (high.height - low.height)
        return (high if part > 0.5 else low).ladder, math.exp(height)


def _nearest(x: Numbers, place: float, neighbours: int) -> slice:
    """The `neighbours` rising values around `place`."""
    import numpy as np

    middle = int(np.searchsorted(x, place))
    left, right = max(0, middle - neighbours), min(len(x), middle + neighbours)
    distances = np.abs(x[left:right] - place)
    # The window slides until its two ends are equally far.
    starts = len(distances) - neighbours + 1
    ends = np.maximum(distances[:starts], distances[neighbours - 1 :])
    start = left + int(np.argmin(ends))
    return slice(start, start + neighbours)


def weighted_points(peaks: Numbers, times: Numbers, weights: Numbers, most: int) -> list[Point]:
    """Weighted tasks as rising points with their tail, grouped into at most `most`."""
    import numpy as np

    order = np.argsort(peaks, kind="stable")
    peaks, times, weights = peaks[order], times[order], weights[order]
    size = float(weights.sum())
    spent = float(weights @ times)
    mean = spent / size if spent > 0 else 1.0
    time = weights * (times + TIME_FLOOR * mean)
    group = -(-len(peaks) // most)
    starts = np.arange(0, len(peaks), group)
    ends = np.minimum(starts + group, len(peaks)) - 1
    points = list(
        zip(
            peaks[ends].tolist(),
            np.add.reduceat(time, starts).tolist(),
            np.add.reduceat(weights, starts).tolist(),
            strict=True,
        )
    )
    share = size / (size + 1.0)
    top = peaks[-int(3 * size) - 1 :].tolist()
    return points + tail(top, len(top), share, share * float(time.sum()) / size)
