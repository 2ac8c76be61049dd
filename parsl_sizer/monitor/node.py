"""What this machine has, as far as a worker may use it and can know."""

from __future__ import annotations

import os
import tempfile
import time
from functools import lru_cache

from . import cgroup, probe

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


def cores() -> float | None:
    """The processors this process may run on, or its group's quota if that is less."""
    if hasattr(os, "sched_getaffinity"):
        count: float | None = float(len(os.sched_getaffinity(0)))
    else:
        count = float(os.cpu_count() or 0) or None
    quota = cgroup.cores(cgroup.place("cpu"))
    return count if quota is None or count is None else min(count, quota)


def memory() -> float | None:
    """The memory of the machine, or of this process's group if that is less."""
    try:
        total: float | None = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        total = None
    limits = [
        amount
        for amount in (total, cgroup.memory(cgroup.place("memory")))
        if amount is not None and amount > 0
    ]
    return min(limits, default=None)


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
