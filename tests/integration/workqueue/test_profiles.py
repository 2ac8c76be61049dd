"""The hosts of Work Queue's workers, profiled."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from sizer_workers import LARGE, SMALL, workqueue

from parsl_sizer import SizedExecutor, profile_nodes
from parsl_sizer.model import NodeProfile


def sized(inner: object) -> SizedExecutor:
    return SizedExecutor(inner, report=False, archive=False)


@pytest.mark.parametrize("wrap", [lambda inner: inner, sized], ids=["plain", "sized"])
def test_a_host_with_two_workers_is_profiled_once(tmp_path: Path, wrap: object) -> None:
    seen: list[NodeProfile] = []
    assert callable(wrap)
    with workqueue(tmp_path, LARGE, SMALL, wrap=wrap):
        found = profile_nodes(
            seconds=1.0, use_tools=False, nodes=2, archive=False, progress=seen.append
        )
    assert set(found["workqueue"]) == {socket.gethostname()}
    [profile] = seen
    assert profile.features["cpu_single"] > 0
