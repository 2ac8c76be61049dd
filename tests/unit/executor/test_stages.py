"""Stages: whose tasks they are, and how far they are."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import parsl
import pytest
from parsl import Config, python_app
from parsl.executors import ThreadPoolExecutor

from parsl_sizer import stage
from parsl_sizer.executor.stages import BadStage, Stages
from parsl_sizer.model import TaskInfo

LABEL = "threads"


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Any]:
    config = Config(
        executors=[ThreadPoolExecutor(label=LABEL), ThreadPoolExecutor(label="other")],
        run_dir=str(tmp_path),
        initialize_logging=False,
        usage_tracking=0,
    )
    with parsl.load(config) as dfk:
        yield dfk


@python_app(executors=[LABEL])
def align(sample: object, parsl_resource_specification: object = None) -> object:
    return sample


@python_app(executors=[LABEL])
def merge(samples: object) -> object:
    return samples


@python_app(executors=["other"])
def elsewhere() -> None:
    return None


def seen(stages: Stages, kernel: Any, now: float = 0.0) -> dict[str, int]:
    stages._kernel = kernel
    return {found.name: found.tasks for found in stages.look(now)}


def test_stages_are_what_the_user_says_and_else_categories(kernel: Any) -> None:
    open_gate: Future[int] = Future()
    align(open_gate)
    with stage("all of it", nodes=3):
        for number in range(4):
            merge(align(number))
        elsewhere()
    align(open_gate, parsl_resource_specification={"category": "sort"})
    stages = Stages(LABEL)
    assert seen(stages, kernel) == {"align": 1, "all of it": 8, "sort": 1}
    assert [found.nodes for found in stages.look(0.0)] == [None, 3, None]
    open_gate.set_result(1)


def test_tasks_that_wait_for_others_are_known_and_counted_when_they_are_over(kernel: Any) -> None:
    open_gate: Future[int] = Future()
    first = align(open_gate)
    second = merge(first)
    stages = Stages(LABEL)
    assert seen(stages, kernel) == {"align": 1, "merge": 1}
    assert [found.left for found in stages.look(0.0)] == [1, 1]
    open_gate.set_result(1)
    second.result(60)
    assert [found.left for found in stages.look(0.0)] == [0, 0]


def test_a_stage_is_whole_when_it_is_left_or_when_nothing_new_comes(kernel: Any) -> None:
    stages = Stages(LABEL)
    open_gate: Future[int] = Future()
    with stage("inside"):
        align(open_gate)
        assert seen(stages, kernel, 10.0) == {"inside": 1}
        [inside] = stages.look(10.5)
        assert not inside.is_whole(10.5, 1.0)
        assert inside.is_whole(11.0, 1.0)
    assert inside.is_whole(10.5, 1.0)
    open_gate.set_result(1)


def test_what_comes_after_the_end_of_a_stage_is_another_stage(kernel: Any) -> None:
    stages = Stages(LABEL)
    open_gate: Future[int] = Future()
    align(open_gate)
    seen(stages, kernel)
    [first] = stages.look(0.0)
    first.has_ended = True
    align(open_gate)
    align(open_gate)
    assert seen(stages, kernel) == {"align": 1, "align #2": 2}
    open_gate.set_result(1)


def test_the_time_that_tasks_took_is_that_of_their_stage() -> None:
    stages = Stages(LABEL)
    for number, wall_s in enumerate((10.0, 20.0)):
        stages.given(TaskInfo(number, "align"), None, 0.0)
        stages.settled(number, wall_s)
    [found] = stages.look(0.0)
    assert found.mean_s == 15.0
    assert found.left == 0


@pytest.mark.parametrize(("name", "nodes"), [("", None), (7, None), ("a", 0), ("a", 1.5)])
def test_nonsense_is_refused_with_a_sentence(kernel: Any, name: Any, nodes: Any) -> None:
    with pytest.raises(BadStage, match=r"\.$"), stage(name, nodes=nodes):
        pass
