"""SizedExecutor around Work Queue while its workers join and are lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sizer_tasks as tasks
from sizer_runs import wait_until
from sizer_workers import LARGE, SMALL, workqueue

from parsl_sizer import Kind, SizedExecutor, sizing_of
from parsl_sizer.executor.ending import TaskLost
from parsl_sizer.model import Ending

LIMIT_S = 100


def sized(inner: object) -> SizedExecutor:
    return SizedExecutor(inner, report=False)


def test_tasks_wait_for_the_first_worker(tmp_path: Path) -> None:
    with workqueue(tmp_path, wrap=sized) as cluster:
        future = tasks.hold(20)
        wait_until(cluster.executor.outstanding, "there is demand, so that blocks are asked for")
        cluster.crew.add(SMALL)
        assert future.result(LIMIT_S) == 20


def test_blocks_are_asked_for_when_tasks_wait_and_given_back(tmp_path: Path) -> None:
    options = f"--cores=2 --memory=1500 --disk=2000 --timeout=60 --workdir={tmp_path}"
    with workqueue(
        tmp_path, wrap=sized, strategy="simple", blocks=1, worker_options=options
    ) as cluster:
        futures = [tasks.hold(20 + number) for number in range(3)]
        assert [future.result(LIMIT_S) for future in futures] == [20, 21, 22]
        wait_until(lambda: not any_active(cluster.inner), "the block is given back")


def any_active(inner: Any) -> bool:
    return any(not status.terminal for status in inner.status().values())


def test_a_worker_that_is_replaced_while_nothing_runs_does_not_matter(tmp_path: Path) -> None:
    with workqueue(tmp_path, SMALL, wrap=sized) as cluster:
        assert tasks.hold(20).result(LIMIT_S) == 20
        cluster.crew.workers[0].kill()
        cluster.crew.add(SMALL)
        assert tasks.hold(21).result(LIMIT_S) == 21


def test_a_worker_that_is_replaced_while_its_task_runs_does_not_matter(tmp_path: Path) -> None:
    with workqueue(tmp_path, LARGE, wrap=sized) as cluster:
        begun = tmp_path / "begun"
        future = tasks.hold_until(str(tmp_path / "go"), begun=str(begun))
        wait_until(begun.exists, "the task has begun")
        cluster.crew.workers[0].kill()
        cluster.crew.add(LARGE)
        (tmp_path / "go").touch()
        assert future.result(LIMIT_S) == 1
        [attempt] = sizing_of(future).attempts  # Work Queue itself ran it again
        assert attempt.ending is Ending.DONE


def test_a_task_that_always_kills_itself_is_given_up(tmp_path: Path) -> None:
    with workqueue(tmp_path, SMALL, wrap=sized):
        notes = tmp_path / "notes"
        future = tasks.noted_kill(str(notes), "me")
        with pytest.raises(TaskLost, match="signal 9"):
            future.result(LIMIT_S)
        assert notes.read_text() == "xxx"  # once, and twice more
        first, second, third = sizing_of(future).attempts
        assert first.allocation == second.allocation
        assert third.allocation[Kind.MEMORY] >= second.allocation[Kind.MEMORY]


def test_no_process_of_a_task_outlives_the_run(tmp_path: Path) -> None:
    with workqueue(tmp_path, SMALL, wrap=sized) as cluster:
        assert tasks.escape(271).result(LIMIT_S) == "left one behind"
        worker = cluster.crew.workers[0]
        wait_until(lambda: not worker.tasks(), "nothing runs in the worker's folder any more")
