"""Outcomes of earlier runs, learned at once."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.strategies import Setting, Strategy, recall
from parsl_sizer.strategies.catalog import family
from parsl_sizer.strategies.modifiers import modified

GB = 1e9
NODE = Resources(cores=16, memory=64 * GB, disk=64 * GB)
LADDERS = ("optimal-ladder", "conditioned-ladder", "auto")


def strategy(name: str, **modifiers: float) -> Strategy:
    return modified(family(name, Setting()), **modifiers)("align")  # type: ignore[arg-type]


def outcome(number: int, peak: float, size: float | None = None, given: float = 64 * GB) -> Outcome:
    """How a task ended that was given so much memory."""
    features = {} if size is None else {"input_size": size}
    task = TaskInfo(f"earlier/{number}", "align", features=features)
    allocation = {Kind.CORES: 1.0, Kind.MEMORY: given, Kind.DISK: GB}
    attempt = Attempt(task, 1, allocation)
    if peak <= given:
        usage = Usage({Kind.CORES: 1.0, Kind.MEMORY: peak, Kind.DISK: peak / 10}, 60.0)
        return Outcome(attempt, Ending.DONE, usage=usage)
    usage = Usage({Kind.MEMORY: given}, 30.0)
    return Outcome(attempt, Ending.EXHAUSTED, usage=usage, exhausted=frozenset({Kind.MEMORY}))


def scattered(tasks: int) -> list[Outcome]:
    draw = Random(1)
    return [outcome(number, draw.lognormvariate(0, 0.5) * GB) for number in range(tasks)]


def of_size(tasks: int) -> list[Outcome]:
    draw = Random(2)
    sizes = [draw.uniform(0.1, 5.0) * GB for _ in range(tasks)]
    return [outcome(number, 3 * size, size) for number, size in enumerate(sizes)]


def taught(name: str, outcomes: Sequence[Outcome]) -> Strategy:
    made = strategy(name)
    for one in outcomes:
        made.learn(one)
    return made


def recalled(name: str, outcomes: Sequence[Outcome], **modifiers: float) -> Strategy:
    made = strategy(name, **modifiers)
    recall(made, outcomes)
    return made


def memory(made: Strategy, size: float | None = None) -> float:
    features = {} if size is None else {"input_size": size}
    return made.propose(TaskInfo(1, "align", features=features), (), NODE).amounts[Kind.MEMORY]


@pytest.mark.parametrize("name", LADDERS)
@pytest.mark.parametrize("tasks", [1, 2, 3, 20, 200])
def test_what_is_recalled_is_known_as_if_it_had_been_learned(name: str, tasks: int) -> None:
    outcomes = scattered(tasks)
    # Between fits up to 3 % of the tasks are not in the ladder yet.
    expected = memory(taught(name, outcomes))
    assert memory(recalled(name, outcomes)) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("name", ["conditioned-ladder", "auto"])
def test_what_is_recalled_is_judged_too(name: str) -> None:
    made = recalled(name, of_size(200))
    for size in (0.5 * GB, GB, 4 * GB):
        assert 3 * size <= memory(made, size) < 3.3 * size


def test_attempts_that_ran_out_are_recalled_as_bounds() -> None:
    outcomes = [outcome(number, 9 * GB, given=2 * GB) for number in range(20)]
    done = [outcome(number, GB) for number in range(100, 120)]
    for name in LADDERS:
        assert memory(recalled(name, done + outcomes)) > memory(recalled(name, done))


@pytest.mark.parametrize("name", LADDERS)
def test_nothing_recalled_changes_nothing(name: str) -> None:
    assert memory(recalled(name, ())) == memory(strategy(name))
    only_failures = [outcome(1, 9 * GB, given=2 * GB)]
    assert memory(recalled(name, only_failures)) == memory(taught(name, only_failures))


@pytest.mark.parametrize("name", LADDERS)
def test_after_recalling_it_learns_as_ever(name: str) -> None:
    made = recalled(name, [outcome(number, GB) for number in range(20)])
    assert memory(made) < 1.1 * GB
    for number in range(200):
        made.learn(outcome(1000 + number, 5 * GB))
    assert memory(made) > 5 * GB * 0.99


def test_a_strategy_that_cannot_recall_learns_one_by_one() -> None:
    outcomes = scattered(50)
    assert memory(recalled("min-waste", outcomes)) == memory(taught("min-waste", outcomes))


def test_modifiers_pass_on_what_is_recalled_and_count_it() -> None:
    outcomes = scattered(50)
    plain = memory(recalled("auto", outcomes))
    assert memory(recalled("auto", outcomes, margin=0.5)) == pytest.approx(1.5 * plain)
    assert memory(recalled("auto", outcomes, warm_up=50)) == plain
    assert memory(recalled("auto", outcomes, warm_up=51)) == NODE.memory


def test_a_lesson_that_cannot_be_learned_leaves_the_ladders_usable() -> None:
    made = strategy("auto")
    nothing: Any = None
    broken = outcome(1, GB)._replace(attempt=nothing)
    with pytest.raises(AttributeError):
        recall(made, [*scattered(50), broken])
    for one in scattered(20):
        made.learn(one)
    assert 0 < memory(made) < NODE.memory
