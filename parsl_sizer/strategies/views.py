"""Ladders seen from different sides of the same evidence.

Each view refits itself from the `Evidence` on a schedule, so that reading a ladder is
a lookup: all tasks alike or recent tasks first; for tasks with like features see
:mod:`parsl_sizer.strategies.like_tasks`.
"""

from __future__ import annotations

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
    return priced_ladder(points, price, evidence.theta, evidence.known)


def priced_ladder(points: Sequence[Point], price: float, theta: float, known: float) -> Ladder:
    """`fit`, with what it needs of the evidence."""
    used = sum([peak * time for peak, time, _ in points])
    return cheapest_ladder(points, theta=theta, price=price * used, known=known)


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
        sample = samples(
            np.array([[seen.peak for seen in window]]),
            np.array([[seen.wall_s for seen in window]]),
            0.5 ** (np.arange(len(window) - 1, -1, -1)[None] / self._half_life),
            self.MOST_CANDIDATES,
        )
        points = sample.points(0)
        if evidence.failing:
            points = with_bounds(points, evidence.bounds(), evidence.mean_s)
        self._found = fit(points, evidence, self._price), 1.0

    def ladder(self, features: Sequence[float]) -> Found | None:
        return self._found


class Samples(NamedTuple):
    """Weighted tasks, one sample in each row: grouped, with the largest peaks one by one."""

    peaks: Numbers
    times: Numbers
    counts: Numbers
    singly: Numbers
    sizes: list[float]

    def points(self, row: int) -> list[Point]:
        """The points of a sample, with their tail."""
        size, times = self.sizes[row], self.times[row].tolist()
        points = list(zip(self.peaks[row].tolist(), times, self.counts[row].tolist(), strict=True))
        share = size / (size + 1.0)
        top = self.singly[row, -int(3 * size) - 1 :].tolist()
        return points + tail(top, len(top), share, share * sum(times) / size)


def samples(peaks: Numbers, times: Numbers, weights: Numbers, most: int) -> Samples:
    """The tasks in each row by rising peak, grouped into at most `most`."""
    import numpy as np

    order = np.argsort(peaks, axis=1, kind="stable")
    peaks, times, weights = [
        np.take_along_axis(numbers, order, axis=1) for numbers in (peaks, times, weights)
    ]
    sizes = weights.sum(axis=1)
    spent = (weights * times).sum(axis=1)
    means = np.where(spent > 0, spent / sizes, 1.0)
    time = weights * (times + TIME_FLOOR * means[:, None])
    tasks = peaks.shape[1]
    group = -(-tasks // most)
    starts = np.arange(0, tasks, group)
    ends = np.minimum(starts + group, tasks) - 1
    return Samples(
        peaks[:, ends],
        np.add.reduceat(time, starts, axis=1),
        np.add.reduceat(weights, starts, axis=1),
        peaks,
        sizes.tolist(),
    )
