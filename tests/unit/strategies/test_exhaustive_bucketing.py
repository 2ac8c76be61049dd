from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.strategies.exhaustive_bucketing import (
    candidates,
    cost_by_draw,
    cost_in_order,
    exhaustive_ends,
)

buckets = st.lists(
    st.tuples(st.integers(1, 30), st.integers(1, 9), st.floats(0, 1)), min_size=1, max_size=7
)  # distance to the bucket below, weight, place of the mean


def columns(found: list[tuple[int, int, float]]) -> tuple[list[float], list[float], list[float]]:
    steps, weights, places = zip(*found, strict=True)
    values = np.cumsum(steps).astype(float)
    means = values - np.array(steps) * np.array(places)
    return values.tolist(), (np.array(weights) / sum(weights)).tolist(), means.tolist()


def wasted(values: list[float], p: list[float], means: list[float], i: int, j: int) -> float:
    """The paper's W[i][j], literally."""
    if j >= i:
        return values[j] - means[i]
    larger = range(j + 1, len(values))
    above = sum(p[k] for k in larger)
    return values[j] + sum(p[k] / above * wasted(values, p, means, i, k) for k in larger)


@given(buckets)
def test_the_cost_by_draw_is_the_papers_double_sum(found: list[tuple[int, int, float]]) -> None:
    values, p, means = columns(found)
    every = range(len(values))
    expected = sum(p[i] * p[j] * wasted(values, p, means, i, j) for i in every for j in every)
    assert cost_by_draw(values, p, means) == pytest.approx(expected)


@given(buckets)
def test_the_cost_in_order_pays_for_every_bucket_up_to_the_tasks_own(
    found: list[tuple[int, int, float]],
) -> None:
    values, p, means = columns(found)
    expected = sum(p[i] * (sum(values[: i + 1]) - means[i]) for i in range(len(values)))
    assert cost_in_order(values, p, means) == pytest.approx(expected)


def test_powers_of_two_stay_strictly_below_the_last_within_a_part() -> None:
    assert candidates(16.0, 1, 1.0) == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert candidates(16.0, 4, 1.0) == [1.0, 2.0, 4.0, 8.0, 12.0, 16.0]
    assert candidates(30e6, 2, 1e6) == [1e6, 2e6, 4e6, 15e6, 30e6]
    assert candidates(0.5, 2, 1.0) == [0.25, 0.5]
    assert candidates(0.0, 1, 1.0) == [0.0]


def set_cost(
    peaks: list[float], weights: list[float], parts: int, *, deterministic: bool
) -> tuple[float, list[int]]:
    limits = candidates(peaks[-1], parts, 1.0)
    ends = sorted(
        {max(i for i, peak in enumerate(peaks) if peak <= x) for x in limits if peaks[0] <= x}
    )
    starts = [0, *(end + 1 for end in ends[:-1])]
    whole = sum(weights)
    p, means = [], []
    for start, end in zip(starts, ends, strict=True):
        weight = sum(weights[start : end + 1])
        p.append(weight / whole)
        means.append(sum(peaks[i] * weights[i] for i in range(start, end + 1)) / weight)
    cost = cost_in_order if deterministic else cost_by_draw
    return cost([peaks[end] for end in ends], p, means), ends


@pytest.mark.parametrize("deterministic", [False, True])
@given(
    found=st.dictionaries(
        st.integers(1, 200).map(float), st.integers(1, 20).map(float), min_size=1, max_size=12
    )
)
def test_the_cheapest_of_ten_sets_is_taken(deterministic: bool, found: dict[float, float]) -> None:
    peaks = sorted(found)
    weights = [found[peak] for peak in peaks]
    ends = exhaustive_ends(
        np.array(peaks), np.array(weights), unit=1.0, deterministic=deterministic
    )
    sets = [set_cost(peaks, weights, k, deterministic=deterministic) for k in range(1, 11)]
    cheapest = min(cost for cost, _ in sets)
    assert ends in [ends for cost, ends in sets if cost <= cheapest + 1e-9]


def test_peaks_of_nothing_are_one_bucket() -> None:
    assert exhaustive_ends(np.array([0.0]), np.array([3.0]), unit=1e6) == [0]
