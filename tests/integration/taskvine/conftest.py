"""Tests with TaskVine are skipped where it is not installed; .ci/taskvine installs it."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="session", autouse=True)
def taskvine() -> None:
    pytest.importorskip("ndcctools.taskvine", reason="TaskVine is not installed here")
    if shutil.which("vine_worker") is None:
        pytest.skip("vine_worker is not installed here")
