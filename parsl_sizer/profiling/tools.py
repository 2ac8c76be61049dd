"""sysbench and fio, called as Bader et al. (Tarema, IEEE Big Data 2021) call them.

Each function gives None where the program is not installed, or gives no answer.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from .processor import Measured

HIGHEST = 20_000
"""The numbers that sysbench verifies."""
DEPTH = 64
"""How many reads or writes fio has under way."""
START_S = 10.0
"""So much longer than it is told a program may take."""
_EVENTS = re.compile(r"events per second:\s*([0-9.]+)")
_MIB = re.compile(r"\(([0-9.]+) MiB/sec\)")


def speed(threads: int, seconds: float) -> Measured | None:
    """Events per second, by sysbench."""
    said = _said(_sysbench("cpu", threads, seconds, f"--cpu-max-prime={HIGHEST}"), seconds)
    found = _EVENTS.search(said)
    return (float(found[1]), f"sysbench: primes up to {HIGHEST}") if found else None


def bandwidth(seconds: float) -> Measured | None:
    """Bytes per second that one thread writes to memory, by sysbench."""
    more = "--memory-block-size=1M", "--memory-total-size=1000000G"
    found = _MIB.search(_said(_sysbench("memory", 1, seconds, *more), seconds))
    return (float(found[1]) * 2**20, "sysbench: writes of 1 MiB") if found else None


class Fio:
    """The same questions about a file as `PlainFile` answers, where it may be read directly."""

    def __init__(self, path: Path, largest: int) -> None:
        self._path = path
        self._largest = largest

    def write(self, seconds: float) -> Measured | None:
        """Bytes per second, in order."""
        return self._told(self._run("write", "1M", self._largest, seconds), "bw_bytes")

    def read(self, seconds: float) -> Measured | None:
        """Bytes per second, in order."""
        return self._told(self._run("read", "1M", self._size, seconds), "bw_bytes")

    def random_read(self, seconds: float) -> Measured | None:
        """Reads per second, here and there."""
        return self._told(self._run("randread", "4k", self._size, seconds), "iops")

    def random_write(self, seconds: float) -> Measured | None:
        """Writes per second, here and there."""
        return self._told(self._run("randwrite", "4k", self._size, seconds), "iops")

    @property
    def _size(self) -> int:
        """What was written: fio would first fill up a file that is smaller than it is told."""
        return self._path.stat().st_size // 2**20 * 2**20

    def _told(self, found: dict[str, float] | None, figure: str) -> Measured | None:
        return (float(found[figure]), f"fio: O_DIRECT, depth {DEPTH}") if found else None

    def _run(self, how: str, block: str, size: int, seconds: float) -> dict[str, float] | None:
        fio = shutil.which("fio")
        if fio is None:
            return None
        said = _said(
            [
                fio,
                "--name=profile",
                f"--filename={self._path}",
                f"--rw={how}",
                f"--bs={block}",
                f"--size={size}",
                "--direct=1",
                "--ioengine=libaio",
                f"--iodepth={DEPTH}",
                "--fallocate=none",
                "--time_based",
                f"--runtime={max(1, round(seconds))}",
                "--output-format=json",
            ],
            seconds,
        )
        try:
            [job] = json.loads(said)["jobs"]
            return None if job["error"] else job["write" if "write" in how else "read"]
        except (ValueError, KeyError, TypeError):
            return None


def _sysbench(test: str, threads: int, seconds: float, *more: str) -> list[str]:
    program = shutil.which("sysbench")
    if program is None:
        return []
    return [program, test, f"--threads={threads}", f"--time={max(1, round(seconds))}", *more, "run"]


def _said(command: list[str], seconds: float) -> str:
    """What a program printed; nothing if there is none, it failed or it hangs."""
    if not command:
        return ""
    try:
        ran = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds + START_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if ran.returncode else ran.stdout
