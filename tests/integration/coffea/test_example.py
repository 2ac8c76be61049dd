"""The example runs, its histograms are the same in both runs, and all its tasks are known."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

pytest.importorskip("coffea", reason="Coffea is not installed here: make test-coffea")

from sizer_recorded import Run
from sizer_runs import nothing_left

from parsl_sizer.model import Ending

PATIENCE_S = 280
FILES, EVENTS = 3, 8000
PROCESSING = {"processing:dimuon", "processing:ttbar"}


def test_the_example_runs_and_all_its_tasks_are_known(root: Path, tmp_path: Path) -> None:
    run = Run(tmp_path / "archive.sqlite3")
    command = [sys.executable, str(root / "examples" / "coffea_analysis.py")]
    with nothing_left():
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PARSL_SIZER_ARCHIVE": str(run.archive)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in done.stdout
    for dataset in ("dimuon", "ttbar"):
        assert f"{dataset}: {FILES * EVENTS:,} events and " in done.stdout, done.stdout
    entries: dict[str, float] = defaultdict(float)
    for outcome in run.outcomes:
        task = outcome.attempt.task
        assert task.category in {"preprocessing", "accumulating", *PROCESSING}
        assert set(task.features) - {"input_size"} == (
            {"entries"} if task.category in PROCESSING else set()
        )
        if outcome.ending is Ending.DONE:
            entries[task.category] += task.features.get("entries", 1)
    assert entries["preprocessing"] == 2 * FILES
    assert {entries[category] for category in PROCESSING} == {FILES * EVENTS}
    tasks = run.tasks()
    assert tasks["processing:ttbar", EVENTS] == tasks["processing:dimuon", EVENTS] == FILES
    assert tasks["processing:ttbar", EVENTS / 2] == 2 * FILES, "all were split"
    assert tasks["accumulating", None] >= FILES
