"""Managers that die, and blocks that never come."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
import sizer_tasks as tasks
from parsl.executors.errors import BadStateException
from parsl.jobs.errors import TooManyJobFailuresError
from sizer_runs import htex, left_by_manager, running, sized, wait_until

from parsl_sizer import sizing_of
from parsl_sizer.model import Ending

LIMIT_S = 100
DONE, LOST = Ending.DONE, Ending.LOST


def kill_manager_of(task: int) -> list[psutil.Process]:
    """Kill the manager of a task; what HTEX itself leaves behind then."""
    manager = tasks.pid_of("manager", task)
    left = left_by_manager(manager, tasks.pid_of("worker", task))
    os.kill(manager, signal.SIGKILL)
    return left


def test_a_lost_manager_costs_a_retry_and_the_last_one_everything(tmp_path: Path) -> None:
    made = sized(htex(1, blocks=2, heartbeat_threshold=5), node="cores=2,memory=1GB")
    spare: list[psutil.Process] = []
    with running(made, tmp_path, spare=spare):
        begun, go = tmp_path / "begun", tmp_path / "go"
        wait_until(lambda: len(made.inner.connected_managers()) == 2, "two managers")
        future = tasks.hold_until(str(go), 10, str(begun))
        tasks.wait_for(begun)
        task = int(begun.read_text())
        begun.unlink()
        spare += kill_manager_of(task)
        tasks.wait_for(begun)
        wait_until(lambda: not psutil.pid_exists(task), "the end of the lost manager's task")
        go.touch()
        assert future.result(LIMIT_S) == 10
        first, second = sizing_of(future).attempts
        assert (first.ending, second.ending) == (LOST, DONE)
        assert first.allocation == second.allocation

        begun.unlink()
        never, whole = str(tmp_path / "never"), {"memory": 1000, "fixed": True}
        runs = tasks.hold_until(never, 1, str(begun), parsl_resource_specification=whole)
        tasks.wait_for(begun)
        held = [tasks.hold_until(never, 1, parsl_resource_specification=whole) for _ in range(5)]
        spare += kill_manager_of(int(begun.read_text()))
        for future in [runs, *held, tasks.add(1, 2)]:
            with pytest.raises((BadStateException, TooManyJobFailuresError)):
                future.result(LIMIT_S)
