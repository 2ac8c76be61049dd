"""What was seen is kept, whatever was seen: nothing is lost but detail."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsl_sizer.strategies.evidence import (
    LEAST,
    MOST_BINS,
    MOST_TOP,
    WINDOW,
    Evidence,
    tail,
    with_bounds,
)
from parsl_sizer.strategies.ladder import Point

PEAKS = st.one_of(st.just(0.0), st.floats(0.0, 1.0), st.floats(1e6, 1e11), st.floats(1e-300, 1e24))
TIMES = st.one_of(st.just(0.0), st.floats(1e-6, 1e6))
TASKS = st.lists(st.tuples(PEAKS, TIMES), min_size=1, max_size=60)
COUNTS = st.floats(1e-3, 1e3)
POINTS = st.lists(
    st.tuples(st.integers(1, 30).map(float), TIMES, COUNTS), min_size=1, max_size=20
).map(lambda drawn: sorted(drawn))


@st.composite
def many_tasks(draw: st.DrawFn) -> list[tuple[float, float]]:
    """More distinct peaks than there are bins, over a narrow range or a wide one."""
    tasks = MOST_BINS * draw(st.integers(2, 4))
    step = draw(st.floats(0.002, 0.05))
    least = draw(st.floats(-5.0, 20.0))  # of some, the logarithms change sign
    rising = [(math.exp(least + step * number), float(number % 7)) for number in range(tasks)]
    return draw(st.sampled_from([rising, rising[::-1], rising[::2] + rising[1::2]]))


def evidence_of(tasks: list[tuple[float, float]]) -> Evidence:
    evidence = Evidence()
    for number, (peak, wall_s) in enumerate(tasks):
        evidence.add(number, peak, wall_s, ())
    return evidence


@settings(max_examples=60)
@given(st.one_of(TASKS, many_tasks()))
def test_bins_are_few_and_hold_every_task_and_all_time(tasks: list[tuple[float, float]]) -> None:
    evidence = evidence_of(tasks)
    assert len(evidence.bins) <= MOST_BINS
    assert sum(count for _, _, count in evidence.bins.values()) == len(tasks) == evidence.tasks
    time_s = math.fsum(wall_s for _, wall_s in tasks)
    assert math.fsum(time for _, time, _ in evidence.bins.values()) == pytest.approx(time_s)
    assert evidence.time_s == pytest.approx(time_s)


@settings(max_examples=60)
@given(st.one_of(TASKS, many_tasks()))
def test_a_bin_stands_at_its_largest_peak(tasks: list[tuple[float, float]]) -> None:
    evidence = evidence_of(tasks)
    values = [peak for _, (peak, _, _) in sorted(evidence.bins.items())]
    assert values == sorted(set(values))
    seen = sorted(max(peak, LEAST) for peak, _ in tasks)
    assert set(values) <= set(seen)
    assert evidence.maximum == values[-1] == seen[-1]
    # No task is taken for a smaller one: up to each value there are no more tasks in the
    # bins than there were.
    held = 0.0
    for _, (peak, _, count) in sorted(evidence.bins.items()):
        held += count
        assert held == sum(1 for one in seen if one <= peak)


@settings(max_examples=30)
@given(many_tasks())
def test_the_window_and_the_largest_peaks_are_bounded(tasks: list[tuple[float, float]]) -> None:
    evidence = evidence_of(tasks)
    assert [(seen.peak, seen.wall_s) for seen in evidence.recent] == tasks[-WINDOW:]
    assert evidence.top == sorted(peak for peak, _ in tasks)[-MOST_TOP:]


@settings(max_examples=60)
@given(st.one_of(TASKS, many_tasks()))
def test_points_rise_and_weigh_as_the_tasks_and_one_more(tasks: list[tuple[float, float]]) -> None:
    evidence = evidence_of(tasks)
    points = evidence.points()
    peaks = [peak for peak, _, _ in points]
    assert peaks == sorted(peaks)
    assert all(time > 0 and count > 0 for _, time, count in points)
    count = len(tasks)
    share = count / (count + 1)
    assert sum(n for _, _, n in points) == pytest.approx(count + share, rel=1e-3)
    above = [point for point in points if point[0] > evidence.maximum]
    assert sum(n for _, _, n in above) == pytest.approx(share, rel=1e-3)
    # Those above are tasks like the others, and take as long.
    mean = sum(time for _, time, _ in points) / sum(n for _, _, n in points)
    beyond = sum(time for _, time, _ in above) / sum(n for _, _, n in above)
    assert beyond == pytest.approx(mean)


@given(
    st.lists(st.floats(LEAST, 1e24), min_size=1, max_size=MOST_TOP).map(sorted),
    st.integers(0, 10**6),
    COUNTS,
    COUNTS,
)
def test_a_tail_has_the_mass_asked_for_and_all_of_it_is_above(
    top: list[float], more: int, count: float, time: float
) -> None:
    points = tail(top, len(top) + more, count, time)
    assert points == sorted(points)
    assert min(peak for peak, _, _ in points) > top[-1]
    assert sum(n for _, _, n in points) == pytest.approx(count, rel=1e-3)
    assert sum(t for _, t, _ in points) == pytest.approx(time, rel=1e-3)


def redistributed(points: list[Point], bounds: list[float], time: float) -> list[Point]:
    """One task per bound, spread over the points right of it in proportion to their counts."""
    found = [list(point) for point in points]
    for bound in bounds:
        right = [index for index, (peak, _, _) in enumerate(points) if peak > bound]
        weight = sum(points[index][2] for index in right)
        for index in right:
            part = points[index][2] / weight
            found[index][1] += time * part
            found[index][2] += part
    return [(peak, own, count) for peak, own, count in found]


@given(POINTS, st.lists(st.floats(0.0, 40.0), max_size=20), TIMES)
def test_a_bound_is_one_task_spread_over_what_lies_above_it(
    points: list[Point], bounds: list[float], time: float
) -> None:
    found = with_bounds(points, bounds, time)
    expected = redistributed(points, bounds, time)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other)
    effective = sum(1 for bound in bounds if bound < points[-1][0])
    before = sum(count for _, _, count in points)
    assert sum(count for _, _, count in found) == pytest.approx(before + effective)


@given(POINTS, st.lists(st.integers(0, 40).map(float), max_size=20))
def test_the_order_of_bounds_does_not_matter(points: list[Point], bounds: list[float]) -> None:
    found = with_bounds(points, sorted(bounds), 1.0)
    for one, other in zip(found, with_bounds(points, sorted(bounds)[::-1], 1.0), strict=True):
        assert one == pytest.approx(other)


@given(st.lists(st.tuples(st.floats(0.0, 2.0), st.floats(1e-3, 1e3)), max_size=50))
def test_theta_is_the_mean_of_the_shares_and_three_slow_failures(
    failures: list[tuple[float, float]],
) -> None:
    evidence = Evidence()
    for number, (share, wall_s) in enumerate(failures):
        evidence.add_failure(number, 1.0, share * wall_s)
        evidence.add(number, 2.0, wall_s, ())
    shares = [min(share, 1.0) for share, _ in failures]
    assert evidence.theta == pytest.approx((3.0 + sum(shares)) / (3.0 + len(shares)))
    assert 0.0 <= evidence.theta <= 1.0
    assert evidence.failing == {}
