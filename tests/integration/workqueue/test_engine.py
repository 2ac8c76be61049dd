"""The engine with one real cluster, and without an executor around that."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from parsl.executors.workqueue.errors import WorkQueueTaskFailure
from sizer_calls import environment, meet
from sizer_workers import LARGE, SMALL, Cluster, Size, seen, workqueue

from parsl_sizer.engines.workqueue import WorkQueue
from parsl_sizer.model import Ending, Kind, Node

LIMIT_S = 60


def promised(size: Size) -> tuple[float, float]:
    return size.cores, size.memory * 1e6


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with workqueue(tmp_path_factory.mktemp("engine"), LARGE, SMALL) as made:
        yield made


@pytest.fixture(scope="module")
def engine(cluster: Cluster) -> WorkQueue:
    return WorkQueue(cluster.inner)


@pytest.fixture(scope="module")
def nodes(engine: WorkQueue) -> list[Node]:
    """Asked for before there is any task."""
    return seen(engine, 2)


def test_workers_are_nodes_of_the_promised_sizes(nodes: list[Node]) -> None:
    sizes = sorted((node.capacity.cores, node.capacity.memory) for node in nodes)
    assert sizes == sorted([promised(LARGE), promised(SMALL)])
    assert len({node.name for node in nodes}) == 2


def test_all_of_a_node_can_be_asked_for(
    cluster: Cluster, engine: WorkQueue, nodes: list[Node]
) -> None:
    for node in nodes:
        whole = {kind: node.capacity[kind] for kind in (Kind.CORES, Kind.MEMORY, Kind.DISK)}
        specification = engine.specification(whole, {}, node.capacity)
        future = cluster.inner.submit(environment, specification, "CORES", "MEMORY", "DISK")
        amounts = [str(specification[kind]) for kind in ("cores", "memory", "disk")]
        assert future.result(LIMIT_S) == amounts


def test_the_kinds_that_nobody_sizes_do_not_bind(
    cluster: Cluster, engine: WorkQueue, nodes: list[Node], tmp_path: Path
) -> None:
    capacity = max((node.capacity for node in nodes), key=lambda node: node.memory)
    specification = engine.specification({Kind.MEMORY: 1e9}, {"priority": 2}, capacity)
    folder = tmp_path / "met"
    folder.mkdir()
    count = 5  # four of 1000 MB on the large worker, one on the small one
    futures = [
        cluster.inner.submit(meet, specification, str(folder), str(number), count)
        for number in range(count)
    ]
    assert [future.result(LIMIT_S) for future in futures] == [count] * count


def test_a_task_that_is_killed_is_lost(cluster: Cluster, engine: WorkQueue) -> None:
    specification = engine.specification({Kind.MEMORY: 1e9}, {}, None)
    future = cluster.inner.submit(os._exit, specification, 9)
    with pytest.raises(WorkQueueTaskFailure, match="was not transfered") as caught:
        future.result(LIMIT_S)
    verdict = engine.verdict(caught.value)
    assert verdict is not None
    assert verdict.ending is Ending.LOST


def test_a_task_that_is_killed_by_a_signal_is_lost(cluster: Cluster, engine: WorkQueue) -> None:
    specification = engine.specification({Kind.MEMORY: 1e9}, {}, None)
    future = cluster.inner.submit(signal.raise_signal, specification, signal.SIGKILL)
    error = future.exception(LIMIT_S)
    assert error is not None
    verdict = engine.verdict(error)
    assert verdict is not None
    assert verdict.ending is Ending.LOST
