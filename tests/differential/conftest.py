"""What the cases share: workers find the programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SUPPORT = str(Path(__file__).parent / "support")
ENGINES = str(Path(__file__).parents[1] / "integration" / "support")
sys.path[:0] = [folder for folder in (SUPPORT, ENGINES) if folder not in sys.path]

from sizer_fixtures import own_folders, surroundings  # noqa: E402, F401 - found from here


@pytest.fixture(scope="session", autouse=True)
def programs(surroundings: None) -> Iterator[None]:  # noqa: F811 - the fixture of that name
    """Workers have the programs of the cases."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", SUPPORT, prepend=os.pathsep)
    yield
    patch.undo()
