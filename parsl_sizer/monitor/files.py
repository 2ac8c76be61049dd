"""Memory of files: pages of tmpfs and memfd that a call has made, whether they are mapped or not.

Where a runner has a control group, the kernel counts them. Elsewhere they are those of files that
the processes of the call have open for writing, or had when they were looked at, and those in its
own folder. Another file that they only read, or that appears on a tmpfs meanwhile, may be another
task's: the kernel does not record which process has made it. Only what is new since the call began
counts: of a file that was there before, what it has grown by.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache

from . import probe
from .cgroup import Group
from .sandbox import working_folder

Key = tuple[int, int]
"""Device and inode: one file, by whatever name."""
FOLDER = "/dev/shm"
TICK_S = 0.01
"""File systems note times to some ms."""
SOME = 5_000_000
"""A call of a moment is looked at if so much has been taken of one of `places` meanwhile."""
SHARE = 0.02
"""At most this share of the time goes into looking at open files."""


class Files:
    """What the calls of one process take, one after the other."""

    def __init__(self, group: Group | None = None) -> None:
        self.before = 0
        """What the group held when the call began."""
        self._group = group
        self._pid = self._shared = 0
        self._folder: str | None = None
        self._is_new = True
        self._began = self._next = 0.0
        self._places = places()
        self._free: tuple[float, ...] = ()
        self._paths: dict[Key, str] = {}
        self._there: dict[Key, int] = {}
        self._as_of: tuple[float, ...] = ()
        """What was free, and mapped, when `before` or `_there` was read."""
        self._sizes: dict[Key, int] = {}
        self._made: set[Key] = set()
        """Those that a member has had open, or mapped, for writing: others it may only read."""
        self._mapped: set[Key] = set()
        self._found = 0, 0

    def begin(self, pid: int, shared: int, folder: str | None = None) -> None:
        """Begin a call in a process that has so much shared memory mapped, and a folder of its own.

        All that comes into this folder is the call's, also what was closed before a look.
        """
        self._pid, self._shared = pid, shared
        self._began, self._is_new = time.time() - TICK_S, True
        self._free, self._next = free(self._places), 0.0
        self._paths.clear()
        self._sizes.clear()
        self._made.clear()
        self._mapped = set()
        # What calls that were not looked at have left shows in what is free or mapped.
        as_of = (*self._free, shared) if self._group is not None else self._free[:1]
        if as_of != self._as_of:
            self._as_of = as_of
            if self._group is not None:
                self.before = self._group.shmem()
            else:
                self._there = _sizes_in(FOLDER)
        self._folder = folder if self._group is None and folder and in_memory(folder) else None
        if self._folder is not None:  # what it holds already came with the call, as its input
            self._sizes.update(_sizes_in(self._folder))

    def has_grown(self) -> bool:
        """Whether much memory went into files since, of whatever task: cheap, for short calls."""
        after = free(self._places)
        return any(had - has >= SOME for had, has in zip(self._free, after, strict=True))

    def look(self, shared: int, members: Iterable[int] = (), *, again: bool = False) -> int:
        """What the call has made, without the shared memory that it has mapped since it began."""
        shared = max(0, shared - self._shared)
        if self._group is not None:
            here = self._group.shmem()
            if self._is_new:  # of what others had left, some may be gone
                self.before, self._is_new = min(self.before, here), False
            return max(0, here - self.before - shared)
        now = time.perf_counter()
        if again or now >= self._next:
            began = time.thread_time()  # on a busy machine it is not we who take long
            self._found = self._take_stock(tuple(members) or (self._pid,))
            self._next = now + (time.thread_time() - began) / SHARE
        unmapped, mapped = self._found
        return unmapped + max(0, mapped - shared)

    def end(self) -> None:
        """End a call that was looked at: what it has left is not the next one's."""
        if self._group is not None:
            self.before = self._group.shmem()

    def _take_stock(self, members: Iterable[int]) -> tuple[int, int]:
        """Return what files take that no member has mapped, and those that one has."""
        found: dict[Key, os.stat_result] = {}
        for pid in members:
            with contextlib.suppress(OSError):  # it is gone
                for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                    self._add(pid, name, found)
        for key, path in list(self._paths.items()):
            if key not in found and self._find(path, found) != key:
                del self._paths[key]  # it was removed
        if self._folder is not None:
            self._add_own(self._folder, found)
        mapped: set[Key] = set()
        for pid in members if found else ():
            for key, is_written in _mapped(pid):
                mapped.add(key)
                if is_written and key in found:
                    self._made.add(key)
        taken: dict[Key, int] = {}
        for key, status in found.items():
            size = status.st_blocks * 512
            if key in self._made:
                taken[key] = max(0, size - self._size_before(key, size, status))
            else:  # so much of it is another task's, also if the call writes to it later
                self._sizes[key] = size
        # What was mapped last time may have been still when `shared` was read.
        within = sum(size for key, size in taken.items() if key in mapped | self._mapped)
        self._mapped = mapped
        return sum(taken.values()) - within, within

    def _add(self, pid: int, name: str, found: dict[Key, os.stat_result]) -> None:
        """Add the file of a descriptor, and note whether a member can have made it."""
        path = f"/proc/{pid}/fd/{name}"
        key = self._find(path, found)
        if key is None or key in self._paths:
            return
        if key in self._made or key[0] == memfd_device() or _is_written(pid, name):
            self._made.add(key)
            with contextlib.suppress(OSError):  # it was closed
                if found[key].st_nlink:
                    self._paths[key] = os.readlink(path)  # noqa: PTH115

    def _add_own(self, folder: str, found: dict[Key, os.stat_result]) -> None:
        """Add the files in the call's own folder, but not what is a link to a file elsewhere."""
        for status in _files_in(folder):
            if status.st_dev in devices() and status.st_ctime >= self._began:
                key = status.st_dev, status.st_ino
                found[key] = status
                self._made.add(key)
                if status.st_nlink == 1:  # whatever time it bears: an archive may say which
                    self._sizes.setdefault(key, self._there.get(key, 0))

    def _find(self, path: str, found: dict[Key, os.stat_result]) -> Key | None:
        """Add a file that is memory and has changed since the call began."""
        with contextlib.suppress(OSError):
            status = os.stat(path)  # noqa: PTH116 - for each open file
            if status.st_dev in devices() and status.st_ctime >= self._began:
                key = status.st_dev, status.st_ino
                found[key] = status
                return key
        return None

    def _size_before(self, key: Key, size: int, found: os.stat_result) -> int:
        """Return what a file took before the call, as far as that is known."""
        before = self._sizes.get(key)
        if before is None:
            before = self._there.get(key)
            if before is None:  # what is written does not change when it was read last
                is_new = min(found.st_atime, found.st_mtime) >= self._began
                before = 0 if is_new else size
            self._sizes[key] = before
        return before


