"""Reading /proc: what a process holds, what it has used, and who came out of it.

What cannot be read is None: the process is gone, it belongs to somebody else, or this is
not Linux.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

IS_LINUX = sys.platform.startswith("linux")
TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

SCANS_OF_A_STRANGER = 50
"""After so many scans strangers are read again: their pids may have got new owners."""

PACKERS = ("work_queue_worker", "vine_worker")
"""Programs that pack tasks themselves; a host may have several."""

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37


class Memory(NamedTuple):
    """The memory of one process, in bytes."""

    held: int
    """Anonymous and shared pages, also those in swap and huge ones: what the task is charged."""
    file: int
    """Pages of mapped files: page cache, not charged."""
    highest: int
    """The most pages of all sorts since the last `forget_highest`."""
    shared: int
    """Of what is held, pages of shared memory: others may hold the same."""


class Shares(NamedTuple):
    """What is a process's own if each page is divided by the number of those that hold it."""

    anonymous: int
    """All its anonymous pages, and its part of them."""
    of_anonymous: int
    of_shared: int
    """Its part of pages of shared memory."""


class Stat(NamedTuple):
    """What /proc/PID/stat says of a process."""

    name: str
    """Of its program, at most 15 letters."""
    state: str
    ppid: int
    cpu_s: float
    """Its own time and that of its children that it has waited for."""
    started: int
    """Ticks after boot: with the pid, the identity of a process."""
    stack: int
    """Where its stack begins: the same as in the process that it was forked from, until it
    runs another program."""


Known = tuple[int, Stat]
"""A process, by its number and what was seen of it."""


def read(path: str) -> bytes | None:
    """The whole of a small file, or None."""
    try:
        return _read(path)
    except OSError:
        return None


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)


def write(path: str, text: bytes) -> bool:
    """Whether `text` could be written to a file that is there."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(descriptor, text)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def memory(pid: int | str = "self") -> Memory | None:
    """What a process holds now; None if it has ended."""
    text = read(f"/proc/{pid}/status")
    if text is None:
        return None
    start = text.find(b"VmHWM:")
    if start < 0:  # a zombie has no memory
        return None
    highest = _kilobytes(text, b"VmHWM:", start)
    anonymous = _kilobytes(text, b"RssAnon:", start)
    shared = _kilobytes(text, b"RssShmem:", start)
    elsewhere = _kilobytes(text, b"VmSwap:", start) + _kilobytes(text, b"HugetlbPages:", start)
    file = _kilobytes(text, b"RssFile:", start)
    held = anonymous + shared + elsewhere
    return Memory(held << 10, file << 10, highest << 10, shared << 10)


def _kilobytes(text: bytes, name: bytes, start: int) -> int:
    found = text.find(name, start)
    if found < 0:
        return 0
    found += len(name)
    return int(text[found : text.index(b"kB", found)])


def age_s() -> float:
    """For how long this process has been there, to a tick; 0 if that cannot be told."""
    own = stat(os.getpid())
    if own is None or not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - own.started / TICKS_PER_S)


def forget_highest(pid: int | str = "self") -> bool:
    """Let `Memory.highest` begin anew, if this may be done."""
    return write(f"/proc/{pid}/clear_refs", b"5")


def shares(pid: int) -> Shares | None:
    """How much of what a process holds is its own, if each page is divided by its holders.

    Takes 1 ms for every 50 MB, more or less: to be used sparingly.
    """
    text = read(f"/proc/{pid}/smaps_rollup")
    if text is None or b"\nPss_Anon:" not in text:
        return None
    anonymous = _kilobytes(text, b"\nAnonymous:", 0)
    of_anonymous = _kilobytes(text, b"\nPss_Anon:", 0)
    of_shared = _kilobytes(text, b"\nPss_Shmem:", 0)
    return Shares(anonymous << 10, of_anonymous << 10, of_shared << 10)


def stat(pid: int | str = "self") -> Stat | None:
    """The state, parent, CPU time and start of a process."""
    text = read(f"/proc/{pid}/stat")
    if text is None:
        return None
    # The name is in brackets and may hold brackets and blanks.
    start, end = text.index(b"("), text.rindex(b")")
    fields = text[end + 2 :].split()
    ticks = int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])
    return Stat(
        name=text[start + 1 : end].decode(errors="replace"),
        state=fields[0].decode(),
        ppid=int(fields[1]),
        cpu_s=ticks / TICKS_PER_S,
        started=int(fields[19]),
        stack=int(fields[25]),
    )


def pids() -> list[int]:
    """All processes that can be seen."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - some hundred paths would be made each time
    except OSError:
        return []
    return [int(name) for name in names if name[0] in "123456789"]


