from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.model import Kind, TaskInfo
from parsl_sizer.strategies import PerKind, Setting
from parsl_sizer.strategies.catalog import family
from parsl_sizer.strategies.kmeans_bucketing import KMeansBuckets
from parsl_sizer.strategies.quantized_bucketing import ColdStart

TASK = TaskInfo(1, "align")


def taught(peaks: Sequence[float], n: int, *, cold: int = 0) -> KMeansBuckets:
    buckets = KMeansBuckets(n, ColdStart(cold))
    for peak in peaks:
        buckets.observe(TASK, peak, 10.0)
    return buckets


def lloyd(peaks: Sequence[float], n: int, cold: int) -> list[float]:
    """The same in plain lists: one step for each task from the last of the cold start on."""
    means: list[float] = []
    clusters: list[list[float]] = []
    for seen in range(max(cold, 1), len(peaks) + 1):
        ordered = sorted(peaks[:seen])
        if not means:
            edges = [0] + [j * (seen - 1) // n + 1 for j in range(1, n + 1)]
            even = [ordered[edges[j] : edges[j + 1]] for j in range(n)]
            means = [sum(part) / len(part) if part else ordered[-1] for part in even]
        clusters = [[] for _ in means]
        for peak in ordered:
            above = sum(1 for j in range(n - 1) if peak > (means[j] + means[j + 1]) / 2)
            clusters[above].append(peak)
        filled = [sum(cluster) / len(cluster) for cluster in clusters if cluster]
        means = filled + [ordered[-1]] * (n - len(filled))
    return [cluster[-1] for cluster in clusters if cluster]


def test_buckets_start_even_when_the_cold_start_ends() -> None:
    assert taught([1, 2, 3, 4], 2, cold=5).ends == (2, 4)


def test_by_hand_each_peak_goes_to_the_nearest_mean() -> None:
    # Even buckets of the first four: (1, 2), (3, 10); their means are 1.5 and 6.5, and 4
    # is the boundary between them, so that 3 goes to the lower one.
    assert taught([1, 2, 3, 10], 2, cold=4).ends == (3, 10)
    # The means are now 2 and 10, the boundary 6: 5 goes to the lower one.
    assert taught([1, 2, 3, 10, 5], 2, cold=4).ends == (5, 10)


def test_a_peak_half_way_goes_to_the_lower_bucket() -> None:
    assert taught([2, 2, 10, 10, 6], 2, cold=4).ends == (6, 10)


def test_an_empty_bucket_has_no_end_and_fills_again_at_the_top() -> None:
    buckets = taught([5, 5, 5, 5], 2, cold=4)
    assert buckets.ends == (5,)
    buckets.observe(TASK, 9.0, 10.0)
    assert buckets.ends == (5, 9)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=40), st.integers(2, 4), st.integers(0, 12))
def test_it_is_one_step_of_lloyds_algorithm_per_task(peaks: list[int], n: int, cold: int) -> None:
    if len(peaks) >= cold:
        assert list(taught(peaks, n, cold=cold).ends) == lloyd(peaks, n, cold)


def test_one_bucket_is_the_largest_peak() -> None:
    assert taught([3, 9, 5], 1).predict(TASK, 64.0) == 9


def test_the_levels_are_those_of_quantized_bucketing() -> None:
    make = family("kmeans-bucketing:level=2,n=3", Setting((Kind.MEMORY,)))
    strategy = make("align")
    assert strategy is make("call")
    assert isinstance(strategy, PerKind)
    [predictor] = strategy.predictors.values()
    assert isinstance(predictor, KMeansBuckets)
    assert predictor.n == 3


def test_beyond_the_exact_points_the_ends_still_cover_the_clusters() -> None:
    peaks = [1000 + 0.01 * i for i in range(6000)] + [9000 + 0.01 * i for i in range(100)]
    low, high = taught(peaks, 2).ends
    assert low == pytest.approx(1060, rel=0.01)
    assert high == pytest.approx(9001, rel=0.01)
