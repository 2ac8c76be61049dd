"""Replaying a trace task by task."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from parsl_sizer.model import Ending, Kind, Outcome, Resources, TaskInfo
from parsl_sizer.simulator.replay import Replayed, replay
from parsl_sizer.simulator.trace import Row
from parsl_sizer.sizing.categories import Categories
from parsl_sizer.strategies import Proposal

NODE = Resources(cores=16, memory=64.0, disk=64.0)


class Ladder:
    """Proposes fixed steps for every kind, and remembers what it was taught and when."""

    def __init__(self, *steps: float) -> None:
        self.steps = steps
        self.log: list[tuple[str, object]] = []

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        if not failures:
            self.log.append(("sized", task.task_id))
        amounts = {}
        for kind in (Kind.CORES, Kind.MEMORY):
            failed = sum(kind in failure.exhausted for failure in failures)
            amounts[kind] = self.steps[failed] if failed < len(self.steps) else largest[kind]
        return Proposal(amounts, "a fixed step")

    def learn(self, outcome: Outcome) -> None:
        self.log.append((outcome.ending.value, outcome.attempt.task.task_id))


def row(number: int, memory: float, cores: float = 1.0, time_s: float = 10.0) -> Row:
    peak = {Kind.CORES: cores, Kind.MEMORY: memory}
    return Row(number, TaskInfo(number, "align"), peak, time_s)


def run(
    rows: Sequence[Row],
    ladder: Ladder,
    *,
    lag: int = 0,
    ttf: float = 1.0,
    together: bool = False,
) -> list[Replayed]:
    categories = Categories(lambda category: ladder, lag=lag)
    return list(replay(rows, categories, NODE, ttf=ttf, together=together))


def test_a_task_climbs_until_its_peak_fits() -> None:
    [replayed] = run([row(1, memory=5.0)], Ladder(2.0, 4.0, 8.0))
    assert [o.attempt.allocation[Kind.MEMORY] for o in replayed.outcomes] == [2.0, 4.0, 8.0]
    assert [o.ending for o in replayed.outcomes] == [
        Ending.EXHAUSTED,
        Ending.EXHAUSTED,
        Ending.DONE,
    ]
    assert [o.attempt.number for o in replayed.outcomes] == [1, 2, 3]


def test_a_peak_equal_to_the_allocation_fits() -> None:
    [replayed] = run([row(1, memory=2.0)], Ladder(2.0))
    assert len(replayed.outcomes) == 1


def test_a_failed_attempt_lasts_its_share_of_the_time_and_shows_no_more_than_it_had() -> None:
    [replayed] = run([row(1, memory=5.0, time_s=10.0)], Ladder(2.0), ttf=0.3)
    failed, done = replayed.outcomes
    assert failed.usage.wall_s == 3.0
    assert failed.usage.peak[Kind.MEMORY] == 2.0
    assert failed.exhausted == {Kind.MEMORY}
    assert done.usage.wall_s == 10.0
    assert done.usage.peak[Kind.MEMORY] == 5.0


def test_only_the_kind_that_ran_out_grows() -> None:
    [replayed] = run([row(1, memory=1.0, cores=3.0)], Ladder(2.0, 4.0))
    assert [dict(o.attempt.allocation) for o in replayed.outcomes] == [
        {Kind.CORES: 2.0, Kind.MEMORY: 2.0},
        {Kind.CORES: 4.0, Kind.MEMORY: 2.0},
    ]


def test_without_lag_every_lesson_comes_before_the_next_task() -> None:
    ladder = Ladder(2.0)
    run([row(1, 5.0), row(2, 1.0)], ladder)
    assert ladder.log == [("sized", 1), ("exhausted", 1), ("done", 1), ("sized", 2), ("done", 2)]


def test_with_lag_every_lesson_waits_for_so_many_further_tasks_to_be_sized() -> None:
    ladder = Ladder(2.0)
    run([row(1, 5.0), *(row(number, 1.0) for number in range(2, 6))], ladder, lag=2)
    assert ladder.log[:4] == [("sized", 1), ("sized", 2), ("sized", 3), ("exhausted", 1)]
    assert ladder.log[4:] == [("done", 1), ("sized", 4), ("done", 2), ("sized", 5)]


def test_what_exceeds_the_node_is_impossible_in_that_kind_and_runs_in_the_others() -> None:
    [replayed] = run([row(1, memory=100.0, cores=1.0)], Ladder(2.0))
    assert replayed.impossible == {Kind.MEMORY}
    assert [o.ending for o in replayed.outcomes] == [Ending.DONE]
    assert Kind.MEMORY not in replayed.outcomes[0].usage.peak


def test_together_what_exceeds_the_node_in_one_kind_does_not_run() -> None:
    ladder = Ladder(2.0)
    [replayed] = run([row(1, memory=100.0)], ladder, together=True)
    assert replayed.outcomes == ()
    assert replayed.impossible == {Kind.MEMORY}
    assert ladder.log == []


def test_a_task_of_which_nothing_is_known_does_not_run() -> None:
    unknown = Row(1, TaskInfo(1, "align"), {}, 10.0)
    [replayed] = run([unknown], Ladder(2.0))
    assert replayed == Replayed(unknown, ())


def test_a_task_that_took_no_time_still_fails_and_is_retried() -> None:
    [replayed] = run([row(1, memory=5.0, time_s=0.0)], Ladder(2.0))
    assert [o.usage.wall_s for o in replayed.outcomes] == [0.0, 0.0]


@pytest.mark.parametrize("ttf", [-0.1, 1.1, float("nan")])
def test_a_time_to_failure_that_is_no_share_is_refused(ttf: float) -> None:
    with pytest.raises(ValueError, match="ttf must be between 0 and 1"):
        run([row(1, 1.0)], Ladder(2.0), ttf=ttf)
