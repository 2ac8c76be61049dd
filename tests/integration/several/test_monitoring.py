"""Parsl's own monitoring with several groups: tasks and blocks of all of them are there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from multiprocessing import resource_tracker
from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl.monitoring import MonitoringHub
from sizer_groups import nodes_of, two_groups
from sizer_runs import running, wait_until

pytest.importorskip("sqlalchemy", reason="parsl[monitoring] is not installed here: make test-parsl")

LIMIT_S = 100


def test_tasks_and_blocks_of_all_groups_have_their_rows(tmp_path: Path) -> None:
    database = tmp_path / "monitoring.db"
    monitoring = MonitoringHub(
        logging_endpoint=f"sqlite:///{database}", resource_monitoring_interval=0.2
    )
    resource_tracker.ensure_running()  # it lasts as long as this process, not as the run
    made = two_groups()
    with running(made, tmp_path, monitoring=monitoring):
        wait_until(lambda: len(nodes_of(made)) == 2, "both groups")
        spec = {"memory": "700MB", "fixed": True}
        futures = [tasks.hold(1, 1.0, parsl_resource_specification=spec) for _ in range(4)]
        assert [future.result(LIMIT_S) for future in futures] == [1] * 4
    with closing(sqlite3.connect(database)) as connection:
        tries = connection.execute("select task_executor from try").fetchall()
        blocks = connection.execute("select distinct executor_label from block").fetchall()
        used = connection.execute("select count(distinct task_id) from resource").fetchall()
    assert tries == [("big+standard",)] * 4
    assert {label for (label,) in blocks} == {"big", "standard"}
    assert used == [(4,)]
