"""How fast files are written and read, measured with nothing but Python.

Pages that the system keeps in memory would be measured in place of the disk. So files are
opened with O_DIRECT where the file system allows it. Elsewhere what is written is synced,
and what is read was dropped from memory before. What disks and hypervisors keep in memory
of their own cannot be helped.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .processor import Measured

LARGE, SMALL = 2**20, 4096
"""Bytes read or written at a time: in order, and here and there."""
DIRECT = getattr(os, "O_DIRECT", 0)


class PlainFile:
    """One file that grows up to `largest` bytes while it is written in order."""

    def __init__(self, path: Path, largest: int) -> None:
        self._path = path
        self._largest = largest // LARGE * LARGE
        self.is_direct = bool(DIRECT) and self._takes_direct()

    @property
    def _how(self) -> str:
        how = "O_DIRECT" if self.is_direct else "synced writes, reads of dropped pages"
        return f"built-in: {how}, one at a time"

    @property
    def _size(self) -> int:
        """What there is to be read, in whole blocks."""
        size = self._path.stat().st_size // LARGE * LARGE
        if not size:
            raise OSError("nothing could be written")
        return size

    def write(self, seconds: float) -> Measured:
        """Bytes per second, in order; again from the start where the file is full."""
        with self._opened(os.O_WRONLY) as file:
            offsets = self._in_order(self._largest)
            done = self._repeated(seconds, offsets, LARGE, file, os.pwritev)
            took = done.took_s + _timed(os.fsync, file)
        return done.count * LARGE / took, self._how

    def read(self, seconds: float) -> Measured:
        """Bytes per second, in order."""
        with self._opened(os.O_RDONLY) as file:
            offsets = self._in_order(self._size)
            done = self._repeated(seconds, offsets, LARGE, file, os.preadv)
        return done.count * LARGE / done.took_s, self._how

    def random_read(self, seconds: float) -> Measured:
        """Reads per second, here and there."""
        with self._opened(os.O_RDONLY) as file:
            done = self._repeated(seconds, self._anywhere(), SMALL, file, os.preadv)
        return done.count / done.took_s, self._how

    def random_write(self, seconds: float) -> Measured:
        """Writes per second, here and there."""
        flags = os.O_WRONLY if self.is_direct else os.O_WRONLY | os.O_DSYNC
        with self._opened(flags) as file:
            done = self._repeated(seconds, self._anywhere(), SMALL, file, os.pwritev)
            took = done.took_s + _timed(os.fsync, file)
        return done.count / took, self._how

    def _takes_direct(self) -> bool:
        """Whether the file system knows files without pages in memory; some say no only later."""
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | DIRECT, 0o600)
        except OSError:
            return False
        try:
            with mmap.mmap(-1, SMALL) as block:
                return os.pwritev(file, [block], 0) == SMALL
        except OSError:
            return False
        finally:
            os.close(file)

    @contextlib.contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        if self.is_direct:
            flags |= DIRECT
        file = os.open(self._path, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not self.is_direct and hasattr(os, "posix_fadvise"):
                os.fsync(file)
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            yield file
        finally:
            os.close(file)

    def _in_order(self, size: int) -> Iterator[int]:
        while True:
            yield from range(0, size, LARGE)

    def _anywhere(self) -> Iterator[int]:
        drawn, blocks = random.Random(0), self._size // SMALL
        while True:
            yield drawn.randrange(blocks) * SMALL

    @staticmethod
    def _repeated(
        seconds: float,
        offsets: Iterator[int],
        size: int,
        file: int,
        act: Callable[[int, list[mmap.mmap], int], int],
    ) -> _Done:
        with mmap.mmap(-1, size) as block:  # at the start of a page, as O_DIRECT wants it
            block.write(os.urandom(size))  # some file systems do not write zeroes
            count, began = 0, time.perf_counter()
            while (now := time.perf_counter()) < began + seconds or not count:
                if act(file, [block], next(offsets)) != size:
                    raise OSError("a read or a write was cut short")
                count += 1
        return _Done(count, now - began)


class _Done:
    """How many operations took how long."""

    def __init__(self, count: int, took_s: float) -> None:
        self.count = count
        self.took_s = took_s


def _timed(act: Callable[[int], object], file: int) -> float:
    began = time.perf_counter()
    act(file)
    return time.perf_counter() - began
