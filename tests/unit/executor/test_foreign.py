"""Words in a specification that are not for us."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor

from parsl_sizer.engines import Engine
from parsl_sizer.engines.catalog import engine_for
from parsl_sizer.engines.workqueue import WorkQueue
from parsl_sizer.executor.foreign import passed_on
from parsl_sizer.executor.hints import BadHint, read
from parsl_sizer.model import Kind

LSST = {"memory": 4096, "cores": 2, "disk": 500, "running_time_min": 30, "priority": 7}


def made(name: str) -> Engine:
    if name == "threads":
        return engine_for(ThreadPoolExecutor())
    if name == "htex":
        return engine_for(HighThroughputExecutor(address="127.0.0.1"))
    return WorkQueue(SimpleNamespace(autolabel=False))


@pytest.mark.parametrize(
    ("engine", "taken", "said"),
    [
        ("threads", {}, ["threads does not know 'running_time_min'"]),
        ("htex", {"priority": 7}, ["HTEX does not know 'running_time_min'"]),
        ("workqueue", {"priority": 7, "running_time_min": 30}, []),
    ],
)
def test_an_engine_is_given_what_it_takes_and_the_rest_is_told(
    engine: str, taken: dict[str, object], said: list[str]
) -> None:
    warnings: list[str] = []
    hints = read(LSST)
    assert hints.requested == {Kind.MEMORY: 4096e6, Kind.CORES: 2.0, Kind.DISK: 5e8}
    assert passed_on(hints.given, made(engine), warnings.append) == taken
    assert [warning.partition(":")[0] for warning in warnings] == said


def test_work_queue_is_told_amounts_as_it_takes_them() -> None:
    engine = made("workqueue")
    hints = read({**LSST, "memory": "4GB", "cores": np.int64(2), "gpus": None})
    given = passed_on(hints.given, engine, pytest.fail)
    asked = {"cores": 2, "memory": 4000, "disk": 500, "priority": 7, "running_time_min": 30}
    assert engine.unsized(hints.requested, given) == asked
    assert engine.specification(hints.requested, given, None) == asked


@pytest.mark.parametrize("engine", ["threads", "htex", "workqueue"])
@pytest.mark.parametrize("value", ["high", math.nan, True, [1]])
def test_a_priority_is_a_number(engine: str, value: object) -> None:
    with pytest.raises(BadHint, match=r"priority=.* must be a number"):
        passed_on({"priority": value}, made(engine), pytest.fail)


@pytest.mark.parametrize("value", [np.int64(3), np.float32(3), 3.0])
def test_a_number_becomes_one_that_needs_no_numpy_to_be_read(value: Any) -> None:
    taken = passed_on({"priority": value}, made("htex"), pytest.fail)
    assert taken == {"priority": 3}
    assert type(taken["priority"]) is int


@pytest.mark.parametrize("engine", ["threads", "htex", "workqueue"])
def test_a_task_has_one_node(engine: str) -> None:
    warnings: list[str] = []
    assert passed_on({"num_nodes": 1, "ranks_per_node": 4}, made(engine), warnings.append) == {}
    assert len(warnings) == 2
    with pytest.raises(BadHint, match="num_nodes=2 is more than the one node"):
        passed_on({"num_nodes": 2}, made(engine), pytest.fail)


@pytest.mark.parametrize("engine", ["threads", "htex", "workqueue"])
def test_a_word_that_nobody_knows_is_a_mistake(engine: str) -> None:
    with pytest.raises(BadHint, match=r"'memroy' is no word that is known here; there are cores,"):
        passed_on({"memroy": 100}, made(engine), pytest.fail)
