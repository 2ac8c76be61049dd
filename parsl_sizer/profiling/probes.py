"""All probes, one after the other, within a budget of time."""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from . import facts, processor, tools
from .processor import Measured
from .storage import PlainFile

FEATURES = (
    "cpu_single",
    "cpu_multi",
    "memory_bandwidth",
    "io_write",
    "io_read",
    "io_random_read",
    "io_random_write",
)
"""What is measured: events, bytes and operations per second."""
IO = FEATURES[3:]
STEPS = len(FEATURES)
SECONDS, LEAST_S = 30.0, 1.0
"""What all of it takes, about, by default and at least."""
LARGEST, SMALLEST = 2**30, 2**24
"""Bytes of the file that is written, at most; with less room than this there is none."""
IN_MEMORY = ("tmpfs", "ramfs")
"""File systems without a disk."""

Way = Callable[[float], "Measured | None"]
"""Measures for so long; None if it cannot."""
Told = dict[str, dict[str, float] | dict[str, str]]


def measure(
    seconds: float = SECONDS,
    folder: str | None = None,
    extra: Iterable[str] = (),
    use_tools: bool = True,
    tick: Callable[[str], None] = lambda feature: None,
) -> Told:
    """The features of this machine, and how each was measured or why it was not.

    The file is written in `folder`, by default where temporary files go. `tick` is called
    before each of the `STEPS`.
    """
    share_s = seconds / (STEPS + 1)  # the last one is for starting and ending programs
    features: dict[str, float] = {}
    methods: dict[str, str] = {}

    def take(feature: str, tool: Way, own: Way) -> None:
        tick(feature)
        why = "not measured"
        for way in (tool, own) if use_tools else (own,):
            try:
                found = way(share_s)
            except (OSError, ValueError, MemoryError, subprocess.SubprocessError) as error:
                why = f"not measured: {error!r:.200}"
                continue
            if found is not None and 0 < found[0] < math.inf:
                features[feature], methods[feature] = found
                return
        methods[feature] = why

    # First, as later it would be ourselves who are busy.
    for fact, look_up in (("cpu_idle", facts.cpu_idle), ("gpus", facts.gpus)):
        if (amount := look_up()) is not None:
            features[fact] = amount
    for feature, count in (("cpu_single", 1), ("cpu_multi", processor.cores())):
        take(feature, partial(tools.speed, count), partial(processor.speed, count))
    take("memory_bandwidth", tools.bandwidth, processor.bandwidth)
    try:
        with _file(folder) as (path, room):
            fio, plain = tools.Fio(path, room), PlainFile(path, room)
            take("io_write", fio.write, plain.write)  # first: the others read what it wrote
            take("io_read", fio.read, plain.read)
            take("io_random_read", fio.random_read, plain.random_read)
            take("io_random_write", fio.random_write, plain.random_write)
            if in_memory(path):
                methods |= {name: f"{methods[name]}, a disk in memory" for name in IO}
    except OSError as error:
        methods |= dict.fromkeys(IO, f"not measured: {error}")
    features |= facts.extras(extra)
    return {"features": features, "methods": methods}


@contextmanager
def _file(folder: str | None) -> Iterator[tuple[Path, int]]:
    """A new file that is gone afterwards, and how many bytes may be written to it."""
    with tempfile.TemporaryDirectory(prefix="parsl_sizer-profile-", dir=folder) as place:
        found = os.statvfs(place)
        room = min(LARGEST, found.f_bavail * found.f_frsize // 4)
        if room < SMALLEST:
            raise OSError(f"there is no room for a file of {SMALLEST >> 20} MiB in {place}")
        yield Path(place, "file"), room


def in_memory(path: Path, mounts: Path = Path("/proc/mounts")) -> bool:
    """Whether a file is on a disk that is only pretended, as far as the system says."""
    try:
        lines = [line.split() for line in mounts.read_text(errors="replace").splitlines()]
    except OSError:
        return False
    above = [(len(place), kind) for _, place, kind, *_ in lines if path.is_relative_to(place)]
    return max(above, default=(0, ""))[1] in IN_MEMORY
