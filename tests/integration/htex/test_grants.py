"""Several blocks, executors and grants on this one machine: what they have between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sizer_tasks as tasks
from parsl import python_app
from parsl.launchers.base import Launcher
from parsl.providers import LocalProvider
from sizer_runs import LIMIT_S, htex, running, sized, wait_until

from parsl_sizer import Kind, SizedExecutor, sizing_of
from parsl_sizer.monitor import node, node_ledger
from parsl_sizer.monitor.claims import Ledger


class Elsewhere(Launcher):
    """Starts managers as a batch system would: on which host is not known before they say so."""

    def __call__(
        self, command: str, tasks_per_node: int, nodes_per_block: int, script_dir: str = ""
    ) -> str:
        return command


def blocks(count: int, **options: Any) -> LocalProvider:
    return LocalProvider(init_blocks=count, min_blocks=0, max_blocks=count, **options)


def held_by_all() -> list[float]:
    """The memory that all runs without a grant have reserved on this machine."""
    table = Ledger(node_ledger.folder(node_ledger.MACHINE)).table()
    return [claim.get("memory", 0.0) for claim in table.held.values()]


@pytest.mark.parametrize("launcher", [None, Elsewhere()], ids=["here", "elsewhere"])
def test_three_blocks_on_one_host_run_as_many_at_once_as_they_have_workers(
    tmp_path: Path, launcher: Launcher | None
) -> None:
    """Each counted as a host with all of the memory: three tasks of six found some there."""
    options = {} if launcher is None else {"launcher": launcher}
    made = sized(htex(2, provider=blocks(3, **options)), node=None, kinds=None)
    go = tmp_path / "go"
    with running(made, tmp_path):
        tasks.hold_until(str(tmp_path)).result(LIMIT_S)
        wait_until(lambda: [one.slots for one in made._driver._nodes.values()] == [6], "six slots")
        begun = [tmp_path / f"begun{number}" for number in range(6)]
        futures = [tasks.hold_until(str(go), 1, str(path)) for path in begun]
        try:
            for path in begun:
                tasks.wait_for(path, 60)
        finally:
            go.touch()
        for future in futures:
            assert future.result(LIMIT_S) == 1
        assert list(made._driver._nodes) == [node.name()]


def test_two_executors_on_one_machine_reserve_no_more_than_it_has(tmp_path: Path) -> None:
    """Each reserved as much as if it were alone."""
    pair = [sized(htex(1, label=label), node=None) for label in ("one", "two")]
    go, begun = tmp_path / "go", [tmp_path / "begun1", tmp_path / "begun2"]
    with running(pair, tmp_path):
        memory = wait_until(lambda: pair[0]._sizer.largest, "the machine").memory
        spec = {"memory": 0.6 * memory / 1e6, "fixed": True}
        futures = []
        for executor, path in zip(pair, begun, strict=True):
            hold = python_app(tasks.hold_until.func, executors=[executor.label])
            futures.append(hold(str(go), 1, str(path), parsl_resource_specification=spec))
        wait_until(lambda: any(path.exists() for path in begun), "a task that runs")
        ledger = Ledger(node_ledger.folder(node_ledger.MACHINE))
        wait_until(lambda: len(ledger.living()) == 2, "another task that waits")
        assert held_by_all() == [pytest.approx(0.6 * memory)]
        assert sum(path.exists() for path in begun) == 1
        go.touch()
        assert [future.result(LIMIT_S) for future in futures] == [1, 1]


def test_the_memory_that_a_user_says_a_node_has_is_for_this_executor(tmp_path: Path) -> None:
    """Two that say so are not in each other's way, and neither has more than it says."""
    pair = [sized(htex(2, label=label), node="memory=1GB") for label in ("one", "two")]
    go, begun = tmp_path / "go", [tmp_path / "begun1", tmp_path / "begun2"]
    with running(pair, tmp_path):
        futures = []
        for executor, path in zip(pair, begun, strict=True):
            hold = python_app(tasks.hold_until.func, executors=[executor.label])
            spec = {"memory": 800, "fixed": True}
            futures.append(hold(str(go), 1, str(path), parsl_resource_specification=spec))
        for path in begun:
            tasks.wait_for(path, 60)
        assert held_by_all() == []
        go.touch()
        assert [future.result(LIMIT_S) for future in futures] == [1, 1]


def test_two_blocks_with_grants_on_one_host_are_two_nodes(tmp_path: Path) -> None:
    granted = "export PARSL_MEMORY_GB=1 PARSL_CORES=2"
    made: SizedExecutor = sized(htex(2, provider=blocks(2, worker_init=granted)), node=None)
    go, begun = tmp_path / "go", [tmp_path / "begun1", tmp_path / "begun2"]
    with running(made, tmp_path):
        wait_until(lambda: len(made.inner.connected_managers()) == 2, "two managers")
        spec = {"memory": 700, "fixed": True}
        futures = [
            tasks.hold_until(str(go), 1, str(path), parsl_resource_specification=spec)
            for path in begun
        ]
        for path in begun:
            tasks.wait_for(path, 60)
        go.touch()
        assert [future.result(LIMIT_S) for future in futures] == [1, 1]
        names = {f"{node.name()} block {number}" for number in (0, 1)}
        wait_until(lambda: set(made._driver._nodes) == names, "two nodes")
        future = tasks.hold(1)
        assert future.result(LIMIT_S) == 1
        [attempt] = sizing_of(future).attempts
        assert attempt.allocation[Kind.MEMORY] <= 1e9


def test_what_is_not_known_of_a_node_is_in_no_allocation(tmp_path: Path) -> None:
    """The provider says what a node has of cores and memory, and nobody what of disk."""
    provider = blocks(2, launcher=Elsewhere())
    provider.cores_per_node, provider.mem_per_node = 2, 1
    made = sized(htex(2, provider=provider), node=None, kinds=None)
    with running(made, tmp_path):
        futures = [tasks.hold(1) for _ in range(8)]
        for future in futures:
            assert future.result(LIMIT_S) == 1
        outcomes = [one for future in futures for one in sizing_of(future).attempts]
        [disk] = {found.capacity.disk for found in made._driver._nodes.values()}
    assert all(one.allocation[Kind.DISK] <= disk for one in outcomes)
    assert all(one.allocation[Kind.MEMORY] <= 1e9 for one in outcomes)
    assert not any(" TB" in one.why or " PB" in one.why for one in outcomes)