class Tree:
    """A process and all that came out of it.

    Where the root adopts orphans (`adopt_orphans`), or the `adopter` does, which has no other
    child, nothing can leave the tree, neither by a session of its own nor by the death of the
    process between. Elsewhere what was seen in it once stays in it.
    """

    def __init__(
        self, root: int, without: Iterable[int] = (), *, adopter: int | None = None
    ) -> None:
        self.root = root
        self.members = {root}
        self._adopter = adopter
        self._without = set(without)
        self._strangers: set[int] = set()
        self._scans = 0

    def scan(self) -> None:
        """Find members that are new, and forget those that are gone.

        Who was a stranger stays one until its pid may belong to another process: only what
        is new since the last scan is read.
        """
        self._scans += 1
        if self._scans % SCANS_OF_A_STRANGER == 0:
            self._strangers.clear()
        present = set(pids()) - self._without
        if not present:  # no descriptor is left to look with
            return
        self.members &= present
        self._strangers &= present
        new = {pid: stat(pid) for pid in present.difference(self.members, self._strangers)}
        parents = {pid: found.ppid for pid, found in new.items() if found is not None}
        joined = True
        while joined:  # a child's pid may be lower than its parent's
            joining = [
                pid
                for pid, parent in parents.items()
                if parent in self.members or parent == self._adopter
            ]
            self.members.update(joining)
            for pid in joining:
                del parents[pid]
            joined = bool(joining)
        self._strangers.update(parents)

    def cpu_s(self) -> float:
        """The CPU time of all members, and of those that their parents have waited for."""
        found = (stat(pid) for pid in self.members)
        return sum(member.cpu_s for member in found if member is not None)


def descendants(root: int, *, adopter: int | None = None) -> list[int]:
    """All that came out of a process, without itself."""
    tree = Tree(root, adopter=adopter)
    tree.scan()
    return [pid for pid in tree.members if pid != root]


def children(pid: int) -> list[int] | None:
    """Return the children of a process with one thread; None where the kernel does not list them.

    It takes a look at one file, not at all processes.
    """
    listed = read(f"/proc/{pid}/task/{pid}/children")
    return None if listed is None else [int(child) for child in listed.split()]


def ancestor(names: Iterable[str]) -> Known | None:
    """The nearest process that this one came out of and that runs one of these programs."""
    wanted = {name[:15] for name in names}
    found = stat()
    while found is not None and found.ppid > 1:
        pid = found.ppid
        found = stat(pid)
        if found is not None and found.name in wanted:
            return pid, found
    return None


def packer() -> Known | None:
    """The worker that this process came out of, if it packs tasks itself."""
    return ancestor(PACKERS)


def patron() -> Known | None:
    """Whom this process works for, if known: its death would leave a call running unwanted.

    Work Queue and TaskVine start the tasks of a worker that was killed elsewhere; a worker of
    Parsl's own looks for its manager, which is its parent, only between two tasks.
    """
    if "PARSL_WORKER_POOL_ID" not in os.environ:
        return packer()
    found = stat(os.getppid())
    return None if found is None else (os.getppid(), found)


def is_same(pid: int, before: Stat) -> bool:
    """Whether a process is still the one that it was."""
    found = stat(pid)
    if found is None:
        return is_alive(pid)
    return found.started == before.started and found.state not in "ZX"


def is_alive(pid: int) -> bool:
    """Whether a process is there and has not ended; as far as can be told without descriptors."""
    found = stat(pid)
    if found is not None:
        return found.state not in "ZX"
    try:
        _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError:  # no descriptor is left: that says nothing of the process
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def kill(victims: Iterable[int]) -> None:
    """Kill processes, as far as they are there and may be killed."""
    for pid in victims:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _prctl(option: int, value: Any) -> bool:
    try:
        return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0)) == 0
    except (OSError, AttributeError):
        return False


def call_me(name: bytes) -> None:
    """Set the name that `ps` and `top` show for this process, at most 15 letters."""
    _prctl(PR_SET_NAME, name)


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent ends, which may just have happened."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> bool:
    """Become the parent of all descendants whose parents end."""
    return _prctl(PR_SET_CHILD_SUBREAPER, 1)


def can_adopt_orphans() -> bool:
    """Whether the system knows how to."""
    value = ctypes.c_int()
    return _prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(value))
