"""What a tree of processes uses, looked at from outside while it runs.

Each sample resets the high-water marks that it reads, so that between two samples no spike
is missed however short, and the next one begins where this one looked. Not so in the process
that makes the call itself: whoever holds the interpreter can spike between reading and
resetting, and its own account has the mark of the whole call.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter, thread_time
from typing import Any

from . import probe
from .charge import Charge
from .course import Cores, Series
from .files import Files
from .probe import Memory, Tree

SHARE = 0.02
"""At most this share of the time goes into looking for new processes."""
CPU_EVERY_S = 0.5
FILES_OF_A_CHILD = 4_000_000
"""Mapped files of a small program, taken off where only the total is known."""


class Sampler:
    """The peak of memory, of cores, and the course of memory over time.

    Memory counts above what the root held when it was `fresh`, and what `earlier` calls have left.
    """

    def __init__(
        self,
        root: int,
        *,
        fresh: int,
        earlier: int = 0,
        limit: float | None = None,
        points: int = 0,
        twin: int | None = None,
        adopter: int | None = None,
        without: Iterable[int] = (),
        began: float | None = None,
        resets_root: bool = True,
        files: Files | None = None,
    ) -> None:
        self.began = perf_counter() if began is None else began
        self.tree = Tree(root, without, adopter=adopter)
        self.base = fresh + earlier
        self.limit = limit
        self.peak = 0
        self.now = 0
        self.samples = 0
        self.most_file = 0
        """The most that the root has had mapped of files while its mark was not reset."""
        self.is_root_alive = True
        self.series = Series(points)
        self.cores = Cores()
        self._charge = Charge(root, fresh, twin, earlier)
        self.in_files = 0
        """Of what was charged last, what is not mapped."""
        self._files = files
        self._last: dict[int, Memory] = {}
        self._stubborn: set[int] = set() if resets_root else {root}
        self._next_scan = self._next_cpu = 0.0

    def sample(self) -> float:
        """Look at all members once; gives the CPU seconds that this takes each time.

        Looking for new members, and at what they share, is done less often if it takes long.
        """
        at, began = perf_counter(), thread_time()
        if at >= self._next_scan:
            self.tree.scan()
            self._next_scan = at + (thread_time() - began) / SHARE
            began = thread_time()
        members: dict[int, Memory] = {}
        above = 0
        for pid in self.tree.members:
            found = probe.memory(pid)
            if found is not None:
                members[pid] = found
                if pid == self.tree.root and pid in self._stubborn:
                    self.most_file = max(self.most_file, found.file)
                above += self._highest(pid, found) - found.held
        took_s = thread_time() - began
        self.samples += 1
        if self.tree.root not in members:
            self.is_root_alive = probe.is_alive(self.tree.root)
            if self.is_root_alive:  # it cannot be read now: nothing is to be noted
                return took_s
        self._last = members = self._charge.separate(members)
        self._note(members, above, at)
        if at >= self._next_cpu:
            self._next_cpu = at + CPU_EVERY_S
            self.look_at_cpu()
        return took_s

    @property
    def last_of_root(self) -> Memory | None:
        """What the root had when it was looked at last."""
        return self._last.get(self.tree.root)

    @property
    def is_largest_child_forked(self) -> bool:
        """Whether the largest child that was seen ran the program of the root."""
        return self._charge.is_largest_child_forked

    def look_at_cpu(self) -> None:
        """Take note of the CPU time used."""
        self.cores.add(perf_counter() - self.began, self.tree.cpu_s())

    def _highest(self, pid: int, found: Memory) -> int:
        """The most that a process can have held since the last sample, files taken off."""
        before = self._last.get(pid)
        if pid in self._stubborn:
            if before is None or found.highest <= before.highest:
                return found.held
        elif not probe.forget_highest(pid):
            self._stubborn.add(pid)
        file = found.file if before is None else max(found.file, before.file)
        if pid == self.tree.root:
            file = max(file, self.most_file)
        return max(found.held, found.highest - file)

    def _note(self, members: dict[int, Memory], above: int, at: float) -> None:
        if len(members) > 1:
            upper = sum(found.held for found in members.values()) + above - self.base
            if self._charge.is_worth_a_look(upper, self.peak, self.limit, at):
                self._charge.look(members, upper, self.limit)
        before = self.in_files
        self.now = self._charged(members)
        # What is in files now may have been mapped meanwhile: it counts once.
        above = max(0, above - max(0, self.in_files - before))
        self.peak = max(self.peak, self.now + above)
        self.series.add(at - self.began, self.now + above)

    def verify(self) -> int:
        """What the tree is charged now, shared pages looked at, before it is stopped for that."""
        if len(self._last) > 1:
            self._charge.look(self._last, 0, None)
            self.now = self._charged(self._last)
        return self.now

    def _charged(self, members: dict[int, Memory]) -> int:
        charged = max(0, self._charge.estimate(members))
        if self._files is not None:
            self.in_files = self._files.look(self._charge.shared, members)
        return charged + self.in_files


def peak_of(head: dict[str, Any], base: int, sampler: Sampler | None, files: Files) -> int:
    """The peak of a call above `base`, by its own account, and by the samples of it, if any.

    The account tells of the time since the last sample.
    """
    after = Memory(*head["after"])
    before = Memory(*head["before"])
    if sampler is not None:
        before = sampler.last_of_root or before
    most: int = after.held
    if "highest" in head:
        file = max(after.file, before.file, sampler.most_file if sampler is not None else 0)
        most = max(most, head["highest"] - file)
    most += head.get("left", 0) - base
    child = head.get("child", 0)
    if child > max(after.highest, head.get("highest", 0)):
        # Children that lived between two samples are known by the largest of them. What was
        # forked for a program has had the size of its parent: only a larger one tells something.
        has_parents_pages = sampler is not None and sampler.is_largest_child_forked
        own = 0 if has_parents_pages else after.held
        most = max(most, child - FILES_OF_A_CHILD + own - base)
    if sampler is not None or files.has_grown():
        in_files = files.look(after.shared, sampler.tree.members if sampler else (), again=True)
        all_along = min(in_files, sampler.in_files if sampler else 0)
        most = max(most + all_along, after.held - base + in_files)
        files.end()
    return max(0, most, sampler.peak if sampler else 0)
