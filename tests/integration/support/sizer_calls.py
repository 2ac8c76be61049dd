"""Plain functions for workers that are asked directly. Workers import this and little else."""

from __future__ import annotations

import os
import time
from pathlib import Path

LIMIT_S = 60.0


def environment(*names: str) -> list[str]:
    return [os.environ[name] for name in names]


def meet(folder: str, name: str, count: int) -> int:
    """Wait until so many are here at once; how many are."""
    here = Path(folder)
    (here / name).touch()
    until = time.monotonic() + LIMIT_S
    while len(list(here.iterdir())) < count and time.monotonic() < until:
        time.sleep(0.02)
    return len(list(here.iterdir()))


def linger(begun: str, over: str) -> str:
    """Say that it has begun, and wait to be told that it is over."""
    Path(begun).touch()
    until = time.monotonic() + LIMIT_S
    while not Path(over).exists() and time.monotonic() < until:
        time.sleep(0.02)
    return "over"
