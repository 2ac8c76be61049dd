"""Tests with Work Queue are skipped where it is not installed."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="session", autouse=True)
def workqueue() -> None:
    pytest.importorskip("ndcctools.work_queue", reason="Work Queue is not installed here")
    if shutil.which("work_queue_worker") is None:
        pytest.skip("work_queue_worker is not installed here")
