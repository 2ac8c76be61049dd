from __future__ import annotations

import math
from itertools import pairwise

import pytest

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.strategies import Family, Setting
from parsl_sizer.strategies.catalog import family
from parsl_sizer.strategies.cold_start import PER_CATEGORY, POOLED, Pool

GB = 1e9
NODE = Resources(cores=16, memory=64 * GB, disk=64 * GB)
NO_AMOUNT = (0.0, math.nan, math.inf, -math.inf, -GB)


def rungs(pool: Pool, requested: float | None) -> list[float]:
    ladder, scale = pool.ladder(requested)
    return [rung * scale for rung in ladder.rungs]


def first_of(made: Family, category: str, requested: float | None = None) -> float:
    asked = {} if requested is None else {Kind.MEMORY: requested}
    task = TaskInfo("new", category, requested=asked)
    return made(category).propose(task, [], NODE).amounts[Kind.MEMORY]


def finished(number: int, category: str, requested: float | None, peak: float) -> Outcome:
    asked = {} if requested is None else {Kind.MEMORY: requested}
    task = TaskInfo(number, category, requested=asked)
    usage = Usage({Kind.MEMORY: peak}, wall_s=10.0)
    return Outcome(Attempt(task, 1, {Kind.MEMORY: NODE.memory}), Ending.DONE, usage=usage)


def test_a_request_is_taken_or_halved_some_times() -> None:
    for requested in (GB, 7 * GB, 64 * GB):
        first = rungs(Pool(Kind.MEMORY), requested)[0]
        assert first in [requested / 2**halvings for halvings in range(6)]


def test_the_reason_names_the_request_and_other_categories() -> None:
    pool = Pool(Kind.MEMORY)
    assert pool.basis(None) == pool.basis(math.nan) == "a first guess"
    assert pool.basis(2 * GB) == "a first guess from the 2 GB requested"
    pool.add(GB, None, 10.0)
    assert pool.basis(None) == "a first guess from other categories"
    assert pool.basis(GB) == "a first guess from the 1 GB requested and other categories"


def test_a_request_that_was_too_small_is_exceeded_by_factors_of_2_to_4() -> None:
    found = rungs(Pool(Kind.MEMORY), GB)
    assert found[-1] == 16 * GB
    assert all(1.5 <= high / low <= 4 for low, high in pairwise(found))


@pytest.mark.parametrize("kind", [Kind.MEMORY, Kind.DISK, Kind.CORES])
def test_without_a_request_the_steps_are_factors_of_8_at_most(kind: Kind) -> None:
    found = rungs(Pool(kind), None)
    unit = 1.0 if kind is Kind.CORES else GB
    assert 0.1 * unit <= found[0] <= 2 * unit
    assert all(2 <= high / low <= 8 for low, high in pairwise(found))
    assert found[-1] >= 2048 * unit


def test_ratios_of_other_categories_shift_the_first_rung() -> None:
    modest, lavish = Pool(Kind.MEMORY), Pool(Kind.MEMORY)
    for number in range(30):
        modest.add(1.5 * GB * (1 + number % 2 / 100), GB, 10.0)
        lavish.add(GB, 10 * GB * (1 + number % 2 / 100), 10.0)
    assert rungs(modest, 8 * GB)[0] == pytest.approx(12 * GB, rel=0.02)
    assert rungs(lavish, 8 * GB)[0] == pytest.approx(0.8 * GB, rel=0.02)


def test_peaks_of_other_categories_shift_the_first_rung() -> None:
    pool = Pool(Kind.MEMORY)
    before = rungs(pool, None)[0]
    for _ in range(60):
        pool.add(5 * GB, None, 10.0)
    assert rungs(pool, None)[0] == 5 * GB > before
    assert rungs(pool, GB) == rungs(Pool(Kind.MEMORY), GB)  # they asked for nothing


def test_long_tasks_of_other_categories_weigh_more() -> None:
    for long, short in ((20 * GB, 40 * GB), (40 * GB, 20 * GB)):
        pool = Pool(Kind.MEMORY)
        for _ in range(100):
            pool.add(long, None, 1000.0)
            pool.add(short, None, 1.0)
        assert rungs(pool, None)[0] == long


def test_tasks_without_time_do_no_harm_to_the_pool() -> None:
    pool = Pool(Kind.MEMORY)
    for _ in range(60):
        pool.add(5 * GB, 5 * GB, 0.0)
    assert rungs(pool, None)[0] == 5 * GB
    assert rungs(pool, GB)[0] == GB


def test_the_pool_forgets_what_is_old() -> None:
    pool, other = Pool(Kind.MEMORY), Pool(Kind.MEMORY)
    for _ in range(300):
        pool.add(50 * GB, None, 10.0)
    for _ in range(2 * POOLED):
        pool.add(5 * GB, None, 10.0)
        other.add(5 * GB, None, 10.0)
    assert rungs(pool, None) == rungs(other, None)


def test_a_category_of_thousands_does_not_outvote_others() -> None:
    large = family("optimal-ladder", Setting((Kind.MEMORY,), "waste"))
    small = family("optimal-ladder", Setting((Kind.MEMORY,), "waste"))
    for made, tasks in ((large, 1000), (small, PER_CATEGORY)):
        strategy = made("seen")
        for number in range(tasks):
            strategy.learn(finished(number, "seen", None, 5 * GB))
    assert first_of(large, "new") == first_of(small, "new")


def test_a_new_category_starts_from_what_others_showed() -> None:
    made = family("auto", Setting((Kind.MEMORY,), "waste"))
    before = first_of(made, "new", 10 * GB)
    for category in range(20):
        strategy = made(f"seen {category}")
        for number in range(5):
            strategy.learn(finished(number, f"seen {category}", 20 * GB, GB))
    assert first_of(made, "new", 10 * GB) == 0.5 * GB < before


@pytest.mark.parametrize("requested", NO_AMOUNT)
def test_a_request_that_is_no_amount_is_as_none(requested: float) -> None:
    pool = Pool(Kind.MEMORY)
    assert rungs(pool, requested) == rungs(pool, None)


@pytest.mark.parametrize("requested", NO_AMOUNT)
def test_requests_that_are_no_amount_do_not_mislead_other_categories(requested: float) -> None:
    pool = Pool(Kind.MEMORY)
    for _ in range(30):
        pool.add(GB, requested, 10.0)
    assert rungs(pool, 8 * GB) == rungs(Pool(Kind.MEMORY), 8 * GB)


@pytest.mark.parametrize("requested", NO_AMOUNT)
@pytest.mark.parametrize("name", ["optimal-ladder", "conditioned-ladder", "auto"])
def test_a_strategy_takes_a_request_that_is_no_amount(name: str, requested: float) -> None:
    made = family(name, Setting((Kind.MEMORY,), "waste"))
    assert first_of(made, "new", requested) == first_of(made, "new")
    strategy = made("seen")
    for number in range(20):
        strategy.learn(finished(number, "seen", requested, 2 * GB))
    task = TaskInfo("next", "seen", requested={Kind.MEMORY: requested})
    assert strategy.propose(task, [], NODE).amounts[Kind.MEMORY] == pytest.approx(2 * GB, rel=0.02)
