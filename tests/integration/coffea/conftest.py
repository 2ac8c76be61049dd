"""Tests with Coffea are skipped where it is not installed; `make test-coffea` installs it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
LIMIT_S = 300
"""For one test, on a busy machine: each worker has to import Coffea."""

collect_ignore = [] if find_spec("coffea") else ["sizer_analyses.py"]

if HERE not in sys.path:
    sys.path.insert(0, HERE)


@pytest.fixture(scope="session", autouse=True)
def processors(surroundings: None) -> Iterator[None]:
    """Workers have the module of the processors."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", HERE, prepend=os.pathsep)
    yield
    patch.undo()


class Hangs(BaseException):
    """Not an Exception, so that nothing on the way swallows it."""


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    """A test that hangs fails. Not by an alarm: Coffea takes that for itself."""

    def stop(number: int, frame: object) -> None:
        raise Hangs(f"the test has taken more than {LIMIT_S} s")

    before = signal.signal(signal.SIGUSR1, stop)
    timer = threading.Timer(LIMIT_S, signal.raise_signal, [signal.SIGUSR1])
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()
    signal.signal(signal.SIGUSR1, before)
