"""A clock that stands still until it is told."""

from __future__ import annotations

import math


class ManualClock:
    """Seconds that pass only when `advance` is called; give it wherever a clock is asked for.

    >>> clock = ManualClock()
    >>> clock.advance(2.5)
    2.5
    >>> clock()
    2.5
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def __call__(self) -> float:
        """The time now."""
        return self._now

    def advance(self, seconds: float) -> float:
        """Let time pass; the new time."""
        if not 0 <= seconds < math.inf:
            raise ValueError(f"time passes by 0 seconds or more, not by {seconds!r}")
        self._now += seconds
        return self._now
