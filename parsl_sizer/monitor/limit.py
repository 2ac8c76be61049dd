"""When is a limit broken? When use has been above it for 0.2 s, in every sample."""

from __future__ import annotations

LASTING_S = 0.2
SEEN_S = 0.1
"""A supervisor that slept through most of a breach looks again before it stops a task."""


class Limit:
    """One kind's limit and since when it has been exceeded.

    A breach began some time after the last sample below the limit, and is timed from
    there: every one that lasts 0.2 s is stopped, however the samples fall.

    >>> limit = Limit(100)
    >>> [limit.is_broken_by(use, at) for use, at in [(90, 0.0), (120, 0.05), (99, 0.2)]]
    [False, False, False]
    >>> [limit.is_broken_by(use, at) for use, at in [(120, 0.25), (120, 0.32), (130, 0.41)]]
    [False, False, True]
    """

    def __init__(self, amount: float, began: float = 0.0) -> None:
        self.amount = amount
        self.last_below = began
        self.first_above: float | None = None

    def raise_to(self, amount: float, now: float) -> None:
        """Allow more from now on."""
        self.amount, self.last_below, self.first_above = amount, now, None

    def is_broken_by(self, use: float, now: float) -> bool:
        """Take note of a sample."""
        if use <= self.amount:
            self.last_below, self.first_above = now, None
            return False
        if self.first_above is None:
            self.first_above = now
        return now - self.last_below >= LASTING_S and now - self.first_above >= SEEN_S
