"""When will the stage that runs be over? From the time that its tasks take, and what is left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapify, heapreplace

EXACT = 1000
"""With more tasks than this the rounding of the last round does not matter."""


def ends_at(
    now: float, launched: Sequence[float], waiting: int, mean_s: float, slots: int
) -> float:
    """When all tasks will have ended, if each takes the mean time.

    `launched` is when those began that run, `slots` how many may run at once.

    >>> ends_at(100.0, [90.0, 95.0], waiting=3, mean_s=20.0, slots=2)
    150.0
    """
    ends = [max(now, at + mean_s) for at in launched]
    ends += [now] * (max(slots, 1) - len(ends))
    if waiting > EXACT:
        return math.fsum(ends) / len(ends) + waiting * mean_s / len(ends)
    heapify(ends)
    for _ in range(waiting):
        heapreplace(ends, ends[0] + mean_s)
    return max(ends)
