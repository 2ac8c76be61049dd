"""May a task of a category that nothing is known of start now?

The first tasks of a new category are sized by a guess. If a hundred of them start at once,
and the guess was too small, it fails a hundred times. With a gate a few run first, the
canaries, and the others wait until these have told how much their category needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

PATIENCE_S = 600.0
"""Nobody waits for canaries longer than this: nodes may stand idle meanwhile."""


@dataclass(slots=True)
class _Trial:
    """A category that is not known yet."""

    ends_at: float
    running: int = 0
    finished: int = 0


class Gate:
    """Lets so many canaries of a category run, and the others once as many have finished.

    One canary may mislead, so it takes several. A task is a canary from its first attempt
    until it is over, also while it waits for a larger one; if it did not finish, or was lost,
    another one takes its place. `patience_s` after the first canary has started all may start.

    >>> gate = Gate(2)
    >>> for _ in range(2):
    ...     gate.start("align", now=0.0)
    >>> gate.holds("align", now=1.0), gate.holds("sort", now=1.0)
    (True, False)
    >>> for _ in range(2):
    ...     gate.end("align", finished=True)
    >>> gate.holds("align", now=2.0)
    False
    """

    def __init__(self, canaries: int = 3, *, patience_s: float = PATIENCE_S) -> None:
        if canaries < 1:
            raise ValueError(f"canaries must be 1 or more, not {canaries}")
        self._canaries = canaries
        self._patience_s = patience_s
        self._trials: dict[str, _Trial | None] = {}
        self.opens_at = -math.inf
        """When the last of those that wait now may start: somebody should look again then."""

    def is_new(self, category: str) -> bool:
        """Whether it was not heard of before."""
        return category not in self._trials

    def open(self, category: str) -> None:
        """Let all of this category start: it is known."""
        self._trials[category] = None

    def holds(self, category: str, now: float) -> bool:
        """Whether one more of this category has to wait."""
        trial = self._trials.get(category)
        if trial is None or trial.running < self._canaries:
            return False
        if now < trial.ends_at:
            return True
        self.open(category)
        return False

    def start(self, category: str, now: float) -> None:
        """Take note of the first attempt at a task."""
        trial = self._trials.get(category)
        if trial is None:
            if not self.is_new(category):
                return
            self.opens_at = now + self._patience_s
            trial = self._trials[category] = _Trial(self.opens_at)
        trial.running += 1

    def end(self, category: str, *, finished: bool) -> None:
        """Take note that a task that has started is over."""
        trial = self._trials.get(category)
        if trial is None:
            return
        trial.running -= not finished
        trial.finished += finished
        if trial.finished >= self._canaries:
            self.open(category)
