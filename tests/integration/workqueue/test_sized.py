"""SizedExecutor around Work Queue with workers of two sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sizer_tasks as tasks
from sizer_runs import wait_until
from sizer_workers import LARGE, SMALL, Cluster, workqueue

from parsl_sizer import Kind, SizedExecutor, sizing_of
from parsl_sizer.model import Ending

LIMIT_S = 100
SIZED = [Kind.CORES, Kind.MEMORY, Kind.DISK]


def sized(inner: object) -> SizedExecutor:
    return SizedExecutor(inner, report=False)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with workqueue(tmp_path_factory.mktemp("sized"), LARGE, SMALL, wrap=sized) as made:
        wait_until(lambda: len(made.executor._driver._nodes) == 2, "both workers")
        yield made


def test_tasks_are_sized_by_category_and_measured(cluster: Cluster) -> None:
    small = [tasks.hold(50 + n, parsl_resource_specification={"category": "s"}) for n in range(4)]
    large = [tasks.hold(500 + n, parsl_resource_specification={"category": "l"}) for n in range(4)]
    assert [future.result(LIMIT_S) for future in small] == [50, 51, 52, 53]
    assert [future.result(LIMIT_S) for future in large] == [500, 501, 502, 503]
    for future in small + large:
        sizing = sizing_of(future)
        last = sizing.attempts[-1]
        assert last.ending is Ending.DONE
        assert last.peak[Kind.MEMORY] == pytest.approx(future.result() * 1e6, rel=0.1, abs=15e6)
        assert list(last.allocation) == SIZED
        assert sizing.category == ("s" if future in small else "l")
        assert last.allocation[Kind.CORES] <= LARGE.cores
        assert last.allocation[Kind.MEMORY] <= LARGE.memory * 1e6
        assert last.allocation[Kind.DISK] <= LARGE.disk * 1e6


def test_a_task_for_the_large_worker_only_finds_it(cluster: Cluster) -> None:
    hints = {"category": "large only", "memory": 3000, "fixed": True}
    futures = [tasks.hold(2000, parsl_resource_specification=hints) for _ in range(2)]
    assert [future.result(LIMIT_S) for future in futures] == [2000, 2000]
    for future in futures:
        [attempt] = sizing_of(future).attempts
        assert attempt.allocation == {Kind.MEMORY: 3e9}


def test_nothing_is_asked_for_that_no_worker_has(cluster: Cluster) -> None:
    hints = {"category": "asks for the world", "memory": 10**6, "cores": 64, "disk": 10**9}
    future = tasks.hold(10, parsl_resource_specification=hints)
    assert future.result(LIMIT_S) == 10
    [attempt] = sizing_of(future).attempts
    assert attempt.allocation[Kind.MEMORY] == LARGE.memory * 1e6
    assert attempt.allocation[Kind.CORES] == LARGE.cores


def test_an_exception_reaches_the_user_unchanged(cluster: Cluster) -> None:
    future = tasks.fail()
    with pytest.raises(ValueError, match="as it should"):
        future.result(LIMIT_S)
    assert [attempt.ending for attempt in sizing_of(future).attempts] == [Ending.RAISED]


def test_disk_is_measured_in_the_folder_of_the_task(cluster: Cluster, tmp_path: Path) -> None:
    future = tasks.fill_disk(150, 1, str(tmp_path / "note"))
    assert future.result(LIMIT_S) == 150
    last = sizing_of(future).attempts[-1]
    assert last.peak[Kind.DISK] == pytest.approx(150e6, rel=0.1)
