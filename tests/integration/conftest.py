"""What tests on real engines share: their fixtures, and an HTEX."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SUPPORT = str(Path(__file__).parent / "support")

if SUPPORT not in sys.path:
    sys.path.insert(0, SUPPORT)

# Found once SUPPORT is in the path.
from sizer_fixtures import own_folders, surroundings  # noqa: E402, F401
from sizer_runs import shared_engine  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def engine(surroundings: None, session_folder: Path) -> Iterator[None]:  # noqa: F811
    """Share an HTEX among tests; it starts with the first run."""
    with shared_engine(session_folder):
        yield
