"""Calls whose peak of memory is known, for the benchmark of the monitor.

Each returns its true peak: known by construction, or what the kernel divides among the
processes of the case at its plateau.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

MB = 1_000_000
SINGLE, TREE = 0.02, 0.10
"""How far from the truth a measurement may be: for one process, and for several."""


BLOCK = bytes(MB)
KEPT: list[mmap.mmap] = []
"""What calls leave in their process."""


def held(*pids: int) -> int:
    """What processes hold together, each page divided by those that share it."""
    total = 0
    for pid in (os.getpid(), *pids):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        total += sum(int(kb) for kb in re.findall(r"Pss_(?:Anon|Shmem): *(\d+)", text))
    return total * 1024


def touch(size: int, *, library: Any = None) -> mmap.mmap:
    """New memory, all of it written to."""
    data = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    place = ctypes.addressof(ctypes.c_char.from_buffer(data))
    (library or ctypes.CDLL(None)).memset(ctypes.c_void_p(place), 1, ctypes.c_size_t(size))
    return data


def nothing() -> int:
    time.sleep(1)
    return 0


def spike() -> int:
    time.sleep(0.5)
    data = touch(500 * MB)
    time.sleep(0.005)
    del data
    time.sleep(0.5)
    return 500 * MB


def moment() -> int:
    touch(300 * MB)
    return 300 * MB


def plateau() -> int:
    data = touch(300 * MB)
    time.sleep(1)
    return len(data)


def holding_the_gil() -> int:
    data = touch(500 * MB, library=ctypes.PyDLL(None))
    return len(data)


def imported() -> int:
    """Hold 300 MB from the first call on, as modules and caches do; 50 MB more in each call."""
    if not KEPT:
        KEPT.append(touch(300 * MB))
    time.sleep(0.5)
    touch(50 * MB)
    return 350 * MB


def in_dev_shm() -> int:
    path = Path(f"/dev/shm/monitor-accuracy-{os.getpid()}")
    try:
        with path.open("wb") as file:
            write(file)
        time.sleep(0.2)
    finally:
        path.unlink()
    return 500 * MB


def in_memfd() -> int:
    with os.fdopen(os.memfd_create("monitor-accuracy"), "wb") as file:
        write(file)
        time.sleep(0.5)
    return 500 * MB


def write(file: Any) -> None:
    for _ in range(500 * MB // len(BLOCK)):
        file.write(BLOCK)
    file.flush()


def left() -> int:
    """Leave 800 MB in this process."""
    KEPT.append(touch(800 * MB))
    return 800 * MB


def file_read() -> int:
    with large_file().open("rb") as file:
        while file.read(MB):
            pass
    return MB


def file_mapped() -> int:
    with large_file().open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        for place in range(0, len(mapped), 4096):
            mapped[place]
        time.sleep(0.5)
    return 0


def large_file() -> Path:
    return Path(os.environ["LARGE_FILE"])


def shared_memory() -> int:
    memory = SharedMemory(create=True, size=300 * MB)
    try:
        view = memory.buf
        assert view is not None
        view[:: mmap.PAGESIZE] = bytes(len(view[:: mmap.PAGESIZE]))
        return shared_by_forks(300 * MB)
    finally:
        memory.close()
        memory.unlink()


def shared_by_forks(before: int = 0, *, writing: bool = False) -> int:
    started = held() - before
    data = touch(200 * MB)
    context = get_context("fork")
    ready, done = context.Semaphore(0), context.Event()

    def child() -> None:
        if writing:
            data[:: mmap.PAGESIZE] = b"x" * len(data[:: mmap.PAGESIZE])
        ready.release()
        done.wait()

    children = [context.Process(target=child) for _ in range(3)]
    for one in children:
        one.start()
    for _ in children:
        ready.acquire()
    time.sleep(1)
    peak = held(*(one.pid or 0 for one in children)) - started
    done.set()
    for one in children:
        one.join()
    return peak


def written_by_forks() -> int:
    return shared_by_forks(writing=True)


def programs() -> int:
    code = "data = b'x' * 100_000_000; print(flush=True); input()"
    before = held()
    command = [sys.executable, "-S", "-c", code]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)
    ]
    for one in children:
        assert one.stdout
        one.stdout.readline()
    time.sleep(1)
    peak = held(*(one.pid for one in children)) - before
    for one in children:
        one.communicate(b"\n")
    return peak


def litter() -> None:
    """Take 400 MB and leave them as garbage."""
    cycle: list[Any] = [bytearray(400 * MB)]
    cycle[0][:: mmap.PAGESIZE] = b"x" * len(cycle[0][:: mmap.PAGESIZE])
    cycle.append(cycle)


@dataclass(frozen=True)
class Case:
    """Something to measure."""

    name: str
    func: Callable[[], int]
    bar: float = SINGLE
    before: Callable[[], object] | None = None
    """A call before it in the same worker: of the same category if it is the same function."""


CASES = (
    Case("nothing", nothing),
    Case("500 MB for 5 ms", spike),
    Case("300 MB, returned at once", moment),
    Case("300 MB for a second", plateau),
    Case("300 MB after a call of 400 MB", plateau, before=litter),
    Case("nothing, after a task that left 800 MB", nothing, before=left),
    Case("the second task of a category that imports 300 MB", imported, before=imported),
    Case("500 MB in C that holds the GIL", holding_the_gil),
    Case("a file of 400 MB read", file_read),
    Case("a file of 400 MB mapped", file_mapped),
    Case("500 MB in a file in /dev/shm", in_dev_shm),
    Case("500 MB in a memfd", in_memfd),
    Case("shared memory, and three forks", shared_memory, TREE),
    Case("three forks that share 200 MB", shared_by_forks, TREE),
    Case("three forks that write to 200 MB", written_by_forks, TREE),
    Case("three programs of 100 MB", programs, TREE),
)
