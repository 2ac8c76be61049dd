from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.model import Kind, TaskInfo, UnknownStrategy
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family
from parsl_sizer.strategies.min_waste import MinWaste, least_waste

tasks = st.lists(
    st.tuples(st.integers(1, 30), st.integers(0, 9)), min_size=1, max_size=30
)  # peak, time


def waste(peak: float, time: float, first: float, last: float) -> float:
    """The paper's definition, for two steps."""
    return (first - peak) * time if first >= peak else first * time + (last - peak) * time


def total(first: float, seen: list[tuple[int, int]]) -> float:
    last = max(peak for peak, _ in seen)
    return sum(waste(peak, time, first, last) for peak, time in seen)


def points(seen: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    peaks = sorted({peak for peak, _ in seen})
    times = [sum(time for peak, time in seen if peak == value) for value in peaks]
    return np.array(peaks, float), np.array(times, float)


@given(tasks)
def test_no_other_first_allocation_wastes_less(seen: list[tuple[int, int]]) -> None:
    first = least_waste(*points(seen))
    assert total(first, seen) == min(total(amount, seen) for amount in range(1, 31))


@given(tasks)
def test_of_equally_good_allocations_the_largest_is_taken(seen: list[tuple[int, int]]) -> None:
    first = least_waste(*points(seen))
    candidates = {peak for peak, _ in seen}
    best = min(total(amount, seen) for amount in candidates)
    assert first == max(amount for amount in candidates if total(amount, seen) == best)


@given(tasks)
def test_with_whole_jobs_nothing_strictly_between_half_the_maximum_and_all_of_it_is_taken(
    seen: list[tuple[int, int]],
) -> None:
    first = least_waste(*points(seen), whole_jobs=True)
    largest = max(peak for peak, _ in seen)
    allowed = {peak for peak, _ in seen if peak <= largest / 2 or peak == largest}
    assert first in allowed
    assert total(first, seen) == min(total(amount, seen) for amount in allowed)


def test_equation_1_weighs_by_time_and_equation_2_does_not() -> None:
    by_time, by_count = MinWaste(equation=1), MinWaste(equation=2)
    task = TaskInfo(1, "align")
    for peak, time in [(1.0, 1.0)] * 9 + [(4.0, 100.0)]:
        by_time.observe(task, peak, time)
        by_count.observe(task, peak, time)
    assert by_time.predict(task, 64.0) == 4.0
    assert by_count.predict(task, 64.0) == 1.0


def test_tasks_that_took_no_time_call_for_the_largest_peak() -> None:
    strategy, task = MinWaste(), TaskInfo(1, "align")
    for peak in range(10):
        strategy.observe(task, float(peak), 0.0)
    assert strategy.predict(task, 64.0) == 9.0


def test_a_proposal_says_what_it_rests_on() -> None:
    strategy, task = MinWaste(), TaskInfo(1, "align")
    for _ in range(12):
        strategy.observe(task, 1.0, 1.0)
    assert strategy.why(task, 1.0) == "least waste over 12 tasks"


@pytest.mark.parametrize("spec", ["min-waste:equation=3", "min-waste:equation=one"])
def test_there_is_no_third_equation(spec: str) -> None:
    with pytest.raises(UnknownStrategy, match="equation must be 1 or 2"):
        family(spec, Setting((Kind.MEMORY,)))
