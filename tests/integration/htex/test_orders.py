"""In which order tasks start when there is room for one, on a real engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sizer_apps as apps
from sizer_runs import running, sized

LIMIT_S = 100
ALONE = {"cores": 1, "fixed": True}


@pytest.mark.parametrize(
    ("order", "last_after", "expected"),
    [
        # a starts as soon as it is ready, and so does what is next when one has ended: what
        # that sets free is submitted a moment later.
        ("first-come", "a", "sabcx"),
        ("dfs", "a", "sabxc"),
        ("bfs", "a", "sabcx"),
        ("first-come", "c", "sabcx"),
        ("topology-rank", "c", "sacbx"),
    ],
)
def test_the_place_in_the_workflow_decides(
    tmp_path: Path, order: str, last_after: str, expected: str
) -> None:
    """After s come a, b and c, after one of these x; all are called before s ends."""
    notes, gate = tmp_path / "notes", tmp_path / "gate"
    executor = sized(node="cores=1,memory=2GB", order=order, kinds=["cores"])

    def step(letter: str, *after: Any, **options: Any) -> Any:
        return apps.lettered(
            str(notes), letter, *after, parsl_resource_specification=ALONE, **options
        )

    with running(executor, tmp_path):
        begin = step("s", gate=str(gate))
        called = {letter: step(letter, begin) for letter in "abc"}
        last = step("x", called[last_after])
        gate.touch()
        for future in (*called.values(), last):
            future.result(LIMIT_S)
    assert notes.read_text() == expected
