from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.model import TaskInfo
from parsl_sizer.strategies.max_throughput import MaxThroughput, throughputs

tasks = st.lists(
    st.tuples(st.integers(1, 30), st.integers(1, 9)), min_size=1, max_size=30
)  # peak, time


def throughput(first: int, seen: list[tuple[int, int]], *, whole_jobs: bool) -> Fraction:
    """Equation 3, before terms are arranged."""
    at_once = Fraction(max(peak for peak, _ in seen), first)
    if whole_jobs:
        at_once = Fraction(floor(at_once))
    finished = sum(at_once if peak <= first else Fraction(1) for peak, _ in seen)
    return finished / sum(time if peak <= first else 2 * time for peak, time in seen)


@pytest.mark.parametrize("whole_jobs", [False, True])
@given(seen=tasks)
def test_throughputs_are_those_of_equation_3(whole_jobs: bool, seen: list[tuple[int, int]]) -> None:
    peaks = sorted({peak for peak, _ in seen})
    counts = [sum(1 for peak, _ in seen if peak == value) for value in peaks]
    times = [sum(time for peak, time in seen if peak == value) for value in peaks]
    found = throughputs(
        np.array(peaks, float),
        np.array(counts, float),
        np.array(times, float),
        whole_jobs=whole_jobs,
    )
    expected = [float(throughput(first, seen, whole_jobs=whole_jobs)) for first in peaks]
    assert found == pytest.approx(expected)


def test_it_takes_the_largest_throughput() -> None:
    strategy, task = MaxThroughput(), TaskInfo(1, "align")
    for peak in [1.0] * 7 + [2.0] * 7 + [8.0]:
        strategy.observe(task, peak, 10.0)
    # 1: (8 x 7 + 8) / (15 + 8); 2: (4 x 14 + 1) / (15 + 1); 8: 15 / 15.
    assert strategy.predict(task, 64.0) == 2.0


def test_whole_jobs_do_not_pay_for_fractions() -> None:
    fractions, whole = MaxThroughput(), MaxThroughput(whole_jobs=True)
    task = TaskInfo(1, "align")
    for peak in [6.0] * 19 + [10.0]:
        fractions.observe(task, peak, 10.0)
        whole.observe(task, peak, 10.0)
    assert fractions.predict(task, 64.0) == 6.0
    assert whole.predict(task, 64.0) == 10.0


def test_tasks_that_took_no_time_call_for_the_largest_peak() -> None:
    strategy, task = MaxThroughput(), TaskInfo(1, "align")
    for peak in range(10):
        strategy.observe(task, float(peak), 0.0)
    assert strategy.predict(task, 64.0) == 9.0


def test_a_peak_of_nothing_does_not_divide_by_zero() -> None:
    strategy, task = MaxThroughput(), TaskInfo(1, "align")
    for peak in [0.0] * 10 + [1.0] * 10:
        strategy.observe(task, peak, 1.0)
    assert strategy.predict(task, 64.0) == 1.0
