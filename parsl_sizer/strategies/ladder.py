"""The cheapest ladder of allocations, exactly.

A task is tried at rising allocations until one is large enough. With r its peak
and t its time, a ladder b1 < b2 < ... costs, on average,

    sum_i  b_i (S(b_{i-1}) - (1 - theta) S(b_i))  +  price sum_{i>1} N(b_{i-1})

where S(b) = E[t 1(r > b)] is the time that gets past b, N(b) = P(r > b) the share
of tasks that does, theta the part of its time after which a failing attempt dies
and price what a retry costs beside. Tovar et al. (TPDS 2018) solve it for two steps
and leave more open. It is a shortest path over the candidates c_1 < ... < c_m,
walked here from the end,

    g(c_i) = min_{j>i} ( c_j S(c_i) + h_j ),
    h_j    = -(1 - theta) c_j S(c_j) + price N(c_j) + g(c_j),

lines with falling slopes c_j asked at rising S(c_i): the convex hull trick takes
O(m). Walking from the end also answers, for *any* failed allocation, what to try
next, so a ladder that was learned anew between two attempts stays optimal.

Some tasks take all their memory at once: by the time that they are stopped their peak
is known, and they are given just that. Where a share of the tasks does so, what comes
after a first failure costs that much less, and the cheapest start is lower.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

Point = tuple[float, float, float]
"""A peak, the time and the number of tasks that have it."""
HEADROOM = 1.03
"""What a task whose peak is known is given above it."""


class Ladder(NamedTuple):
    """What to try first, and what after any failure."""

    amounts: array[float]
    """The candidates, rising; the last one holds every task known."""
    following: array[int]
    """For each candidate, the index of the one to try after it failed; -1 after the last."""
    rungs: tuple[float, ...]
    """The way through them from the start."""
    costs: array[float]
    """What starting at each candidate costs, over all tasks."""
    held: array[float]
    """The time for which tasks hold each candidate when they start there."""
    cheapest: array[int]
    """For each candidate, the index of the cheapest start at or above it."""
    share: array[float]
    """The share of tasks with a peak above each candidate."""

    def after(self, failed: float) -> float | None:
        """What to try when `failed` was too small; None if nothing larger is known."""
        index = bisect_right(self.amounts, failed) - 1
        if index < 0:
            return self.rungs[0]
        step = self.following[index]
        return self.amounts[step] if step >= 0 else None

    def first_at_least(self, floor: float) -> float:
        """The cheapest start if anything below `floor` costs as much as `floor`."""
        if floor <= self.rungs[0]:
            return self.rungs[0]
        index = bisect_left(self.amounts, floor)
        if index == len(self.amounts):
            return floor
        best = self.cheapest[index]
        if index == 0:
            return self.amounts[best]
        # Stopping at the floor itself covers what the candidate below it covers, for
        # the floor's price instead of the candidate's.
        below = index - 1
        at_floor = self.costs[below] + (floor - self.amounts[below]) * self.held[below]
        return floor if at_floor <= self.costs[best] else self.amounts[best]

    def cost(self, peak: float, theta: float, known: float = 0.0) -> float:
        """What a task of this peak takes: allocation x share of its time, summed."""
        first, *others = self.rungs
        if first >= peak:
            return first
        spent = 0.0
        for rung in others:
            if rung >= peak:
                spent += rung
                break
            spent += theta * rung
        else:
            spent += max(2.0 * self.rungs[-1], peak)
        return theta * first + known * peak * HEADROOM + (1.0 - known) * spent

    def retries(self) -> float:
        """How often a task is tried again, on average."""
        return sum([self.share[bisect_left(self.amounts, rung)] for rung in self.rungs])

    def covered(self, amount: float) -> float:
        """The share of tasks that `amount` is enough for."""
        index = bisect_right(self.amounts, amount) - 1
        return 1.0 - self.share[index] if index >= 0 else 0.0


def cheapest_ladder(
    points: Sequence[Point], *, theta: float = 1.0, price: float = 0.0, known: float = 0.0
) -> Ladder:
    """The cheapest ladder for tasks distributed as `points`, which rise in their peak.

    `price` is in the unit of peak x time, per task retried; `known` is the share of tasks
    whose peak is known after their first failure.

    >>> ladder = cheapest_ladder([(1.0, 1.0, 1.0)] * 9 + [(8.0, 1.0, 1.0)])
    >>> ladder.rungs, ladder.after(1.0)
    ((1.0, 8.0), 8.0)
    >>> cheapest_ladder([(7.0, 1.0, 1.0), (8.0, 1.0, 1.0)]).rungs
    (8.0,)
    """
    amounts, above, share, total = _survival(points)
    size = len(amounts)
    early = 1.0 - theta
    following = [-1] * size
    costs = [amount * total for amount in amounts]
    # The lines that are lowest somewhere, by falling slope, and the one lowest at present.
    slopes, offsets, ends = [amounts[-1]], [0.0], [size - 1]
    last = front = 0
    exact = 0.0  # what all tasks above a candidate would cost if their peaks were known
    for index in range(size - 2, -1, -1):
        amount, asked = amounts[index], above[index]
        rest = slopes[front] * asked + offsets[front]
        while front < last:
            other = slopes[front + 1] * asked + offsets[front + 1]
            if other > rest:
                break
            rest = other
            front += 1
        following[index] = ends[front]
        offset = rest + price * share[index] - early * amount * asked
        costs[index] += offset
        if known:
            exact += amounts[index + 1] * (asked - above[index + 1])
            costs[index] -= known * max(0.0, rest - HEADROOM * exact)
        while last and (offset - offsets[-1]) * (slopes[-2] - slopes[-1]) <= (
            offsets[-1] - offsets[-2]
        ) * (slopes[-1] - amount):
            slopes.pop()
            offsets.pop()
            ends.pop()
            last -= 1
        slopes.append(amount)
        offsets.append(offset)
        ends.append(index)
        last += 1
        if front > last:
            front = last
    step = size - 1
    cheapest = [step] * size
    for index in range(size - 2, -1, -1):
        if costs[index] <= costs[step]:
            step = index
        cheapest[index] = step
    rungs = [amounts[step]]
    while (step := following[step]) >= 0:
        rungs.append(amounts[step])
    return Ladder(
        array("d", amounts),
        array("i", following),
        tuple(rungs),
        array("d", costs),
        array("d", [total - early * time for time in above]),
        array("i", cheapest),
        array("d", share),
    )


def _survival(points: Sequence[Point]) -> tuple[list[float], list[float], list[float], float]:
    """Distinct amounts, the time and the share of tasks above each, and the total time."""
    amounts: list[float] = []
    times: list[float] = []
    counts: list[float] = []
    for amount, time, count in points:
        if amounts and amount == amounts[-1]:
            times[-1] += time
            counts[-1] += count
        else:
            amounts.append(amount)
            times.append(time)
            counts.append(count)
    # Summed from the top, so that nothing is left above the last one.
    above = list(accumulate(reversed(times), initial=0.0))
    beyond = list(accumulate(reversed(counts), initial=0.0))
    tasks = beyond[-1] or 1.0
    total = above[-1]
    return amounts, above[-2::-1], [count / tasks for count in beyond[-2::-1]], total
