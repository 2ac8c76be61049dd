from __future__ import annotations

import pytest

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo
from parsl_sizer.strategies import Hindsight, Setting
from parsl_sizer.strategies.catalog import family

NODE = Resources(cores=16, memory=64e9, disk=64e9)
KINDS = (Kind.MEMORY, Kind.DISK)
HINDSIGHT = Hindsight(lambda task: {}, {Kind.MEMORY: 10e9, Kind.DISK: 1e9}, 1)
REQUESTING = TaskInfo(1, "align", requested={Kind.MEMORY: 3e9})


def test_in_a_replay_all_tasks_get_the_largest_memory_and_5_percent() -> None:
    strategy = family("user-declared", Setting(KINDS, hindsight=HINDSIGHT))("align")
    amounts = strategy.propose(REQUESTING, [], NODE).amounts
    assert amounts == pytest.approx({Kind.MEMORY: 10.5e9, Kind.DISK: 64e9})


def test_the_declaration_is_never_above_the_largest_node() -> None:
    strategy = family("user-declared", Setting(KINDS, hindsight=HINDSIGHT))("align")
    assert strategy.propose(REQUESTING, [], Resources(memory=8e9)).amounts[Kind.MEMORY] == 8e9


def test_live_it_is_the_request_or_the_largest_node() -> None:
    strategy = family("user-declared", Setting(KINDS))("align")
    amounts = strategy.propose(REQUESTING, [], NODE).amounts
    assert amounts == {Kind.MEMORY: 3e9, Kind.DISK: 64e9}


def test_a_task_that_ran_out_of_it_gets_the_largest_node() -> None:
    strategy = family("user-declared", Setting(KINDS))("align")
    attempt = Attempt(REQUESTING, 1, {Kind.MEMORY: 3e9, Kind.DISK: 2e9})
    failed = Outcome(attempt, Ending.EXHAUSTED, exhausted=frozenset({Kind.MEMORY}))
    amounts = strategy.propose(REQUESTING, [failed], NODE).amounts
    assert amounts == {Kind.MEMORY: 64e9, Kind.DISK: 2e9}
