"""Use over time in bounded space."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.monitor.course import Cores, Series

USES = st.lists(st.tuples(st.floats(0.001, 5), st.integers(0, 10**12)), min_size=1, max_size=300)


@given(USES, st.integers(2, 40))
def test_a_series_is_bounded_and_keeps_its_highest(
    samples: list[tuple[float, int]], most: int
) -> None:
    series, now = Series(most), 0.0
    for pause, use in samples:
        now += pause
        series.add(now, use)
    assert 1 <= len(series.points) <= most
    assert max(use for _, use in series.points) == max(use for _, use in samples)
    assert [at for at, _ in series.points] == sorted(at for at, _ in series.points)


def test_a_series_of_no_points_has_none() -> None:
    series = Series(0)
    series.add(1.0, 1)
    assert series.points == []


def test_cores_of_a_short_call_have_no_window() -> None:
    cores = Cores()
    cores.add(0.0, 5.0)
    cores.add(10.0, 25.0)
    assert (cores.cpu_s, cores.peak) == (20.0, None)


def test_a_burst_counts_over_its_window() -> None:
    cores = Cores()
    for half in range(200):
        cores.add(half / 2, min(half / 2, 10.0) * 4)
    assert cores.peak == 2.0


def test_time_that_went_with_a_child_is_not_taken_back() -> None:
    cores = Cores()
    for at, cpu_s in ((0.0, 0.0), (10.0, 30.0), (20.0, 5.0)):
        cores.add(at, cpu_s)
    assert cores.cpu_s == 30.0
