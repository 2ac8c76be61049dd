"""What the members of a tree are charged together: pages that they share count once.

The kernel divides each page by the number of processes that hold it, but to be told so
takes 1 ms for every 50 MB. So that is asked for sparingly, to learn how much of what each
member holds is other members'. In between that is taken off: anonymous pages that are new
are a process's own, and shared memory is what it was, or all of who has most of it: who comes
to a page may well find it charged to another.
"""

from __future__ import annotations

from time import perf_counter, thread_time
from typing import NamedTuple

from . import probe
from .probe import Memory

SHARE, SHARE_NEAR_LIMIT = 0.1, 0.2
"""At most this share of the time is spent on looking, while it matters."""
STEADY, STEADY_SHARE = 0.02, 0.05
"""If sums stay within the first, we look once in the second of the time that has passed:
in the third hour of a call every nine minutes."""
SAME = 256 * 1024
"""Two readings of one memory differ by less."""


class Part(NamedTuple):
    """How much of a member's memory is not charged to it."""

    off: int
    """Anonymous pages that others are charged for."""
    of_shared: int
    """Pages of shared memory that it is charged for."""
    is_forked: bool


class Charge:
    """The charge of a tree above what its root held before its call.

    That is `fresh`, and beside it what `earlier` calls have left there. `twin` is an idle process
    that the root was forked from: it holds what a fresh root holds, and so tells by how many
    those pages are shared.
    """

    def __init__(self, root: int, fresh: int, twin: int | None, earlier: int = 0) -> None:
        self.is_largest_child_forked = False
        self._largest_child = 0
        self._root = root
        self._fresh = fresh
        self._earlier = earlier
        self._twin = twin
        self._stack = 0
        self.shared = 0
        """Of the last estimate, pages of shared memory."""
        self._parts: dict[int, Part] = {}
        self._began = perf_counter()
        self._next = self._next_if_steady = 0.0
        self._upper_then = 0

    def separate(self, members: dict[int, Memory]) -> dict[int, Memory]:
        """The members that have a memory of their own.

        A child that is about to run a program may still be in its parent's.
        """
        root = members.get(self._root)
        if root is None or len(members) == 1:
            return members
        return {
            pid: found
            for pid, found in members.items()
            if pid == self._root
            or abs(found.held - root.held) > SAME
            or abs(found.file - root.file) > SAME
            or not self._is_forked(pid)
        }

    def estimate(self, members: dict[int, Memory]) -> int:
        """The charge, as far as it is known without looking."""
        if len(members) == 1 and self._root in members:
            self.shared = members[self._root].shared
            return members[self._root].held - self._fresh - self._earlier
        for gone in self._parts.keys() - members.keys():
            del self._parts[gone]
        total = of_shared = most_shared = 0
        for pid, found in members.items():
            part = self._parts.get(pid)
            if part is None or self._runs_another_program(pid, part, found):
                part = self._parts[pid] = self._first_part(pid, found)
            total += max(0, found.held - found.shared - part.off)  # some has been given back
            of_shared += min(found.shared, part.of_shared)
            most_shared = max(most_shared, found.shared)
            if pid != self._root and found.held > self._largest_child:
                self._largest_child = found.held
                self.is_largest_child_forked = part.is_forked
        self.shared = max(of_shared, most_shared)
        return total + self.shared - self._earlier

    def _first_part(self, pid: int, found: Memory) -> Part:
        """A member that is new has all its pages from another, unless it runs its own program."""
        if pid == self._root:
            return Part(self._fresh, found.shared, is_forked=True)
        if self._is_forked(pid):
            return Part(found.held - found.shared, 0, is_forked=True)
        return Part(0, found.shared, is_forked=False)

    def _runs_another_program(self, pid: int, part: Part, found: Memory) -> bool:
        """Whether one that was forked has become another program, and let all its pages go."""
        return part.is_forked and found.held < part.off / 2 and not self._is_forked(pid)

    def _is_forked(self, pid: int) -> bool:
        """Whether a member runs the program of the root and so began with its pages."""
        if not self._stack:
            root = probe.stat(self._root)
            self._stack = root.stack if root else 0
        found = probe.stat(pid)
        return bool(found and self._stack and found.stack == self._stack)

    def is_worth_a_look(self, upper: int, peak: int, limit: float | None, now: float) -> bool:
        """Whether shared pages decide on a new peak or a breach, and were not just looked at."""
        is_near = limit is not None and upper > limit
        if now < self._next or not (is_near or upper > peak):
            return False
        is_steady = abs(upper - self._upper_then) <= STEADY * upper
        return is_near or not is_steady or now >= self._next_if_steady

    def look(self, members: dict[int, Memory], upper: int, limit: float | None) -> None:
        """Have the kernel divide what is shared."""
        began = thread_time()  # on a busy machine it is not we who take long
        before = self._part_of_fresh()
        shares = {pid: probe.shares(pid) for pid in members}
        base = self._part_of_fresh()
        after = {pid: probe.memory(pid) for pid in members}
        has_ended = None in after.values()
        has_forked = before is not None and base is not None and abs(base - before) > SAME
        if not has_ended and not has_forked:  # else not all were divided by the same number
            self._parts.update(self._divided(members, shares, base))
        now, took_s = perf_counter(), thread_time() - began
        is_near = limit is not None and upper > limit
        self._next = now + took_s / (SHARE_NEAR_LIMIT if is_near else SHARE)
        self._next_if_steady = now + STEADY_SHARE * (now - self._began)
        self._upper_then = upper

    def _part_of_fresh(self) -> int | None:
        """One process's part of the pages of a fresh root, if there is a twin to tell it."""
        found = probe.shares(self._twin) if self._twin else None
        return found and found.of_anonymous

    def _divided(
        self,
        members: dict[int, Memory],
        shares: dict[int, probe.Shares | None],
        base: int | None,
    ) -> dict[int, Part]:
        """The parts of all members; `base` is one process's part of the pages of a fresh root."""
        forked = {pid for pid in members if self._is_forked(pid)}
        found = {}
        for pid, held in members.items():
            share = shares[pid]
            if share is None:  # then the sum is the best there is
                off, of_shared = 0, held.shared
                own = self._fresh
            else:
                off = max(0, share.anonymous - share.of_anonymous)
                of_shared = min(held.shared, share.of_shared)
                own = self._fresh // max(1, len(forked)) if base is None else base
            if pid in forked:
                off += own
            found[pid] = Part(off, of_shared, pid in forked)
        return found
