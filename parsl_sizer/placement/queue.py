"""Waiting tasks, and those of them that are looked at.

However many wait, an event must cost the same. So tasks that are alike stand in one
line, and only the first few of each line are looked at: when those find no room, the
ones behind them, which ask for about as much, would find none either. In which order
they are looked at says an `Order`; within a line the highest priority stands first.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Protocol

from parsl_sizer.model import Amounts, Kind, TaskInfo

from .ledger import Demand, demand
from .orders import FIRST_COME, Order, Progress, Turn


@dataclass(slots=True, eq=False)
class Waiting:
    """A task that waits for its next attempt, and what is known about its chances.

    Tasks of one `line` are alike.
    """

    task: TaskInfo
    line: Hashable
    amounts: Amounts = field(default_factory=dict)
    why: object = ""
    demand: Demand = ()
    good_for: float = math.inf
    """How many lessons its category may have before it must be sized anew."""
    changes: int = -1
    """How many changes the ledger had seen when it was sized."""
    blocked_at: int = -1
    """How many attempts had been launched when it first found no room."""
    arrival: int = 0
    """Its place in the order of arrival, given by the queue when it first comes."""
    failures: int = 0
    """How many of its attempts ran out."""

    @property
    def size(self) -> float:
        """The memory that it asks for, or else the cores; without end before it asks."""
        amounts = self.amounts
        return amounts.get(Kind.MEMORY) or amounts.get(Kind.CORES) or math.inf

    def ask(self, amounts: Amounts, why: object) -> None:
        """Ask for these amounts from now on."""
        self.amounts, self.why = amounts, why
        self.demand = demand(amounts)


class Queue(Protocol):
    """The order of waiting tasks, seen through a window that starts at position 0.

    Laws: what is added is seen sooner or later, if what is seen is taken; nothing is
    seen twice; `look` does not change anything; while nothing is added or taken, the
    order of what is seen does not change.
    """

    def __len__(self) -> int:
        """How many wait, seen or not."""
        ...

    def add(self, waiting: Waiting) -> bool:
        """Let a task wait; whether it is seen at once."""
        ...

    def look(self, position: int) -> Waiting | None:
        """Who is at this position of those seen; None beyond the last one."""
        ...

    def take(self, position: int) -> Waiting:
        """Remove and return who is at this position of those seen."""
        ...

    def remove(self, waiting: Waiting) -> None:
        """Forget a task that waits, seen or not."""
        ...

    def lines(self) -> Iterator[tuple[Waiting, int]]:
        """One task of each line, seen or not, and how many wait in it."""
        ...

    def finished(self, category: str, wall_s: float) -> None:
        """Take note that a task has finished, and how long that took."""
        ...

    def arrange(self) -> None:
        """Let the order of what is seen follow what was learned since the last time."""
        ...


_Placed = tuple[float, int, Waiting]
"""A task in its line: by priority, the highest first, and then as they came."""


class _Line:
    """Tasks that are alike: those that are seen, sorted, and the others in a heap.

    A task that is removed from the heap stays there until it is first, or until most are gone.
    """

    __slots__ = ("behind", "gone", "seen")

    def __init__(self) -> None:
        self.seen: list[_Placed] = []
        self.behind: list[_Placed] = []
        self.gone: set[Waiting] = set()

    def __len__(self) -> int:
        return len(self.seen) + len(self.behind) - len(self.gone)

    def next(self) -> _Placed:
        """Remove and return the first of the heap."""
        placed = heappop(self.behind)
        self._tidy()
        return placed

    def forget(self, waiting: Waiting) -> None:
        """Let a task of the heap be gone."""
        self.gone.add(waiting)
        if 2 * len(self.gone) > len(self.behind):
            self.behind = [placed for placed in self.behind if placed[2] not in self.gone]
            heapify(self.behind)
            self.gone.clear()
        self._tidy()

    def _tidy(self) -> None:
        while self.gone and self.behind[0][2] in self.gone:
            self.gone.remove(heappop(self.behind)[2])


class Lines:
    """Waiting tasks in any order, of those with the highest priority.

    Of each line the first `depth` are seen.

    >>> queue = Lines(depth=1)
    >>> [queue.add(Waiting(TaskInfo(name, "align"), "align")) for name in "abc"]
    [True, False, False]
    >>> queue.add(Waiting(TaskInfo("d", "sort"), "sort"))
    True
    >>> queue.take(0).task.task_id, queue.look(0).task.task_id, queue.look(1).task.task_id
    ('a', 'b', 'd')
    """

    def __init__(self, order: Order = FIRST_COME, *, depth: int = 2) -> None:
        if depth < 1:
            raise ValueError(f"depth must be 1 or more, not {depth}")
        self._order = order
        self._depth = depth
        self._progress = Progress()
        self._arrivals = 0
        self._waiting = self._added = 0
        self._seen: list[Waiting] = []
        self._lines: dict[Hashable, _Line] = {}

    def __len__(self) -> int:
        return self._waiting

    def add(self, waiting: Waiting) -> bool:
        self._waiting += 1
        if not waiting.arrival or self._order.renews:
            self._arrivals += 1
            waiting.arrival = self._arrivals
        if self._order.tells_apart is not None:
            waiting.line = waiting.line, self._order.tells_apart(waiting)
        line = self._lines.get(waiting.line)
        if line is None:
            line = self._lines[waiting.line] = _Line()
        self._added += 1
        placed = -waiting.task.priority, self._added, waiting
        if len(line.seen) == self._depth:
            last = line.seen[-1]
            if placed > last:
                heappush(line.behind, placed)
                return False
            line.seen.pop()
            self._seen.remove(last[2])
            heappush(line.behind, last)
        self._show(line, placed)
        return True

    def look(self, position: int) -> Waiting | None:
        return self._seen[position] if position < len(self._seen) else None

    def take(self, position: int) -> Waiting:
        waiting = self._seen.pop(position)
        self._leave(waiting)
        return waiting

    def remove(self, waiting: Waiting) -> None:
        line = self._lines[waiting.line]
        if any(seen is waiting for _, _, seen in line.seen):
            self._seen.remove(waiting)
            self._leave(waiting)
        else:
            self._waiting -= 1
            line.forget(waiting)
            if not len(line):
                del self._lines[waiting.line]

    def lines(self) -> Iterator[tuple[Waiting, int]]:
        for line in self._lines.values():
            yield line.seen[0][2], len(line)

    def finished(self, category: str, wall_s: float) -> None:
        if self._order.follows:
            self._progress.add(category, wall_s)

    def arrange(self) -> None:
        if self._order.follows:
            self._seen.sort(key=self._turn)

    def _leave(self, waiting: Waiting) -> None:
        """Let the next one of its line be seen instead of this."""
        self._waiting -= 1
        line = self._lines[waiting.line]
        line.seen = [placed for placed in line.seen if placed[2] is not waiting]
        if line.behind:
            self._show(line, line.next())
        elif not line.seen:
            del self._lines[waiting.line]

    def _show(self, line: _Line, placed: _Placed) -> None:
        insort(line.seen, placed)
        insort(self._seen, placed[2], key=self._turn)

    def _turn(self, waiting: Waiting) -> Turn:
        return -waiting.task.priority, *self._order.turn(waiting, self._progress), waiting.arrival


def alike(task: TaskInfo, failures: int) -> Hashable:
    """What tasks of one line have in common: they are going to ask for about as much."""
    size = _magnitude(task.features.get("input_size", 0.0))
    requested = _magnitude(task.requested.get(Kind.MEMORY, 0.0))
    return task.category, failures, size, requested


def _magnitude(amount: float) -> int:
    return math.frexp(amount)[1] if 0 < amount < math.inf else 0
