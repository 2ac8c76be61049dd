from __future__ import annotations

import math
from random import Random

import pytest

from parsl_sizer.model import Kind, TaskInfo
from parsl_sizer.strategies.cold_start import Pool
from parsl_sizer.strategies.conditioned_ladder import ConditionedLadder, on_log_scale
from parsl_sizer.strategies.optimal_ladder import OptimalLadder

GB = 1e9
NODE = 64 * GB


def task(number: int, size: float | None, name: str = "input_size") -> TaskInfo:
    return TaskInfo(number, "sort", features={} if size is None else {name: size})


def linear(tasks: int, scatter: float = 0.05, seed: int = 1) -> list[tuple[float, float]]:
    """Input sizes, and peaks that are three times as large but for some scatter."""
    random = Random(seed)
    sizes = [random.uniform(0.1, 10.0) * GB for _ in range(tasks)]
    return [(size, 3 * size * random.lognormvariate(0.0, scatter)) for size in sizes]


def taught(ladder: OptimalLadder, seen: list[tuple[float, float]]) -> OptimalLadder:
    for number, (size, peak) in enumerate(seen):
        ladder.observe(task(number, size), peak, 60.0)
    return ladder


def conditioned(feature: str = "input_size") -> ConditionedLadder:
    return ConditionedLadder(Kind.MEMORY, Pool(Kind.MEMORY), feature=feature)


def waste(ladder: OptimalLadder, seen: list[tuple[float, float]]) -> float:
    """What is allocated and not used while the ladder learns."""
    wasted = 0.0
    for number, (size, peak) in enumerate(seen):
        info = task(number, size)
        amount = ladder.predict(info, NODE)
        while amount < peak:
            wasted += amount
            following = ladder.grow(info, [amount], NODE)
            amount = NODE if following is None or following <= amount else following
        wasted += amount - peak
        ladder.observe(info, peak, 60.0)
    return wasted


def test_where_peaks_follow_the_input_it_wastes_far_less_than_the_plain_ladder() -> None:
    seen = linear(250)
    plain = waste(OptimalLadder(Kind.MEMORY, Pool(Kind.MEMORY)), seen)
    assert waste(conditioned(), seen) < 0.4 * plain


def test_a_prediction_follows_the_input() -> None:
    ladder = taught(conditioned(), linear(200))
    for size in (0.5, 1.0, 2.0, 5.0, 9.0):
        amount, why = ladder.first(task(999, size * GB), NODE)
        assert 2.9 * size * GB < amount < 3.7 * size * GB
        assert "like input_size" in str(why)
        assert "200 tasks" in str(why)


def test_after_a_failure_it_climbs_around_the_prediction() -> None:
    ladder = taught(conditioned(), linear(200, scatter=0.3))
    info = task(999, GB)
    climb = [ladder.predict(info, 1e15)]
    while (following := ladder.grow(info, climb[-1:], 1e15)) is not None:
        assert following > climb[-1]
        climb.append(following)
    assert 3 <= len(climb) <= 12
    assert climb[1] < 2.5 * climb[0]


def test_what_is_free_up_to_a_floor_is_taken_there() -> None:
    ladder = taught(conditioned(), linear(200))
    for size, floor in ((0.5, 10.0), (1.0, 20.0), (9.0, 40.0)):
        amount, _ = ladder.first(task(999, size * GB), NODE, floor * GB)
        assert amount == pytest.approx(floor * GB, rel=1e-6)
    assert ladder.first(task(999, 9 * GB), NODE, GB) == ladder.first(task(999, 9 * GB), NODE)


def test_rounding_does_not_make_a_rung_follow_itself() -> None:
    """Amounts are scaled back and forth; a rung that came back smaller would be tried again."""
    ladder = taught(conditioned(), linear(60, scatter=0.3))
    for number in range(1000):
        info = task(number, (0.1 + number / 100) * GB)
        amount = ladder.predict(info, 1e15)
        while (following := ladder.grow(info, [amount], 1e15)) is not None:
            assert following > amount
            amount = following


def test_a_task_without_the_feature_gets_the_plain_ladder() -> None:
    seen = linear(100)
    plain = taught(OptimalLadder(Kind.MEMORY, Pool(Kind.MEMORY)), seen)
    ladder = taught(conditioned(), seen)
    for size in (None, math.nan, math.inf):
        assert ladder.predict(task(999, size), NODE) == plain.predict(task(999, size), NODE)


def test_before_anything_is_known_it_starts_as_the_plain_ladder_does() -> None:
    plain = OptimalLadder(Kind.MEMORY, Pool(Kind.MEMORY))
    info = task(1, GB)
    assert conditioned().predict(info, NODE) == plain.predict(info, NODE)


def test_another_feature_can_be_named() -> None:
    ladder = conditioned(feature="events")
    for number, (size, peak) in enumerate(linear(100)):
        ladder.observe(task(number, size, "events"), peak, 60.0)
    assert 2.9 * GB < ladder.predict(task(999, GB, "events"), NODE) < 3.7 * GB
    amount, why = ladder.first(task(999, GB, "input_size"), NODE)
    assert "like" not in str(why)
    assert amount > 6 * GB


def test_the_log_scale_keeps_order_and_sign() -> None:
    values = [-1e300, -5.0, -1e-9, 0.0, 1e-9, 1.0, 1e9, 1e300]
    scaled = [on_log_scale(value) for value in values]
    assert scaled == sorted(scaled)
    assert on_log_scale(0.0) == 0.0
    assert on_log_scale(2e9) - on_log_scale(1e9) == pytest.approx(math.log(2))


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_not_a_finite_number_is_not_known(value: float | None) -> None:
    assert math.isnan(on_log_scale(value))
