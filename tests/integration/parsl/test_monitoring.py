"""Parsl's own monitoring beside ours: its database has the rows that it has without us."""

from __future__ import annotations

import sqlite3
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest
import sizer_apps as apps
from parsl.monitoring import MonitoringHub
from sizer_runs import htex, running, sized

from parsl_sizer import sizing_of

pytest.importorskip("sqlalchemy", reason="parsl[monitoring] is not installed here: make test-parsl")

LIMIT_S = 60
LEFT = (
    "SELECT task_id, task_func_name, task_memoize, task_fail_count FROM task ORDER BY task_id",
    "SELECT task_id, try_id, task_executor, task_fail_history FROM try ORDER BY task_id, try_id",
    "SELECT task_id, try_id, task_status_name FROM status ORDER BY task_id, timestamp",
    "SELECT tasks_completed_count, tasks_failed_count FROM workflow",
)
"""What of Parsl's tables does not depend on the moment or the process."""


def rows(database: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_every_task_has_its_rows_and_sizes_make_no_tries(tmp_path: Path) -> None:
    database = tmp_path / "monitoring.db"
    monitoring = MonitoringHub(
        logging_endpoint=f"sqlite:///{database}",
        resource_monitoring_interval=0.2,
    )
    resource_tracker.ensure_running()  # it lasts as long as this process, not as the run
    with running(sized(htex(1), grow=False), tmp_path, monitoring=monitoring):
        futures = [
            apps.sleeping(0.5),
            apps.grown(400, str(tmp_path / "notes")),
            apps.sleeping(0.5),  # in the runner that came after the breach
        ]
        for future in futures:
            future.result(LIMIT_S)
        assert len(sizing_of(futures[1]).attempts) > 1
    ids = [(future.tid,) for future in futures]
    assert rows(database, "SELECT task_id FROM task ORDER BY task_id") == ids
    assert rows(database, "SELECT task_id FROM try ORDER BY task_id") == ids
    ran = "SELECT task_id FROM try WHERE task_try_time_running IS NOT NULL ORDER BY task_id"
    assert rows(database, ran) == ids
    measured = (
        "SELECT DISTINCT task_id FROM resource WHERE psutil_process_memory_resident > 0"
        " ORDER BY task_id"
    )
    assert set(rows(database, measured)) >= {ids[0], ids[2]}
    assert rows(database, "SELECT COUNT(*) FROM node") > [(0,)]
    assert rows(database, "SELECT tasks_completed_count FROM workflow") == [(3,)]


def test_a_run_leaves_the_rows_that_it_leaves_without_us(tmp_path: Path) -> None:
    """Also of a task that fails, and is retried by Parsl."""
    found = []
    for name, executor in ("plain", htex(1)), ("sized", sized(htex(1))):
        database = tmp_path / f"{name}.db"
        monitoring = MonitoringHub(logging_endpoint=f"sqlite:///{database}")
        resource_tracker.ensure_running()
        folder = tmp_path / name
        folder.mkdir()
        with running(executor, folder, monitoring=monitoring, retries=1):
            apps.sleeping(0.1).result(LIMIT_S)
            assert apps.failing_with("no").exception(LIMIT_S) is not None
        found.append([rows(database, query) for query in LEFT])
    plain, ours = found
    assert all(plain)
    assert ours == plain
