from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.strategies.sketches import SortedPoints

values = st.lists(st.floats(0, 1e30), max_size=200)


@given(values)
def test_few_values_are_kept_exactly(added: list[float]) -> None:
    points = SortedPoints(1, exact=200)
    for value in added:
        points.add(value, 1)
    counts = Counter(added)
    assert list(points.values) == sorted(counts)
    assert list(points.sums[0]) == [counts[value] for value in sorted(counts)]


@given(values)
def test_merging_keeps_the_order_the_sums_and_the_largest_value(added: list[float]) -> None:
    points = SortedPoints(2, exact=10)
    for value in added:
        points.add(value, 1, value)
    assert list(points.values) == sorted(set(points.values))
    assert sum(points.sums[0]) == len(added)
    assert sum(points.sums[1]) == pytest.approx(sum(added))
    assert points.largest == max(added, default=0.0)


@given(st.lists(st.floats(1, 1e12), min_size=1, max_size=200))
def test_a_merged_point_covers_its_values_and_is_at_most_half_a_percent_above(
    added: list[float],
) -> None:
    points = SortedPoints(2, exact=0)
    for value in added:
        points.add(value, 1, value)
    for value, count, total in zip(points.values, *points.sums, strict=True):
        assert value / 1.0050001 <= total / count <= value * (1 + 1e-12)


def test_memory_is_bounded_however_many_distinct_values_come() -> None:
    points = SortedPoints(1)
    for number in range(100_000):
        points.add(10 ** (-30 + 60 * (number * 0.6180339887 % 1)), 1)
    assert points.binned
    assert len(points) < 10_000
    assert sum(points.sums[0]) == 100_000


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_what_is_no_peak_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="a peak must be a finite number"):
        SortedPoints(1).add(value, 1)


def test_columns_are_copies() -> None:
    points = SortedPoints(1)
    points.add(1, 1)
    peaks, counts = points.columns()
    points.add(2, 1)
    assert list(peaks) == [1.0]
    assert list(counts) == [1.0]
