"""Tests with Colmena are skipped where it is not installed; `make test-colmena` installs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SUPPORT = str(Path(__file__).parent / "support")

collect_ignore = ["support"]

if SUPPORT not in sys.path:
    sys.path.insert(0, SUPPORT)


@pytest.fixture(scope="session", autouse=True)
def methods_are_found(surroundings: None) -> Iterator[None]:
    """Workers have the methods' module."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", SUPPORT, prepend=os.pathsep)
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def engine() -> None:
    """Share no engine: the task server starts it in a forked process, and it ends with that."""
