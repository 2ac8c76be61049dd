"""The engine with one real cluster, and without an executor around that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sizer_calls import environment, meet
from sizer_workers import LARGE, SMALL, Cluster, seen, taskvine

from parsl_sizer.engines.catalog import engine_for
from parsl_sizer.engines.taskvine import TaskVine
from parsl_sizer.model import Ending, Kind, Node

LIMIT_S = 60
SIZED = (Kind.CORES, Kind.MEMORY, Kind.DISK)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with taskvine(tmp_path_factory.mktemp("engine"), LARGE, SMALL) as made:
        yield made


@pytest.fixture(scope="module")
def engine(cluster: Cluster) -> TaskVine:
    made = engine_for(cluster.inner)
    assert isinstance(made, TaskVine)
    return made


@pytest.fixture(scope="module")
def nodes(engine: TaskVine) -> list[Node]:
    """Asked for before there is any task."""
    return seen(engine, 2)


def test_workers_are_nodes_of_the_promised_sizes(nodes: list[Node]) -> None:
    sizes = sorted(tuple(node.capacity[kind] for kind in SIZED) for node in nodes)
    assert sizes == [(size.cores, size.memory * 1e6, size.disk * 1e6) for size in (SMALL, LARGE)]
    assert len({node.name for node in nodes}) == 2


def test_the_port_that_a_manager_chose_is_found(cluster: Cluster, engine: TaskVine) -> None:
    assert engine._port_found() == cluster.inner.manager_config.port


def test_all_of_a_node_can_be_asked_for(
    cluster: Cluster, engine: TaskVine, nodes: list[Node]
) -> None:
    for node in nodes:
        whole = {kind: node.capacity[kind] for kind in SIZED}
        specification = engine.specification(whole, {}, node.capacity)
        future = cluster.inner.submit(environment, specification, "CORES", "MEMORY", "DISK")
        amounts = [str(specification[kind]) for kind in ("cores", "memory", "disk")]
        assert future.result(LIMIT_S) == amounts


def test_the_kinds_that_nobody_sizes_do_not_bind(
    cluster: Cluster, engine: TaskVine, nodes: list[Node], tmp_path: Path
) -> None:
    capacity = max((node.capacity for node in nodes), key=lambda node: node.memory)
    specification = engine.specification({Kind.MEMORY: 1e9}, {}, capacity)
    count = 5  # four of 1000 MB on the large worker, one on the small one
    futures = [
        cluster.inner.submit(meet, specification, str(tmp_path), str(number), count)
        for number in range(count)
    ]
    assert [future.result(LIMIT_S) for future in futures] == [count] * count


def test_a_task_that_dies_is_lost(cluster: Cluster, engine: TaskVine) -> None:
    future = cluster.inner.submit(os._exit, engine.specification({}, {}, None), 9)
    error = future.exception(LIMIT_S)
    assert error is not None
    verdict = engine.verdict(error)
    assert verdict is not None
    assert verdict.ending is Ending.LOST
