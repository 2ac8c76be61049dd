"""The first proposals of a category that nothing is known of.

With a user's request the peak is most likely somewhere below it: halvings of the
request, each half as likely, and the ratios of peak to request that other categories
have shown. Without one: doublings of 125 MB (1 core), rarer the larger, and other
categories' peaks. The cheapest ladder of that prior is the first proposal.
"""

from __future__ import annotations

import math
from collections import deque

from parsl_sizer.model import Kind, format_amount, is_bytes

from .ladder import Ladder, Point, cheapest_ladder
from .views import ALWAYS_REFIT, RETRY_PRICE, Found

PER_CATEGORY = 3
"""Tasks of each category that go into the pool: one of thousands must not outvote others."""
POOLED = 200
OTHERS_RATIO = 0.2
"""What a ratio seen elsewhere weighs; all halvings together weigh 1."""
OTHERS_PEAK = 0.1
"""What a peak seen elsewhere weighs; all doublings together weigh 1."""
ABOVE_REQUEST = ((2.0, 0.05), (4.0, 0.02), (8.0, 0.01), (16.0, 0.01))
"""Multiples of the request that a task may need, and how likely that is."""


class Pool:
    """What the categories of a run have shown of one kind, for those still unseen."""

    def __init__(self, kind: Kind, price: float = RETRY_PRICE) -> None:
        self._kind = kind
        self._price = price
        smallest, rarer = (125e6, 0.5**0.5) if is_bytes(kind) else (1.0, 0.25)
        self._doublings = _normed([(smallest * 2.0**step, rarer**step) for step in range(16)])
        self._halvings = _normed([(2.0**-step, 2.0**-step) for step in range(6)])
        self._seen: deque[tuple[float, float | None, float]] = deque(maxlen=POOLED)
        self._wait = 0
        self._shown: tuple[tuple[float, float | None, float], ...] = ()
        self._fitted: tuple[Ladder, Ladder] | None = None

    def add(self, peak: float, requested: float | None, wall_s: float) -> None:
        """One of the first tasks of a category finished."""
        self._seen.append((peak, _amount(requested), wall_s))
        self._wait += 1
        if self._wait * 20 >= len(self._seen) or len(self._seen) < ALWAYS_REFIT:
            self._wait = 0
            self._shown = tuple(self._seen)
            self._fitted = None  # until somebody asks

    def basis(self, requested: float | None) -> str:
        """What the ladder for a task with this request comes from."""
        sources = []
        if (asked := _amount(requested)) is not None:
            sources.append(f"the {format_amount(self._kind, asked)} requested")
        if self._seen:
            sources.append("other categories")
        return f"a first guess from {' and '.join(sources)}" if sources else "a first guess"

    def ladder(self, requested: float | None) -> Found:
        """The cheapest ladder for a task of a new category."""
        asked = _amount(requested)
        if self._fitted is None:
            self._fitted = self._fit()
        ratios, peaks = self._fitted
        return (peaks, 1.0) if asked is None else (ratios, asked)

    def _fit(self) -> tuple[Ladder, Ladder]:
        shown = self._shown
        ratios = [(peak / asked, time, OTHERS_RATIO) for peak, asked, time in shown if asked]
        peaks = [(peak, time, OTHERS_PEAK) for peak, _, time in shown]
        return (
            _ladder(self._halvings, ratios, ABOVE_REQUEST, self._price),
            _ladder(self._doublings, peaks, (), self._price),
        )


def _amount(requested: float | None) -> float | None:
    """The request, if it is one: not 0, not negative, not infinite, a number."""
    return requested if requested is not None and 0 < requested < math.inf else None


def _ladder(
    prior: list[tuple[float, float]],
    seen: list[Point],
    above: tuple[tuple[float, float], ...],
    price: float,
) -> Ladder:
    """The cheapest ladder; seen tasks weigh by their time relative to the mean."""
    mean = sum(time for _, time, _ in seen) / len(seen) if seen else 0.0
    points = [(amount, weight, weight) for amount, weight in prior]
    points += [
        (amount, weight * (time / mean if mean > 0 else 1.0), weight)
        for amount, time, weight in seen
    ]
    total = sum(weight for _, _, weight in points)
    points += [(amount, total * share, total * share) for amount, share in above]
    points.sort()
    used = sum(amount * time for amount, time, _ in points)
    return cheapest_ladder(points, price=price * used)


def _normed(prior: list[tuple[float, float]]) -> list[tuple[float, float]]:
    total = sum(weight for _, weight in prior)
    return [(amount, weight / total) for amount, weight in prior]
