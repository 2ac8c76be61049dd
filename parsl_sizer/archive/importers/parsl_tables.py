"""The tables of Parsl's monitoring, joined into one row for each try.

Parsl makes no index but those of its primary keys. What is known of a try from its samples
and its states is put together by grouping these tables once (the samples in the order of
their key), into temporary tables of SQLite's own, which it keeps on disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from .sqlite_file import columns

NEEDED: Mapping[str, frozenset[str]] = {
    "task": frozenset({"run_id", "task_id", "task_func_name"}),
    "try": frozenset({"run_id", "task_id", "try_id"}),
}
KEY = NEEDED["try"]
LONGEST = 65536
"""So much of a text is read."""
CPU = "psutil_process_time_user + psutil_process_time_system"


OF_RUN = 6
"""So many first values of a row are the run's."""


class Row(NamedTuple):
    """A try; what is not known is None, and nothing of it is to be trusted."""

    run_id: object
    user: object
    workflow_name: object
    workflow_version: object
    host: object
    began: object
    task_id: object
    try_id: object
    task_func_name: object
    inputs: object
    invoked: object
    executor: object
    hostname: object
    running: object
    returned: object
    failure: object
    states: object
    running_ended: object
    memory: object
    cpu_first: object
    cpu_last: object
    first_at: object
    last_at: object


def missing(database: sqlite3.Connection) -> str | None:
    """The first thing that every database of Parsl has and this one has not."""
    for table, needed in NEEDED.items():
        lacking = sorted(needed - columns(database, table))
        if lacking:
            return f"column {lacking[0]} in a table {table}"
    return None


def query(database: sqlite3.Connection) -> str:
    """What asks for all rows; only the names above and below are in it, none of the file's."""
    names = ("workflow", "task", "try", "status", "resource")
    here = {table: columns(database, table) for table in names}
    joins = ['"try" AS tr', "task AS ta ON ta.run_id = tr.run_id AND ta.task_id = tr.task_id"]
    states, samples = ["NULL"] * 2, ["NULL"] * 5
    if "run_id" in here["workflow"]:
        joins.append("workflow AS wo ON wo.run_id = tr.run_id")
    else:
        here["workflow"] = frozenset()
    if here["status"] >= KEY | {"task_status_name", "timestamp"}:
        joins.append(f"({_STATES}) AS st {_SAME_TRY.format('st')}")
        states = ["st.states", "st.running_ended"]
    if here["resource"] >= KEY | {"timestamp"}:
        joins.append(f"({_samples(here['resource'])}) AS re {_SAME_TRY.format('re')}")
        samples = [f"re.{name}" for name in Row._fields[-5:]]

    def text(table: str, column: str) -> str:
        known = column in here[table]
        return f"substr({table[:2]}.{column}, 1, {LONGEST})" if known else "NULL"

    selected = [
        "substr(tr.run_id, 1, 200)",
        *(text("workflow", name) for name in ("user", "workflow_name", "workflow_version")),
        *(text("workflow", name) for name in ("host", "time_began")),
        "tr.task_id",
        "tr.try_id",
        *(text("task", f"task_{name}") for name in ("func_name", "inputs", "time_invoked")),
        text("try", "task_executor"),
        text("try", "hostname"),
        *(text("try", f"task_try_time_{name}") for name in ("running", "returned")),
        text("try", "task_fail_history"),
        *states,
        *samples,
    ]
    return (
        f"SELECT {', '.join(selected)} FROM {' LEFT JOIN '.join(joins)} "
        f"ORDER BY {selected[Row._fields.index('returned')]}, tr.run_id, tr.task_id, tr.try_id"
    )


_SAME_TRY = "ON {0}.run_id = tr.run_id AND {0}.task_id = tr.task_id AND {0}.try_id = tr.try_id"
_STATES = """
    SELECT run_id, task_id, try_id,
        group_concat(DISTINCT substr(task_status_name, 1, 20)) AS states,
        max(CASE WHEN task_status_name = 'running_ended' THEN timestamp END) AS running_ended
    FROM status GROUP BY task_id, run_id, try_id
"""


def _samples(here: frozenset[str]) -> str:
    memory = "psutil_process_memory_resident"
    has_cpu = {"psutil_process_time_user", "psutil_process_time_system"} <= here
    # Processor time of two processes is not to be compared: the engine ran the try again.
    one = "min(psutil_process_pid) IS max(psutil_process_pid)"
    alike = f"CASE WHEN {one} THEN {{}} END" if "psutil_process_pid" in here else "{}"
    return f"""
        SELECT run_id, task_id, try_id,
            {f"max({memory})" if memory in here else "NULL"} AS memory,
            {alike.format(f"min({CPU})") if has_cpu else "NULL"} AS cpu_first,
            {alike.format(f"max({CPU})") if has_cpu else "NULL"} AS cpu_last,
            min(timestamp) AS first_at, max(timestamp) AS last_at
        FROM resource GROUP BY try_id, task_id, run_id
    """
