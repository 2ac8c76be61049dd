"""The end of a run over several groups, wanted or not: nothing hangs, nothing is left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import sizer_tasks as tasks
from parsl.executors import HighThroughputExecutor
from sizer_groups import member, two_groups
from sizer_interrupted import ends_all
from sizer_runs import htex, nothing_left, running

from parsl_sizer.executor.driver import ShutDown

LIMIT_S = 100


def test_control_c_ends_all_groups(tmp_path: Path) -> None:
    ends_all("several_groups", tmp_path, os.killpg)


class CannotStart(HighThroughputExecutor):
    def start(self) -> None:
        raise OSError("no ports today")


def test_if_one_group_cannot_start_none_is_left_running(tmp_path: Path) -> None:
    template = htex()
    broken = CannotStart("broken", template.provider, address="127.0.0.1")
    made = two_groups(inner=[htex(label="big"), broken], node="cores=2,memory=1GB")
    made.run_dir = str(tmp_path)
    with nothing_left(), pytest.raises(OSError, match="no ports today"), made:
        made.start()
    assert member(made, "big").interchange_proc.poll() is not None


def test_what_waits_and_what_runs_fails_when_it_is_shut_down(tmp_path: Path) -> None:
    made = two_groups()
    with running(made, tmp_path) as dfk:
        spec = {"memory": 900, "fixed": True}
        never, begun = str(tmp_path / "never"), tmp_path / "begun"
        runs = tasks.hold_until(never, 1, str(begun), parsl_resource_specification=spec)
        tasks.wait_for(begun)
        futures: list[Any] = [
            tasks.hold_until(never, 1, parsl_resource_specification=spec) for _ in range(9)
        ]
        dfk.cleanup()
        for future in [runs, *futures]:
            assert isinstance(future.exception(LIMIT_S), ShutDown)


def test_a_group_that_cannot_be_shut_down_does_not_keep_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = two_groups()
    with running(made, tmp_path) as dfk:
        assert tasks.add(1, 2).result(LIMIT_S) == 3
        first = member(made, "big")
        whole = first.shutdown

        def shutdown(*args: Any, **kwargs: Any) -> None:
            whole(*args, **kwargs)
            raise OSError("it is not over")

        monkeypatch.setattr(first, "shutdown", shutdown)
        with pytest.raises(OSError, match="it is not over"):
            made.shutdown()
        assert member(made, "standard").interchange_proc.poll() is not None
        monkeypatch.undo()
        dfk.executors.pop(made.label)
