"""Use over time, in bounded space."""

from __future__ import annotations

from collections import deque

WINDOW_S = 20.0
"""Cores are averaged over windows of this length before the peak is taken."""


class Cores:
    """The CPU time of a tree and its rate over sliding windows.

    >>> cores = Cores()
    >>> for second in range(61):
    ...     cores.add(second, 3.0 * min(second, 30))
    >>> cores.cpu_s, cores.peak
    (90.0, 3.0)
    """

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self.window_s = window_s
        self.peak: float | None = None
        self.cpu_s: float | None = None
        self._before: float | None = None
        self._seen: deque[tuple[float, float]] = deque()

    def add(self, at: float, cpu_s: float) -> None:
        """Take note of the time used; the first is that of earlier calls.

        A child that nobody waited for takes its time away with it.
        """
        if self._before is None:
            self._before = cpu_s
        self.cpu_s = max(cpu_s - self._before, self.cpu_s or 0.0)
        self._seen.append((at, self.cpu_s))
        while len(self._seen) > 2 and self._seen[1][0] <= at - self.window_s:
            self._seen.popleft()
        passed_s = at - self._seen[0][0]
        if passed_s >= self.window_s:
            self.peak = max(self.peak or 0.0, (self.cpu_s - self._seen[0][1]) / passed_s)


class Series:
    """Memory over time in at most so many points, each the highest of its stretch.

    >>> series = Series(4)
    >>> for second in range(10):
    ...     series.add(second, second % 3)
    >>> series.points
    [(0, 2), (4, 2), (8, 2)]
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.points: list[tuple[float, int]] = []
        self._stretch_s = 0.0

    def add(self, at: float, use: int) -> None:
        """Take note of a use."""
        if self.most < 2:
            return
        if self.points and at - self.points[-1][0] < self._stretch_s:
            self.points[-1] = (self.points[-1][0], max(use, self.points[-1][1]))
            return
        self.points.append((at, use))
        if len(self.points) > self.most:
            self._halve()

    def _halve(self) -> None:
        first, last = self.points[0][0], self.points[-1][0]
        self._stretch_s = max(2 * self._stretch_s, 2 * (last - first) / self.most)
        kept, self.points = self.points, []
        for at, use in kept:
            self.add(at, use)
