"""Control groups, version 1 and 2 behind one interface.

They limit as a second line of defence, well above what the supervisor allows, and they
tell for sure that the kernel killed for lack of memory. What is measured comes from /proc:
a group's own figures count page cache.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from pathlib import Path
from typing import NamedTuple

from . import probe

ROOT = Path("/sys/fs/cgroup")
PREFIX = "parsl_sizer-"
UNLIMITED = 1 << 60
"""Version 1 says "no limit" with a number close to 2**63."""
NAMES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    2: ("memory.max", "memory.current"),
}
"""The files with the limit of memory and its use, by version."""


class Place(NamedTuple):
    """Where a controller has a process."""

    version: int
    folder: Path
    mount: Path

    def upwards(self) -> list[Path]:
        """This folder and those above it, up to the mount: all their limits hold."""
        return [p for p in (self.folder, *self.folder.parents) if p.is_relative_to(self.mount)]


def place(controller: str, root: Path = ROOT, process: str = "/proc/self") -> Place | None:
    """The group of a process for a controller, as mounted here."""
    unified = None
    for line in _text(Path(process, "cgroup")).splitlines():
        number, names, path = line.split(":", 2)
        if controller in names.split(","):
            return _mounted(1, root / controller, path)
        if number == "0":
            unified = path
    for mount in (root, root / "unified"):
        if unified and controller in _text(mount / "cgroup.controllers").split():
            return _mounted(2, mount, unified)
    return None


def _mounted(version: int, mount: Path, path: str) -> Place | None:
    """In a container the path is that of the host, and the mount shows only what is below it."""
    for folder in (mount / path.lstrip("/"), mount):
        if folder.is_dir():
            return Place(version, folder, mount)
    return None


def memory(found: Place | None) -> float | None:
    """The lowest limit of memory that holds in a group."""
    if found is None:
        return None
    name, _ = NAMES[found.version]
    limits = [_number(_text(folder / name)) for folder in found.upwards()]
    return min((limit for limit in limits if limit is not None), default=None)


def memory_left(found: Place | None) -> float:
    """The least share of its limit that is left to a group, or to one above it."""
    if found is None:
        return 1.0
    shares = [1.0]
    for folder in found.upwards():
        limit, use = (_number(_text(folder / name)) for name in NAMES[found.version])
        if limit and use is not None:
            counts = _counts(folder / "memory.stat")
            within = "total_" if found.version == 1 else ""  # with the groups below it
            cached = sum(counts.get(f"{within}{name}_file", 0.0) for name in ("active", "inactive"))
            shares.append(1.0 - (use - cached) / limit)
    return min(shares)


def cores(found: Place | None) -> float | None:
    """The lowest quota of processors that holds in a group."""
    if found is None:
        return None
    quotas = [_quota(found.version, folder) for folder in found.upwards()]
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota(version: int, folder: Path) -> float | None:
    if version == 1:
        words = [_text(folder / name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
    else:
        words = _text(folder / "cpu.max").split()
    quota, period = (_number(word) for word in (*words, "", "")[:2])
    return quota / period if quota is not None and quota > 0 and period else None


def _text(path: Path) -> str:
    return (probe.read(str(path)) or b"").decode(errors="replace")


def _number(text: str) -> float | None:
    try:
        value = int(text)
    except ValueError:  # "max", or nothing
        return None
    return None if value >= UNLIMITED else float(value)


def kills(folder: Path, version: int) -> int | None:
    """How often the kernel has killed in a group for lack of memory."""
    name = "memory.oom_control" if version == 1 else "memory.events"
    count = _counts(folder / name).get("oom_kill")
    return None if count is None else int(count)


def _counts(path: Path) -> dict[str, float]:
    """What a file with a name and a number in each line says."""
    words = (line.partition(" ") for line in _text(path).splitlines())
    found = {name: _number(number) for name, _, number in words}
    return {name: number for name, number in found.items() if number is not None}


class Group:
    """A group of our own, for one runner at a time and all that comes out of it."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder = folder
        self.version = version
        self.layer = f"cgroup-v{version}"
        self._limit: int | None = None
        self._kills = kills(folder, version) or 0

    def join(self) -> bool:
        """Put this process into the group, and so all that it forks from now on."""
        return probe.write(str(self.folder / "cgroup.procs"), b"0")

    def limit(self, amount: int | None) -> None:
        """Have the kernel stop it at so many bytes, page cache included."""
        if amount == self._limit:
            return
        name, _ = NAMES[self.version]
        none = b"-1" if self.version == 1 else b"max"
        if probe.write(str(self.folder / name), none if amount is None else b"%d" % amount):
            self._limit = amount

    def shmem(self) -> int:
        """Pages of tmpfs, memfd and shared memory that were made in here, mapped or not."""
        return int(_counts(self.folder / "memory.stat").get("shmem", 0))

    def has_killed(self) -> bool:
        """Whether the kernel has killed in here for lack of memory since we last asked."""
        before, self._kills = self._kills, kills(self.folder, self.version) or 0
        return self._kills > before

    def remove(self, patience_s: float = 1.0) -> None:
        """Remove the group, once the last process in it is gone."""
        until = time.monotonic() + patience_s
        while True:
            try:
                self.folder.rmdir()
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > until:
                    return
                time.sleep(0.002)
            else:
                return


def room(found: Place | None) -> tuple[Path | None, str]:
    """Where we can make a group with a limit of memory, and if nowhere, why.

    In version 2 a group that has processes can have no controlled groups below it, the root
    excepted, so that ours may have to be made beside the one we are in.
    """
    if found is None:
        return None, "no memory controller is mounted below /sys/fs/cgroup"
    if found.version == 1:
        if os.access(found.folder, os.W_OK):
            return found.folder, "the memory controller of version 1 is writable"
        return None, f"{found.folder} cannot be written to by this user"
    for folder in found.upwards()[:2]:
        if "memory" in _text(folder / "cgroup.subtree_control").split():
            if os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK):
                return folder, "a subtree with the memory controller is delegated to this user"
            return None, f"{folder} is not delegated to this user"
    return None, f"the memory controller is not enabled for groups below {found.folder}"


def make(found: Place | None) -> Group | None:
    """A new group for our runners, or None where that is not possible."""
    above, _ = room(found)
    if found is None or above is None:
        return None
    _sweep(above)
    folder = above / f"{PREFIX}{os.getpid()}-{time.monotonic_ns()}"
    try:
        folder.mkdir()
    except OSError:
        return None
    return Group(folder, found.version)


def _sweep(above: Path) -> None:
    """Remove the groups of workers that are dead; one with processes in it cannot be removed."""
    with contextlib.suppress(OSError):
        for folder in above.glob(f"{PREFIX}*"):
            owner = folder.name.removeprefix(PREFIX).partition("-")[0]
            if not Path("/proc", owner).exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()
