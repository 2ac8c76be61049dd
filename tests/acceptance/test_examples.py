"""Every example runs as it stands, in a folder of its own, and prints what it is there to show."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PATIENCE_S = 300
"""For one example, on a busy machine."""

PRINTED = {
    "quickstart": ["20 tasks have held 2.7 GB in all.", "align", "assemble", "attempt 1: done"],
    "hints": [
        "fixed by the user",
        "assemble, many reads",
        "published: a table",
        "run samtools",
    ],
    "own_strategy": [
        *("recent-maximum", "whole-machine", "MAQ"),
        *("the largest of the last 1 peaks and a tenth more", "attempt 2"),
    ],
    "pool": [
        "12 chunks, and each has a mean of 127.5.",
        "mean, large",
        "There are 2262 primes below 20000.",
    ],
    "several_groups": ["60 tasks are done.", "light", "heavy", "Tasks by group: "],
    "workqueue_cluster": ["align", "assemble", "attempt 1", "done after"],
    "coffea_analysis": ["dimuon: 2,000 events", "ttbar: 2,000 events", "the same in both"],
    "colmena_steering": [
        *("molecules has", "simulate, large:", "simulate, small:"),
        *("what tasks on sized were given", "infer"),
    ],
    "demo": ["each with all of 2.0 GB", "times as fast", "The picture is demo.png."],
}
"""The examples, with some of what each prints."""


@pytest.fixture
def arguments(example: str) -> list[str]:
    """What an example is given; it is skipped where what it needs is not installed."""
    if example == "demo":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed here")
        return ["--tasks", "6", "--cores", "2", "--png", "demo.png"]
    if example == "coffea_analysis":
        pytest.importorskip("coffea", reason="Coffea is not installed here: make test-coffea")
        return ["--files", "1", "--events", "2000"]
    if example == "colmena_steering":
        pytest.importorskip("colmena", reason="Colmena is not installed here")
    if example == "workqueue_cluster":
        pytest.importorskip("ndcctools.work_queue", reason="Work Queue is not installed here")
        if shutil.which("work_queue_worker") is None:
            pytest.skip("work_queue_worker is not installed here")
        with socket.socket() as free:
            free.bind(("", 0))
            return ["--port", str(free.getsockname()[1])]
    return []


def test_all_examples_are_run_here(root: Path) -> None:
    assert {path.stem for path in (root / "examples").glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("example", PRINTED)
def test_an_example_runs_and_prints_what_it_shows(
    root: Path, tmp_path: Path, example: str, arguments: list[str]
) -> None:
    log = tmp_path / "output.txt"
    surroundings = {name: text for name, text in os.environ.items() if name != "PARSL_SIZER"}
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, root / "examples" / f"{example}.py", *arguments],
            cwd=tmp_path,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=surroundings,
            start_new_session=True,
        )
        try:
            status = process.wait(PATIENCE_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    printed = log.read_text(encoding="utf-8", errors="replace")
    assert status == 0, printed
    assert [words for words in PRINTED[example] if words not in printed] == [], printed
    assert "Traceback" not in printed
    if example == "demo":
        assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
