"""Threads are profiled where they are: here."""

from __future__ import annotations

import socket
from pathlib import Path

from parsl.executors import ThreadPoolExecutor
from sizer_runs import running

from parsl_sizer import profile_nodes


def test_threads_are_profiled(tmp_path: Path) -> None:
    with running(ThreadPoolExecutor(label="threads", max_threads=2), tmp_path):
        found = profile_nodes(seconds=1.0, use_tools=False, archive=False)
    assert set(found["threads"]) == {socket.gethostname()}
