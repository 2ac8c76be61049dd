"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# On a busy machine any example may be slow; how fast things are is for benchmarks/ to say.
settings.register_profile("parsl_sizer", deadline=None)
settings.load_profile("parsl_sizer")

# No test learns from another, nor from what the user of this machine has run.
os.environ["PARSL_SIZER_ARCHIVE"] = "off"

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of the public traces; a test that needs it is skipped where they are absent."""
    folder = Path(os.environ.get("PARSL_SIZER_DATA", ROOT.parent / "shared" / "data")) / "traces"
    if not folder.is_dir():
        pytest.skip(f"there are no traces in {folder}; name their folder in PARSL_SIZER_DATA")
    return folder
