from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.model import Kind, TaskInfo, UnknownStrategy
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family
from parsl_sizer.strategies.percentile import Percentile

TASK = TaskInfo(1, "align")
GUESSED = TaskInfo(2, "align", requested={Kind.MEMORY: 2.0})


def taught(*peaks: float, p: float = 50) -> Percentile:
    strategy = Percentile(Kind.MEMORY, p=p)
    for peak in peaks:
        strategy.observe(TASK, peak, 10.0)
    return strategy


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(0, 100))
def test_it_is_the_percentile_with_linear_interpolation(peaks: list[int], p: int) -> None:
    found = taught(*map(float, peaks), p=p).predict(TASK, 64.0)
    assert found == pytest.approx(np.percentile(peaks, p))


def test_it_is_ready_after_one_task() -> None:
    assert taught().predict(TASK, 64.0) is None
    assert taught(3.0).predict(TASK, 64.0) == 3.0


def test_a_failed_prediction_is_doubled() -> None:
    strategy = taught(3.0)
    assert strategy.grow(TASK, [3.0], 64.0) == 6.0
    assert strategy.grow(TASK, [3.0, 6.0], 64.0) == 12.0


def test_after_a_failed_estimate_comes_the_prediction_that_has_become_possible() -> None:
    strategy = taught(3.0)
    assert strategy.grow(GUESSED, [2.0], 64.0) == 3.0
    assert strategy.grow(GUESSED, [2.0, 3.0], 64.0) == 6.0


def test_a_failed_estimate_is_doubled_if_no_larger_prediction_is_possible() -> None:
    assert taught().grow(GUESSED, [2.0], 64.0) == 4.0
    assert taught(1.0).grow(GUESSED, [2.0], 64.0) == 4.0


def test_a_failed_prediction_is_doubled_even_if_predictions_have_grown() -> None:
    assert taught(5.0).grow(GUESSED, [4.0], 64.0) == 8.0


@pytest.mark.parametrize("p", ["101", "-1", "median"])
def test_what_is_no_percentile_is_refused(p: str) -> None:
    with pytest.raises(UnknownStrategy, match="p must be a number from 0 to 100"):
        family(f"percentile:p={p}", Setting((Kind.MEMORY,)))
