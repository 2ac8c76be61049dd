"""Two nodes of which nobody said what they have: they say so themselves."""

from __future__ import annotations

from pathlib import Path

import sizer_tasks as tasks
from sizer_hosts import connected, hosts_or_skip, logged, most_held, on, run_tasks
from sizer_runs import LIMIT_S, running, wait_until


def test_both_are_used_and_none_is_over_committed(tmp_path: Path) -> None:
    """What they have comes with the first reports; here it is this machine's memory."""
    with hosts_or_skip(2) as hosts:
        made = on(hosts, 2, None)
        with running(made, tmp_path):
            wait_until(lambda: connected(made, 2), "two managers")
            tasks.add(1, 2).result(LIMIT_S)
            memory = wait_until(lambda: made._sizer.largest, "a node that is known").memory
            used = run_tasks(tmp_path, 18, [share * memory for share in (0.25, 0.4, 0.7)], mb=1)
    assert used == set(hosts.names)
    assert all(held <= memory for held in most_held(logged(tmp_path)).values())
