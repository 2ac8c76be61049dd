"""In which order tasks start when there is room for one, on a real engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sizer_apps as apps
from parsl.dataflow.states import States
from sizer_runs import running, sized, wait_until

LIMIT_S = 100
ALONE = {"cores": 1, "fixed": True}


@pytest.mark.parametrize(
    ("order", "last_after", "expected"),
    [
        # a starts as soon as it is ready, and so does b when a has ended: what that sets free
        # is submitted a moment later, while b waits for it.
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
    notes, gate, second = tmp_path / "notes", tmp_path / "gate", tmp_path / "second"
    executor = sized(node="cores=1,memory=2GB", order=order, kinds=["cores"])

    def step(letter: str, *after: Any, **options: Any) -> Any:
        return apps.lettered(
            str(notes), letter, *after, parsl_resource_specification=ALONE, **options
        )

    with running(executor, tmp_path):
        begin = step("s", gate=str(gate))
        gates = {"b": {"gate": str(second)}}
        called = {letter: step(letter, begin, **gates.get(letter, {})) for letter in "abc"}
        last = step("x", called[last_after])
        gate.touch()
        if last_after == "a":
            submitted = (States.launched, States.exec_done)
            wait_until(lambda: last.task_record["status"] in submitted, "x with the executor")
        second.touch()
        for future in (*called.values(), last):
            future.result(LIMIT_S)
    assert notes.read_text() == expected
