"""What is only looked up: accelerators, and the extra features that a user selects."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

FLAG = "flag_"
"""An extra feature that begins so is 1 where the processor has the flag, as in flag_avx2."""
ANSWER_S = 10.0
IDLE_S = 0.5
"""So long it is looked whether a machine has something else to do."""
_NAME = re.compile(r"[a-z0-9_]+")


def cpu_idle(during_s: float = IDLE_S, root: Path = Path("/")) -> float | None:
    """The share of time in which processors have nothing to do: by it one sees what is beside."""
    before = _ticks(root)
    time.sleep(during_s)
    spent = [now - then for now, then in zip(_ticks(root), before, strict=True)]
    return sum(spent[3:5]) / sum(spent) if sum(spent) > 0 else None  # idle, and waiting for disks


def gpus(root: Path = Path("/")) -> float | None:
    """How many there are of NVIDIA and of AMD; None where that cannot be looked up."""
    if not (root / "sys").is_dir():
        return None
    nvidia = len(list((root / "proc/driver/nvidia/gpus").glob("*")))
    described = (root / "sys/class/kfd/kfd/topology/nodes").glob("*/gpu_id")
    amd = sum(_text(path).strip() not in ("", "0") for path in described)
    return float(nvidia + amd)


def gpu_memory(_: Path = Path("/")) -> float | None:
    """The bytes of all NVIDIA accelerators together, as nvidia-smi says."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = ["--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        ran = subprocess.run(
            [program, *query], capture_output=True, text=True, check=False, timeout=ANSWER_S
        )
        amounts = [float(line) for line in ran.stdout.split()]
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return sum(amounts) * 2**20 or None


def cpu_mhz(root: Path = Path("/")) -> float | None:
    """The highest frequency of a processor."""
    highest = _text(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").strip()
    if highest.isdigit():
        return int(highest) / 1000
    found = re.findall(r"^cpu MHz\s*:\s*([0-9.]+)", _cpuinfo(root), re.MULTILINE)
    return max(map(float, found), default=None)


def cpu_cache(root: Path = Path("/")) -> float | None:
    """The bytes of the largest cache of a processor."""
    sizes = (root / "sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    found = [re.fullmatch(r"([0-9]+)K", _text(path).strip()) for path in sizes]
    amounts = [float(size[1]) * 1024 for size in found if size]
    amounts += [
        float(size) * 1024
        for size in re.findall(r"^cache size\s*:\s*([0-9]+) KB", _cpuinfo(root), re.MULTILINE)
    ]
    return max(amounts, default=None)


EXTRAS: dict[str, Callable[[Path], float | None]] = {
    "cpu_mhz": cpu_mhz,
    "cpu_cache": cpu_cache,
    "gpu_memory": gpu_memory,
}
"""The extra features, besides the flags of processors."""


def unknown_extras(names: Iterable[str]) -> list[str]:
    """Those of some names that are no extra feature.

    >>> unknown_extras(["flag_avx2", "cpu_cache", "colour", "flag_"])
    ['colour', 'flag_']
    """
    return [
        name
        for name in names
        if name not in EXTRAS and not (name.startswith(FLAG) and _NAME.fullmatch(name[len(FLAG) :]))
    ]


def extras(names: Iterable[str], root: Path = Path("/")) -> dict[str, float]:
    """Those of the extra features that can be looked up."""
    found = {}
    for name in names:
        amount = EXTRAS[name](root) if name in EXTRAS else flag(name[len(FLAG) :], root)
        if amount is not None:
            found[name] = amount
    return found


def flag(name: str, root: Path = Path("/")) -> float | None:
    """1 if all processors have the flag, else 0; None if their flags cannot be read."""
    lines = re.findall(r"^(?:flags|Features)\s*:\s*(.*)$", _cpuinfo(root), re.MULTILINE)
    return float(all(name in line.split() for line in lines)) if lines else None


def _ticks(root: Path) -> list[int]:
    """How long processors were in each of the states that Linux counts, since it started."""
    name, *ticks = (_text(root / "proc/stat").splitlines() or [""])[0].split() or [""]
    return [int(tick) for tick in ticks[:8]] if name == "cpu" else []


def _cpuinfo(root: Path) -> str:
    return _text(root / "proc/cpuinfo")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
