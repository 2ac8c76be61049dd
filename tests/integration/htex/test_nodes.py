"""Three nodes: HTEX picks where a task runs, and no node is ever over-committed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sizer_tasks as tasks
from sizer_hosts import Hosts, connected, hosts_or_skip, logged, most_held, on, run_tasks
from sizer_runs import LIMIT_S, running, wait_until

from parsl_sizer import SizedExecutor, sizing_of
from parsl_sizer.model import Ending


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with hosts_or_skip(3) as made:
        yield made


@pytest.fixture(scope="module")
def executor(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedExecutor]:
    made = on(hosts, 3, "cores=3,memory=1GB")
    with running(made, tmp_path_factory.mktemp("nodes")):
        wait_until(lambda: connected(made, 3), "three managers")
        yield made


def test_all_nodes_are_used_and_none_is_over_committed(
    hosts: Hosts, executor: SizedExecutor, tmp_path: Path
) -> None:
    assert run_tasks(tmp_path, 24, [250e6, 400e6, 700e6]) == set(hosts.names)
    assert all(held <= 1e9 for held in most_held(logged(tmp_path)).values())


def test_no_task_waits_on_a_full_node_beside_an_empty_one(
    executor: SizedExecutor, tmp_path: Path
) -> None:
    """HTEX may well send two of them to one node."""
    go = tmp_path / "go"
    spec = {"memory": 900, "fixed": True}  # one fits on each host
    begun = [tmp_path / f"begun{number}" for number in range(3)]
    futures = [
        tasks.hold_until(str(go), 1, str(path), parsl_resource_specification=spec) for path in begun
    ]
    try:
        for path in begun:
            tasks.wait_for(path, 30)
    finally:
        go.touch()
        assert [future.result(LIMIT_S) for future in futures] == [1, 1, 1]


def test_tasks_of_a_host_that_is_cut_off_run_elsewhere(
    hosts: Hosts, executor: SizedExecutor, tmp_path: Path
) -> None:
    """The last test on these hosts: then there are two."""
    go = tmp_path / "go"
    begun = [tmp_path / f"begun{number}" for number in range(9)]
    spec = {"memory": 300, "fixed": True}  # for every worker one
    futures = [
        tasks.hold_until(str(go), 1, str(path), parsl_resource_specification=spec) for path in begun
    ]
    for path in begun:
        tasks.wait_for(path)
    hosts.cut_off(hosts.names[-1])
    wait_until(lambda: connected(executor, 2), "the loss of a manager")
    go.touch()
    assert [future.result(LIMIT_S) for future in futures] == [1] * 9
    attempts = [sizing_of(future).attempts for future in futures]
    assert sorted(len(made) for made in attempts) == [1] * 6 + [2] * 3
    for first, second in (made for made in attempts if len(made) == 2):
        assert (first.ending, second.ending) == (Ending.LOST, Ending.DONE)
        assert first.allocation == second.allocation
        assert second.host != hosts.names[-1]
