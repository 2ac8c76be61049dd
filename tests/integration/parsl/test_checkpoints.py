"""Checkpoints: a task has the key that it has without us, so they are good for both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sizer_apps as apps
from parsl import ThreadPoolExecutor
from parsl.dataflow import memoization
from parsl.utils import get_all_checkpoints
from sizer_runs import running, sized

LIMIT_S = 60


def remembering(**options: Any) -> dict[str, Any]:
    """Arguments of Config, which itself takes these options in older versions."""
    memoizer = getattr(memoization, "BasicMemoizer", None)
    return options if memoizer is None else {"memoizer": memoizer(**options)}


def test_checkpoints_of_sized_and_of_plain_runs_are_good_for_each_other(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    def keys() -> list[str]:
        """Run three tasks, and say what Parsl remembers them by."""
        futures = [
            apps.square(5, str(notes)),
            apps.shell_noted(str(notes), stdout=str(tmp_path / "out")),
            apps.grown(400, str(notes)),
        ]
        assert [future.result(LIMIT_S) for future in futures] == [25, 0, 400]
        return [future.task_record["hashsum"] for future in futures]

    first, second = tmp_path / "sized", tmp_path / "plain"
    with running(sized(), first, **remembering(checkpoint_mode="task_exit")):
        sized_keys = keys()
    runs = len(notes.read_text())
    checkpoints = get_all_checkpoints(str(first / "runinfo"))
    memory = remembering(checkpoint_files=checkpoints, checkpoint_mode="task_exit")
    with running(ThreadPoolExecutor(), second, **memory):
        assert keys() == sized_keys
        assert apps.square(6, str(notes)).result(LIMIT_S) == 36
    checkpoints += get_all_checkpoints(str(second / "runinfo"))
    with running(sized(), tmp_path / "again", **remembering(checkpoint_files=checkpoints)):
        assert keys() == sized_keys
        assert apps.square(6, str(notes)).result(LIMIT_S) == 36
    assert len(notes.read_text()) == runs + 1
