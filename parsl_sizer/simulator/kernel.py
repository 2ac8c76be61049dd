"""A virtual clock and what is going to happen on it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Kernel(Generic[T]):
    """Happenings in order of time; those of the same time in the order they were planned.

    >>> kernel = Kernel()
    >>> kernel.at(2.0, "bake")
    >>> kernel.at(1.0, "knead")
    >>> for happening in kernel:
    ...     print(kernel.now, happening)
    ...     if happening == "knead":
    ...         kernel.at(kernel.now + 0.5, "rest")
    1.0 knead
    1.5 rest
    2.0 bake
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._planned = 0
        self._heap: list[tuple[float, int, T]] = []

    def at(self, time_s: float, happening: T) -> None:
        """Plan a happening, now or later."""
        if not self.now <= time_s < math.inf:
            raise ValueError(f"Nothing can be planned for {time_s!r}: it is {self.now!r} now.")
        self._planned += 1
        heapq.heappush(self._heap, (time_s, self._planned, happening))

    def __iter__(self) -> Iterator[T]:
        """Everything planned, also meanwhile, with `now` set to its time."""
        while self._heap:
            self.now, _, happening = heapq.heappop(self._heap)
            yield happening
