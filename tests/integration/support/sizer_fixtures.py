"""Fixtures for tests on real engines: workers find the tasks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

SUPPORT = str(Path(__file__).parent)


@pytest.fixture(scope="session", autouse=True)
def surroundings() -> Iterator[None]:
    """Workers have this Python's programs and the tasks' module; sizing is not off."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", SUPPORT, prepend=os.pathsep)
    patch.setenv("PYTHONPATH", str(Path(SUPPORT) / "quick"), prepend=os.pathsep)
    patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    patch.delenv("PARSL_SIZER", raising=False)
    # Importing the distutils of setuptools, as Work Queue's binding does, takes 0.1 s a process.
    patch.setenv("SETUPTOOLS_USE_DISTUTILS", "stdlib")
    yield
    patch.undo()


@pytest.fixture(autouse=True, scope="module")
def own_folders(new_folders: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Give the tests of a module a TMPDIR and a HOME together: they may share an engine."""
    with new_folders():
        yield
