from __future__ import annotations

import pytest

from parsl_sizer.model import Kind, Resources, TaskInfo, UnknownStrategy
from parsl_sizer.strategies import Hindsight, Setting
from parsl_sizer.strategies.catalog import family

NODE = Resources(cores=16, memory=64e9, disk=64e9)


def test_a_task_gets_exactly_its_peak() -> None:
    peaks = {1: {Kind.MEMORY: 3e9}, 2: {Kind.MEMORY: 5e9}}
    hindsight = Hindsight(lambda task: peaks[int(task.task_id)], {Kind.MEMORY: 5e9}, 1)
    strategy = family("oracle", Setting((Kind.MEMORY,), hindsight=hindsight))("align")
    amounts = [strategy.propose(TaskInfo(n, "align"), [], NODE).amounts for n in (1, 2)]
    assert amounts == [{Kind.MEMORY: 3e9}, {Kind.MEMORY: 5e9}]


def test_a_kind_that_was_not_measured_gets_the_request_or_the_largest_node() -> None:
    hindsight = Hindsight(lambda task: {}, {}, 1)
    strategy = family("oracle", Setting((Kind.DISK,), hindsight=hindsight))("align")
    assert strategy.propose(TaskInfo(1, "align"), [], NODE).amounts == {Kind.DISK: 64e9}


def test_it_refuses_to_run_live() -> None:
    with pytest.raises(UnknownStrategy, match="only a replay"):
        family("oracle", Setting())
