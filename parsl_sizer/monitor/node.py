"""What a worker may use of this machine: what was granted, and no more than there is."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time
from functools import lru_cache
from pathlib import Path

from . import cgroup, probe
from .grant import Grant, granted

FOR_S = 60.0
"""Facts are read again after this time: disks fill."""

SPARE = 0.05
"""Who has less than this share of its memory left is short of it."""

_known: dict[str, float] = {}
_until = 0.0


def facts() -> dict[str, float]:
    """Cores, memory and disk; what cannot be read is absent."""
    global _known, _until
    now = time.monotonic()
    if now >= _until:
        read = {"cores": cores(), "memory": memory(), "disk": disk()}
        _known = {kind: amount for kind, amount in read.items() if amount is not None}
        _until = now + FOR_S
    return _known


def name() -> str:
    """Return the name of this node: a host, and the job if that is granted a part of it."""
    grant, host = grant_here(), socket.gethostname()
    return host if grant.name is None else f"{host} {grant.name}"


@lru_cache(maxsize=1)
def grant_here() -> Grant:
    """Return what the batch system has granted this process, by its environment at first sight."""
    return granted(os.environ, socket.gethostname())


def cores() -> float | None:
    """Return how many processors this process may run on, by its group's quota and its grant."""
    said = [processors(), cgroup.cores(cgroup.place("cpu")), *grant_here().cores]
    return min((number for number in said if number), default=None)


def processors() -> float | None:
    """Return how many processors the workers here may run on."""
    if not hasattr(os, "sched_getaffinity"):
        return float(os.cpu_count() or 0) or None
    if "PARSL_WORKER_COUNT" in os.environ:  # HTEX may bind each worker to some of its manager's
        with contextlib.suppress(OSError):
            return float(len(os.sched_getaffinity(os.getppid())))
    return float(len(os.sched_getaffinity(0)))


def memory() -> float | None:
    """Return the memory of the machine, of this process's group, or of its grant: the least.

    Where some of the cores are granted and nothing is said of memory, memory is in proportion to
    them: jobs beside this one are granted theirs in the same way. Whoever is granted as many as
    there are physical cores has the machine: batch systems may count these.
    """
    try:
        total = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError, TypeError):
        total = 0.0
    grant, limit = grant_here(), cgroup.memory(cgroup.place("memory"))
    said = [total, limit, grant.memory]
    is_unsaid = grant.memory is None and not (limit and limit < total)
    if is_unsaid and grant.cores and (count := os.cpu_count()):
        is_bound = (processors() or count) < count
        there = count if is_bound else min(count, physical_cores() or count)
        said.append(total * min(1.0, grant.cores[-1] / there))
    return min((amount for amount in said if amount), default=None)


@lru_cache(maxsize=1)
def physical_cores() -> int | None:
    """Return how many cores the machine has, however many threads each of them runs."""
    listed = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list")
    return len({probe.read(str(path)) for path in listed}) or None


def is_short_of_memory() -> bool:
    """Whether hardly any memory of the machine, or of this process's group, is left."""
    lines = (probe.read("/proc/meminfo") or b"").splitlines()
    sizes = {name: rest.split() for name, _, rest in (line.partition(b":") for line in lines)}
    try:
        left = int(sizes[b"MemAvailable"][0]) / int(sizes[b"MemTotal"][0])
    except (KeyError, IndexError, ValueError, ZeroDivisionError):
        left = 1.0
    return min(left, cgroup.memory_left(cgroup.place("memory"))) < SPARE


def disk() -> float | None:
    """What may still be written where temporary files go."""
    try:
        found = os.statvfs(tempfile.gettempdir())
    except (AttributeError, OSError):
        return None
    return float(found.f_bavail * found.f_frsize)


@lru_cache(maxsize=1)
def can_be_supervised() -> bool:
    """Whether processes can be looked at and ended here: on Linux, with /proc in its place."""
    return probe.IS_LINUX and probe.memory() is not None and bool(probe.pids())
