"""What this process uses, told by itself: exact, however short a call is."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import tempfile
import time
from typing import Any

from . import probe
from .probe import Memory
from .sandbox import working_folder

FAT = 5_000_000
"""Growth that is worth a collection, which takes tens of ms where much is imported."""
BLINK_S = 0.0003
"""In less than this nobody takes more than 3 MB: pages are cleared at 10 GB/s."""
STALE_S = 0.05
"""Many blinks make a while: so often memory is looked at all the same."""
RSS_UNIT = 1024 if probe.IS_LINUX else 1
"""`ru_maxrss` is in kilobytes, on macOS in bytes."""


class Leftovers:
    """What calls have left in the memory of one process, by their category.

    A call is not charged for what it finds, except for what its own category has left: it may
    live on that (imports, caches), and would need it in a fresh process too. That is the most
    that one call of the category has left: if each leaves something more, none lives on all of
    it. With calls that say that they keep caches, all that they leave is such.

    >>> left = Leftovers(fresh=10)
    >>> left.note("import", 300)
    >>> left.base("import", held=310), left.base("other", held=310)
    (10, 310)
    """

    def __init__(self, fresh: int) -> None:
        self.fresh = fresh
        self._of: dict[str | None, int] = {}

    def base(self, category: str | None, held: int) -> int:
        """What a call is not charged for, of what is held when it begins."""
        return held - max(0, min(self._of.get(category, 0), held - self.fresh))

    def note(self, category: str | None, left: int, *, adds_up: bool = False) -> None:
        """Take note of how much more is held after a call than before."""
        before = self._of.get(category, 0)
        most = before + left if adds_up else left
        if most > before:
            self._of[category] = most


class Tidiness:
    """Keeps a process that makes many calls as it was: small, and in its folder."""

    def __init__(self) -> None:
        self.pid, self.keeper = os.getpid(), os.getppid()
        self.home = working_folder()
        self.last = probe.memory()
        self.read_at = time.perf_counter()
        self.fresh = self.settled = self.last.held if self.last else 0
        self.children = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._first: tuple[str | None, str | None] | None = None

    def use_folder(self, path: str | None) -> None:
        """Have temporary files go to a folder until the next call has another.

        Without one they go where they went at first: the folder of an earlier call may be gone.
        """
        if path is None and self._first is None:
            return
        self._first = self._first or (os.environ.get("TMPDIR"), tempfile.tempdir)
        told, tempfile.tempdir = (path, path) if path is not None else self._first
        if told is None:
            os.environ.pop("TMPDIR", None)
        elif os.environ.get("TMPDIR") != told:
            os.environ["TMPDIR"] = told

    def note(self, now: Memory, at: float) -> None:
        """Take note of what is held when a call has ended."""
        self.last, self.read_at = now, at
        self.fresh = min(self.fresh, now.held)

    def restore(self) -> int:
        """Collect garbage, give memory back, and say what is still held."""
        gc.collect()
        trim()
        now = probe.memory()
        if now is not None:
            self.note(now, time.perf_counter())
            self.settled = now.held
        return self.settled


def trim() -> None:
    """Give memory that is free back to the system, where the C library can."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


class Account:
    """Opened when a call begins and closed when it ends.

    A look at one's memory takes 25 us, so a call begins with what the last one ended with,
    and one that was over in a blink ends with that too.
    """

    def __init__(self, tidiness: Tidiness) -> None:
        self._tidiness = tidiness
        self._forgets = probe.forget_highest()
        self._own = None if tidiness.last else resource.getrusage(resource.RUSAGE_SELF)
        self._cpu_s = time.process_time()
        self._began = time.perf_counter()

    def closed(self) -> dict[str, Any]:
        """The difference, in plain values; with "ready" if there is nothing to tidy up."""
        at = time.perf_counter()
        wall_s = at - self._began
        earlier, children = self._tidiness.children, resource.getrusage(resource.RUSAGE_CHILDREN)
        self._tidiness.children = children
        of_children_s = children.ru_utime + children.ru_stime - earlier.ru_utime - earlier.ru_stime
        cpu_s = time.process_time() - self._cpu_s + of_children_s
        head: dict[str, Any] = {"wall_s": wall_s, "cpu_s": cpu_s}
        if children.ru_maxrss > earlier.ru_maxrss:
            head["child"] = children.ru_maxrss * RSS_UNIT
        if self._own is not None:
            own = resource.getrusage(resource.RUSAGE_SELF)
            if own.ru_maxrss > self._own.ru_maxrss:
                head["maxrss"] = own.ru_maxrss * RSS_UNIT
        else:
            self._add_memory(head, at)
        return head

    def _add_memory(self, head: dict[str, Any], at: float) -> None:
        before = now = self._tidiness.last
        if at - self._began > BLINK_S or at - self._tidiness.read_at > STALE_S:
            now = probe.memory()
        if before is None or now is None:
            return
        if now is not before:
            if self._forgets or now.highest > before.highest:
                head["highest"] = now.highest
            if now.highest - now.held - now.file > FAT:
                probe.forget_highest()  # who looks at the next call may do so before it begins
            self._tidiness.note(now, at)
        head["before"], head["after"] = tuple(before), tuple(now)
        if now.held - self._tidiness.settled <= FAT:
            head["ready"] = now.held
