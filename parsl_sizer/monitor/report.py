"""What goes back to the submit side: one dictionary of plain values."""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from typing import Any

from . import node
from .wire import Plain

FORMAT = 1
MOMENT_S = 0.05
"""Of a call that is over sooner the clocks' grain makes up cores, and it is gone before it
could be in anybody's way on more than one."""


def blank(isolation: str, layers: tuple[str, ...], waited_s: float) -> dict[str, Any]:
    """A report of which only the place is known yet."""
    made = Plain(_place(isolation, layers))
    made["node"] = node.facts()
    made["exhausted"], made["peak"], made["series"] = [], {}, []
    made["waited_s"] = waited_s
    return made


@lru_cache(maxsize=16)
def _place(isolation: str, layers: tuple[str, ...]) -> dict[str, Any]:
    """What stays the same in all reports of a process."""
    return {
        "parsl_sizer": FORMAT,
        "ending": "died",
        "wall_s": 0.0,
        "cpu_s": None,
        "host": socket.gethostname(),
        "node_name": node.name(),
        "pool": os.environ.get("PARSL_WORKER_POOL_ID"),
        "block": os.environ.get("PARSL_WORKER_BLOCK_ID"),
        "isolation": isolation,
        "layers": list(layers),
        "payload": None,
    }


def fill_cores(report: dict[str, Any], peak: float | None) -> None:
    """Cores, from the CPU time and the windows."""
    cpu_s, wall_s = report["cpu_s"], report["wall_s"]
    if cpu_s is None or wall_s <= 0:
        return
    mean = cpu_s / wall_s
    if wall_s < MOMENT_S:
        mean = min(mean, 1.0)
    report["cores_mean"] = mean
    report["peak"]["cores"] = max(mean, peak or 0.0)


def add_start(report: dict[str, Any], took_s: float) -> None:
    """Count in how long it took until there was a process that could make the call."""
    report["wall_s"] += took_s
    report["series"] = [(took_s + at, held) for at, held in report["series"]]
