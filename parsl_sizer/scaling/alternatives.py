"""Which waits are thought possible, and how wrong is one of them?

The paper has 53 alternatives up to 100,000 s in "multiples of 10's, 100's, 1k's, 10k's, and
100k", more of them where waits are short, and does not list them. `ALTERNATIVES` are ours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

ALTERNATIVES: tuple[float, ...] = (
    *(float(wait) for wait in range(10, 100, 5)),
    *(float(wait) for wait in range(100, 1_000, 50)),
    *(float(wait) for wait in range(1_000, 10_000, 1_000)),
    *(1e4, 2e4, 3e4, 4e4, 5e4, 6e4, 8e4),
    1e5,
)
"""In seconds: 18 below 100 s, 18 below 1,000 s, 9 below 10,000 s, 7 below 100,000 s, and that."""

Loss = Callable[[Sequence[float], float], list[float]]
"""Of each of the alternatives, between 0 and 1: how wrong it was when this was the wait."""


def closest(alternatives: Sequence[float], wait_s: float) -> int:
    """Which alternative is nearest to a wait; of two that are equally near the shorter one.

    >>> [ALTERNATIVES[closest(ALTERNATIVES, wait)] for wait in (0.0, 12.5, 13.0, 1e6)]
    [10.0, 10.0, 15.0, 100000.0]
    """
    above = bisect_left(alternatives, wait_s)
    if above == 0:
        return 0
    if above == len(alternatives):
        return above - 1
    nearer_below = wait_s - alternatives[above - 1] <= alternatives[above] - wait_s
    return above - 1 if nearer_below else above


def zero_one(alternatives: Sequence[float], wait_s: float) -> list[float]:
    """The loss of the paper: 0 for the alternative nearest to the wait, 1 for all others.

    >>> zero_one([10, 20, 50], 22)
    [1.0, 0.0, 1.0]
    """
    losses = [1.0] * len(alternatives)
    losses[closest(alternatives, wait_s)] = 0.0
    return losses


def absolute(alternatives: Sequence[float], wait_s: float) -> list[float]:
    """The error as a share of the longer of both, so that half and double are equally wrong.

    >>> absolute([10, 20, 50], 20)
    [0.5, 0.0, 0.6]
    """
    return [abs(one - wait_s) / max(one, wait_s) for one in alternatives]


LOSSES: dict[str, Loss] = {"zero-one": zero_one, "absolute": absolute}
