from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.strategies.greedy_bucketing import greedy_ends

Points = list[tuple[float, float]]  # peak, significance

points = st.dictionaries(
    st.integers(1, 40).map(float), st.integers(1, 20).map(float), min_size=1, max_size=12
).map(lambda found: sorted(found.items()))


def share_and_mean(part: Points, whole: Points) -> tuple[float, float]:
    weight = sum(significance for _, significance in part)
    mean = sum(peak * significance for peak, significance in part) / weight if part else 0.0
    return weight / sum(significance for _, significance in whole), mean


def cost(below: Points, above: Points, *, deterministic: bool) -> float:
    """The expected waste of a break, case by case."""
    whole = below + above
    b, m = below[-1][0], whole[-1][0]
    (p1, e1), (p2, e2) = (share_and_mean(part, whole) for part in (below, above))
    if deterministic:
        return p1 * (b - e1) + p2 * (b + m - e2)
    return p1 * p1 * (b - e1) + p1 * p2 * (m - e1) + p2 * p1 * (b + m - e2) + p2 * p2 * (m - e2)


def is_greedy(found: Points, ends: list[int], *, deterministic: bool) -> bool:
    """Whether the buckets are what repeated cheapest breaks give, up to rounding."""
    costs = [
        cost(found[: i + 1], found[i + 1 :], deterministic=deterministic) for i in range(len(found))
    ]
    last = len(found) - 1
    if ends == [last]:
        return costs[last] <= min(costs) + 1e-9
    return any(
        costs[split] <= min(costs) + 1e-9
        and is_greedy(
            found[: split + 1], [end for end in ends if end <= split], deterministic=deterministic
        )
        and is_greedy(
            found[split + 1 :],
            [end - split - 1 for end in ends if end > split],
            deterministic=deterministic,
        )
        for split in ends[:-1]
    )


@pytest.mark.parametrize("deterministic", [False, True])
@given(found=points)
def test_every_break_is_the_cheapest_of_its_range(deterministic: bool, found: Points) -> None:
    peaks, significance = (np.array(column) for column in zip(*found, strict=True))
    ends = greedy_ends(peaks, significance, deterministic=deterministic)
    assert ends == sorted(set(ends))
    assert is_greedy(found, ends, deterministic=deterministic)


def test_two_modes_become_two_buckets() -> None:
    peaks = np.array([1.0, 1.1, 8.0, 8.1])
    assert greedy_ends(peaks, np.ones(4)) == [1, 3]


def test_of_equal_costs_the_higher_point_is_taken() -> None:
    # Breaking at 1 costs (0 + 1) / 2, not breaking (1 + 0) / 2.
    assert greedy_ends(np.array([1.0, 2.0]), np.ones(2), deterministic=True) == [1]


def test_a_single_point_is_a_single_bucket() -> None:
    assert greedy_ends(np.array([5.0]), np.array([1.0])) == [0]
