from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.model import Kind, TaskInfo, UnknownStrategy
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family
from parsl_sizer.strategies.regression import Line, Regression, Residuals

Points = list[tuple[float, float]]


def task(size: float | None, requested: float | None = None) -> TaskInfo:
    features = {} if size is None else {"input_size": size}
    request = {} if requested is None else {Kind.MEMORY: requested}
    return TaskInfo(1, "align", features=features, requested=request)


def taught(points: Points, offset: str = "none") -> Regression:
    regression = Regression(Kind.MEMORY, offset)
    for size, peak in points:
        regression.observe(task(size), peak, 10.0)
    return regression


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 1000)), min_size=2, max_size=30).filter(
        lambda points: len({x for x, _ in points}) > 1
    )
)
def test_the_line_is_that_of_least_squares(points: list[tuple[int, int]]) -> None:
    line = Line()
    for x, y in points:
        line.add(x * 1e9, y * 1e6)
    xs, ys = np.array(points, dtype=float).T
    slope, intercept = np.polyfit(xs, ys, 1)
    assert line.slope == pytest.approx(slope * 1e-3, rel=1e-6, abs=1e-9)
    assert line.intercept == pytest.approx(intercept * 1e6, rel=1e-6, abs=1.0)


def test_it_is_ready_after_two_tasks() -> None:
    assert taught([(1, 3)]).predict(task(2), 64.0) is None
    assert taught([(1, 3), (2, 5)]).predict(task(4), 64.0) == pytest.approx(9)


def test_equal_sizes_give_the_mean() -> None:
    assert taught([(2, 3), (2, 5)]).predict(task(7), 64.0) == 4


# The line through these is y = 1 + 2 x; the last three lie 2 above, 2 below and 0 from it.
ABOUT_A_LINE: Points = [(0, 1), (2, 7), (2, 3), (4, 9)]


@pytest.mark.parametrize(
    ("offset", "added"),
    [
        ("none", 0.0),
        ("mean+-", math.sqrt((4 + 4) / 3)),
        ("mean-", 2.0),
        ("max-", 2.0),
    ],
)
def test_by_hand_the_offset_is_from_the_residuals_of_the_line(offset: str, added: float) -> None:
    assert taught(ABOUT_A_LINE, offset).predict(task(10), 64.0) == pytest.approx(21 + added)


def test_underpredictions_alone_make_mean_minus() -> None:
    # y = 1 + 2 x again; 3 above at one point, 1 above at two, 5 below at one, none else.
    points: Points = [(2, 8), (1, 4), (3, 8), (2, 0), (0, 1), (4, 9)]
    xs, ys = np.array(points).T
    assert np.polyfit(xs, ys, 1) == pytest.approx([2, 1])
    predicted = taught(points, "mean-").predict(task(10), 64.0)
    assert predicted == pytest.approx(21 + math.sqrt((9 + 1 + 1) / 2))


def test_a_prediction_that_is_not_above_0_becomes_the_largest_peak_seen() -> None:
    regression = taught([(1, 9), (2, 6)])
    assert regression.predict(task(4), 64.0) == 9


@pytest.mark.parametrize("size", [None, math.nan, math.inf])
def test_without_an_input_size_there_is_no_prediction(size: float | None) -> None:
    regression = taught([(1, 3), (2, 5)])
    assert regression.predict(task(size), 64.0) is None
    regression.observe(task(size), 60.0, 10.0)
    assert regression.predict(task(4), 64.0) == pytest.approx(9)


def test_a_failed_prediction_is_doubled() -> None:
    regression = taught([(1, 3), (2, 5)])
    assert regression.grow(task(4, requested=20), [9.0], 64.0) == 18
    assert regression.grow(task(4, requested=20), [9.0, 18.0], 64.0) == 36


def test_after_a_failed_request_comes_the_prediction_if_it_is_larger_by_now() -> None:
    regression = taught([(1, 3), (2, 5)])
    assert regression.grow(task(4, requested=2), [2.0], 64.0) == pytest.approx(9)
    assert regression.grow(task(4, requested=2), [2.0, 9.0], 64.0) == 18
    assert regression.grow(task(4, requested=20), [20.0], 64.0) == 40
    assert taught([(1, 3)]).grow(task(4, requested=2), [2.0], 64.0) == 4


@pytest.mark.parametrize("offset", ["mean+-", "mean-", "max-"])
def test_with_more_observations_than_are_kept_the_offset_is_nearly_the_same(offset: str) -> None:
    line, few, all_of_them = Line(), Residuals(offset, exact=256), Residuals(offset, exact=10_000)
    rng = np.random.default_rng(7)
    xs, noise = rng.uniform(0, 10, 5000), rng.normal(0, 1, 5000)
    for x, y in zip(xs, 3 * xs + noise, strict=True):
        line.add(x, y)
        few.add(x, y, line)
        all_of_them.add(x, y, line)
    assert len(few) <= 256 < len(all_of_them)
    assert few.offset(line) == pytest.approx(all_of_them.offset(line), rel=0.1)


def test_an_unknown_offset_is_refused() -> None:
    with pytest.raises(UnknownStrategy, match="offset must be one of none, mean"):
        family("regression:offset=median", Setting((Kind.MEMORY,)))
