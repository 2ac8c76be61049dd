from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from parsl_sizer.model import MB, Kind, TaskInfo
from parsl_sizer.strategies.bucketing import EXACT_TASKS, Bucketing, next_power_of_two

TASK = TaskInfo(1, "align")


class EveryPoint(Bucketing):
    """A bucket for each point."""

    computed = 0

    def ends(self, peaks: object, significance: Sequence[float]) -> list[int]:
        self.computed += 1
        return list(range(len(significance)))


def taught(
    *peaks_mb: float, kind: Kind = Kind.MEMORY, deterministic: bool = False, seed: str = "0"
) -> EveryPoint:
    strategy = EveryPoint(kind, deterministic=deterministic, seed=seed)
    for peak in peaks_mb:
        strategy.observe(TASK, peak * MB, 1.0)
    return strategy


def test_until_ten_tasks_are_known_it_doubles_from_1000_mb_or_one_core() -> None:
    strategy = taught(*[300.0] * 9)
    assert strategy.predict(TASK, 64e9) == 1000 * MB
    assert strategy.grow(TASK, [1000 * MB], 64e9) == 2000 * MB
    assert taught(kind=Kind.CORES).predict(TASK, 16) == 1
    assert taught(kind=Kind.CORES).grow(TASK, [1.0], 16) == 2


def test_above_all_buckets_comes_the_next_power_of_two_which_may_be_below_1000_mb() -> None:
    strategy = taught(*[300.0] * 10)
    assert strategy.predict(TASK, 64e9) == 300 * MB
    assert strategy.grow(TASK, [300 * MB], 64e9) == 500 * MB
    assert strategy.grow(TASK, [300 * MB, 500 * MB], 64e9) == 1000 * MB


@pytest.mark.parametrize(
    ("amount", "larger"), [(0.0, 1000.0), (999.0, 1000.0), (1000.0, 2000.0), (125.0, 250.0)]
)
def test_the_next_power_of_two_is_strictly_larger(amount: float, larger: float) -> None:
    assert next_power_of_two(amount, 1000.0) == larger


def test_newer_tasks_have_more_significance() -> None:
    strategy = taught(*[1.0] * 5, *[2.0] * 5)
    assert strategy.shares == pytest.approx([15 / 55, 40 / 55])


def test_the_deterministic_variant_takes_the_buckets_in_order() -> None:
    strategy = taught(*range(1, 11), deterministic=True)
    assert strategy.predict(TASK, 64e9) == 1 * MB
    assert strategy.grow(TASK, [1 * MB], 64e9) == 2 * MB
    assert strategy.grow(TASK, [1 * MB, 7.5 * MB], 64e9) == 8 * MB


def test_the_first_bucket_is_drawn_by_its_share() -> None:
    strategy = taught(*[1.0] * 5, *[2.0] * 5)
    drawn = Counter(strategy.predict(TaskInfo(n, "align"), 64e9) for n in range(4000))
    assert drawn[1 * MB] / 4000 == pytest.approx(15 / 55, abs=0.03)


def test_after_a_failure_a_larger_bucket_is_drawn_by_its_share_of_the_larger_ones() -> None:
    strategy = taught(*[1.0] * 4, *[2.0] * 3, *[3.0] * 3)
    drawn = Counter(strategy.grow(TaskInfo(n, "align"), [1 * MB], 64e9) for n in range(4000))
    assert set(drawn) == {2 * MB, 3 * MB}
    assert drawn[2 * MB] / 4000 == pytest.approx(18 / 45, abs=0.03)


def test_the_draw_depends_on_seed_task_and_failures_alone() -> None:
    def draws(strategy: EveryPoint) -> list[float]:
        return [strategy.predict(TaskInfo(n, "align"), 64e9) for n in range(50)]

    one = taught(*range(1, 11))
    assert draws(one) == draws(one) == draws(taught(*range(1, 11)))
    assert draws(one) != draws(taught(*range(1, 11), seed="1"))
    assert draws(one) != [one.grow(TaskInfo(n, "align"), [0.5], 64e9) for n in range(50)]


def test_with_many_tasks_the_buckets_are_computed_less_often() -> None:
    strategy = taught(*[1.0] * EXACT_TASKS)
    assert strategy.computed == EXACT_TASKS - 9
    for _ in range(2 * EXACT_TASKS):
        strategy.observe(TASK, 1 * MB, 1.0)
    assert strategy.computed < 2.2 * EXACT_TASKS


def test_a_proposal_says_which_bucket_it_is() -> None:
    assert taught(1.0).why(TASK, 1000 * MB) == "1 of 10 tasks seen"
    assert taught(*range(1, 11)).why(TASK, 2 * MB) == "bucket 2 of 10 over 10 tasks"
