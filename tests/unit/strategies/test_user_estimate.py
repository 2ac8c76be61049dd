from __future__ import annotations

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family

NODE = Resources(memory=64e9)
TASK = TaskInfo(1, "align", requested={Kind.MEMORY: 24e9})


def failed(amount: float) -> Outcome:
    attempt = Attempt(TASK, 1, {Kind.MEMORY: amount})
    return Outcome(attempt, Ending.EXHAUSTED, exhausted=frozenset({Kind.MEMORY}))


def test_the_request_comes_first_and_is_doubled_up_to_the_largest_node() -> None:
    strategy = family("user estimate, then doubling", Setting((Kind.MEMORY,)))("align")
    climbed = [
        strategy.propose(TASK, failures, NODE).amounts[Kind.MEMORY]
        for failures in ([], [failed(24e9)], [failed(24e9), failed(48e9)])
    ]
    assert climbed == [24e9, 48e9, 64e9]


def test_a_task_without_request_gets_the_largest_node() -> None:
    strategy = family("user-estimate", Setting((Kind.MEMORY,)))("align")
    assert strategy.propose(TaskInfo(2, "align"), [], NODE).amounts == {Kind.MEMORY: 64e9}
