"""What tests on real engines share: workers find the tasks, and nothing hangs."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SUPPORT = str(Path(__file__).parent / "support")
LIMIT_S = 240
"""For one test, on a busy machine."""

if SUPPORT not in sys.path:
    sys.path.insert(0, SUPPORT)


@pytest.fixture(scope="session", autouse=True)
def surroundings() -> Iterator[None]:
    """Workers have this Python's programs and the tasks' module; sizing is not off."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", SUPPORT, prepend=os.pathsep)
    patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    patch.delenv("PARSL_SIZER", raising=False)
    yield
    patch.undo()


class Hangs(BaseException):
    """Not an Exception, so that nothing on the way swallows it."""


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    """A test that hangs fails."""

    def stop(number: int, frame: object) -> None:
        raise Hangs(f"the test has taken more than {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
