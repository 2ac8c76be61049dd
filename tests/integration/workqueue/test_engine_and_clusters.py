"""The engine with clusters that change, or are set up in another way."""

from __future__ import annotations

import os
from pathlib import Path

from sizer_calls import linger
from sizer_runs import wait_until
from sizer_workers import LARGE, SMALL, seen, workqueue

from parsl_sizer.engines.workqueue import WorkQueue
from parsl_sizer.model import Kind

LIMIT_S = 60


def test_a_worker_that_is_lost_leaves_and_its_task_runs_elsewhere(tmp_path: Path) -> None:
    with workqueue(tmp_path, LARGE) as cluster:
        engine = WorkQueue(cluster.inner)
        [node] = seen(engine, 1)
        begun, over = tmp_path / "begun", tmp_path / "over"
        specification = engine.specification({Kind.MEMORY: 1e9}, {}, node.capacity)
        future = cluster.inner.submit(linger, specification, str(begun), str(over))
        wait_until(begun.exists, "the task has begun")
        cluster.crew.workers[0].kill()
        seen(engine, 0)
        cluster.crew.add(SMALL)
        [other] = seen(engine, 1)
        assert other.capacity.memory == SMALL.memory * 1e6
        over.touch()
        assert future.result(LIMIT_S) == "over"


def test_a_manager_with_a_password_is_asked_too(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("se cret\n")
    with workqueue(tmp_path, SMALL, project_password_file=str(password)) as cluster:
        [node] = seen(WorkQueue(cluster.inner), 1)
        assert node.capacity.cores == SMALL.cores


def test_a_shared_file_system_changes_nothing_about_a_tasks_folder(tmp_path: Path) -> None:
    with workqueue(tmp_path, SMALL, shared_fs=True) as cluster:
        engine = WorkQueue(cluster.inner)
        seen(engine, 1)
        specification = engine.specification({Kind.MEMORY: 1e8}, {}, None)
        folder = cluster.inner.submit(os.getcwd, specification).result(LIMIT_S)
        assert Path(folder).is_relative_to(cluster.crew.workers[0].folder)