def _sizes_in(folder: str) -> dict[Key, int]:
    """Return what each file in a folder takes."""
    return {(file.st_dev, file.st_ino): file.st_blocks * 512 for file in _files_in(folder)}


def _files_in(folder: str) -> Iterator[os.stat_result]:
    """Yield the status of each file below a folder; links are not followed."""
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                yield os.lstat(f"{path}/{name}")


def _is_written(pid: int, name: str) -> bool:
    """Whether a descriptor is open for writing."""
    for line in (probe.read(f"/proc/{pid}/fdinfo/{name}") or b"").splitlines():
        if line.startswith(b"flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def _mapped(pid: int) -> Iterator[tuple[Key, bool]]:
    """Yield the files that a process has mapped, and whether it can write to them that way."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as lines:  # noqa: PTH123
        for line in lines:
            _, mode, _, device, inode, *_ = line.split(None, 5)
            if inode != b"0":
                major, _, minor = device.partition(b":")
                key = os.makedev(int(major, 16), int(minor, 16)), int(inode)
                yield key, mode == b"rw-s"


@lru_cache(maxsize=1)
def devices() -> frozenset[int]:
    """The devices whose files are memory: tmpfs that is mounted, and memfd."""
    found = set()
    for line in (probe.read("/proc/self/mountinfo") or b"").splitlines():
        fields, _, rest = line.partition(b" - ")
        if rest.split(b" ", 1)[0] == b"tmpfs":
            major, _, minor = fields.split()[2].partition(b":")
            found.add(os.makedev(int(major), int(minor)))
    memfd = memfd_device()
    return frozenset(found if memfd is None else {*found, memfd})


@lru_cache(maxsize=1)
def memfd_device() -> int | None:
    """The device of what `memfd_create` makes, if the kernel has it."""
    with contextlib.suppress(OSError, AttributeError):
        descriptor = os.memfd_create("parsl_sizer")
        try:
            return os.fstat(descriptor).st_dev
        finally:
            os.close(descriptor)
    return None


def in_memory(folder: str) -> int | None:
    """Return the device of a folder if its files are memory."""
    with contextlib.suppress(OSError):
        device = os.stat(folder).st_dev  # noqa: PTH116 - before every call
        return device if device in devices() else None
    return None


def places() -> tuple[str, ...]:
    """Return a folder of each file system in memory in which calls are likely to make files."""
    found = {in_memory(FOLDER): FOLDER}
    for folder in (tempfile.gettempdir(), working_folder()):
        device = None if folder is None else in_memory(folder)
        if folder is not None and device is not None:
            found.setdefault(device, folder)
    return tuple(found.values())


def free(folders: Iterable[str]) -> tuple[float, ...]:
    """Return what is free in each of these folders."""
    found = []
    for folder in folders:
        try:
            status = os.statvfs(folder)
        except OSError:
            found.append(0.0)
        else:
            found.append(float(status.f_bfree * status.f_frsize))
    return tuple(found)
