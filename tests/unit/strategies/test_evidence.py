from __future__ import annotations

import pytest

from parsl_sizer.strategies.evidence import (
    MOST_BINS,
    MOST_FAILING,
    WINDOW,
    Evidence,
    tail,
    with_bounds,
)


def test_peaks_that_differ_by_a_percent_stay_apart_while_they_are_few() -> None:
    evidence = Evidence()
    for number in range(100):
        evidence.add(number, 1e9 * 1.01**number, 1.0, ())
    assert len(evidence.bins) == 100


def test_bins_are_paired_when_they_become_too_many() -> None:
    evidence = Evidence()
    for number in range(MOST_BINS + 1):
        evidence.add(number, 1e9 * 1.01**number, 1.0, ())
    assert MOST_BINS / 4 < len(evidence.bins) <= MOST_BINS
    widths = [count for _, _, count in evidence.bins.values()]
    assert max(widths) <= 8


def test_after_pairing_a_peak_falls_where_its_like_fell_before() -> None:
    # Shares of a core: their logarithms are negative.
    peaks = [0.9 * 0.995**number for number in range(2 * MOST_BINS)]
    evidence = Evidence()
    for peak in peaks:
        evidence.add(0, peak, 1.0, ())
    once = {key: (largest, count) for key, (largest, _, count) in evidence.bins.items()}
    for peak in peaks:
        evidence.add(0, peak, 1.0, ())
    twice = {key: (largest, count / 2) for key, (largest, _, count) in evidence.bins.items()}
    assert twice == once


def test_like_tasks_share_a_bin() -> None:
    evidence = Evidence()
    for number in range(1000):
        evidence.add(number, 2e9 + number, 3.0, ())
    assert list(evidence.bins.values()) == [[2e9 + 999, 3000.0, 1000.0]]


def test_a_task_that_used_nothing_is_taken_for_the_least() -> None:
    evidence = Evidence()
    evidence.add(1, 0.0, 1.0, ())
    assert evidence.maximum == 1e-3
    assert min(peak for peak, _, _ in evidence.points()) == 1e-3


def test_the_mean_time_is_1_where_no_time_was_measured() -> None:
    evidence = Evidence()
    evidence.add(1, 1e9, 0.0, ())
    assert evidence.mean_s == 1.0
    evidence.add(2, 1e9, 30.0, ())
    assert evidence.mean_s == 15.0


def test_theta_is_1_until_a_failure_is_seen_to_die_early() -> None:
    evidence = Evidence()
    assert evidence.theta == 1.0
    evidence.add_failure(1, 1e9, 5.0)
    assert evidence.theta == 1.0  # its whole time is not known yet
    evidence.add(1, 2e9, 10.0, ())
    assert evidence.theta == pytest.approx(3.5 / 4.0)


def test_of_a_task_that_failed_twice_the_last_failure_counts() -> None:
    evidence = Evidence()
    evidence.add_failure(1, 1e9, 10.0)
    evidence.add_failure(1, 2e9, 2.0)
    assert evidence.bounds() == [2e9]
    evidence.add(1, 3e9, 10.0, ())
    assert evidence.theta == pytest.approx(3.2 / 4.0)


def test_a_finished_task_without_time_says_nothing_of_theta() -> None:
    evidence = Evidence()
    evidence.add_failure(1, 1e9, 0.0)
    evidence.add(1, 2e9, 0.0, ())
    assert evidence.theta == 1.0
    assert evidence.failing == {}


def test_the_oldest_failing_tasks_are_forgotten() -> None:
    evidence = Evidence()
    for number in range(MOST_FAILING + 10):
        evidence.add_failure(number, float(number), 1.0)
    assert len(evidence.failing) == MOST_FAILING
    assert evidence.bounds() == [float(number) for number in range(10, MOST_FAILING + 10)]


def test_a_task_that_fails_again_becomes_the_youngest_and_pushes_none_out() -> None:
    evidence = Evidence()
    for number in range(MOST_FAILING):
        evidence.add_failure(number, 1.0, 1.0)
    evidence.add_failure(1, 2.0, 1.0)
    assert len(evidence.failing) == MOST_FAILING
    assert list(evidence.failing)[:2] == [0, 2]
    assert list(evidence.failing)[-1] == 1
    assert evidence.bounds()[-1] == 2.0


def test_a_failing_task_that_does_not_come_back_is_given_up() -> None:
    evidence = Evidence()
    evidence.add_failure("lost", 2e9, 1.0)
    for number in range(WINDOW):
        evidence.add(number, 1e9, 1.0, ())
    assert evidence.bounds() == [2e9]
    evidence.add_failure("young", 3e9, 1.0)
    evidence.add("one more", 1e9, 1.0, ())
    assert evidence.bounds() == [3e9]


def test_a_tail_reaches_as_far_as_the_largest_peaks_lie_apart() -> None:
    # Ten of a hundred exceed 1, by 5.5 on average; half of what is near is below 0.84 of that.
    points = tail([float(peak) for peak in range(1, 12)], 100, 1.0, 1.0)
    assert points[0][0] == pytest.approx(11 + 0.066 * 5.5)
    dense = tail([10 + peak / 100 for peak in range(90, 101)], 100, 1.0, 1.0)
    assert dense[0][0] < points[0][0]


def test_after_few_tasks_the_next_may_be_much_larger() -> None:
    def nearest(tasks: int) -> float:
        return tail([1.0] * tasks, tasks, 1.0, 1.0)[0][0]

    assert nearest(1) > nearest(2) > nearest(5) > nearest(6) == nearest(60)


def test_tasks_that_ran_out_weigh_on_what_lies_above_their_bounds() -> None:
    evidence = Evidence()
    for number in range(10):
        evidence.add(number, 1e9 if number < 8 else 4e9, 10.0, ())
    before = [(peak, count) for peak, _, count in evidence.points()]
    for number in range(10, 14):
        evidence.add_failure(number, 2e9, 1.0)
    after = [(peak, count) for peak, _, count in evidence.points()]
    assert after[0] == before[0] == (1e9, 8.0)
    for (peak, most), (_, least) in zip(after[1:], before[1:], strict=True):
        assert most > least, peak
    assert sum(n for _, n in after) == pytest.approx(sum(n for _, n in before) + 4)


def test_a_bound_above_all_points_changes_nothing() -> None:
    points = [(1.0, 1.0, 1.0), (2.0, 1.0, 1.0)]
    assert with_bounds(points, [2.0, 3.0], 1.0) == points


def test_a_bound_is_spread_by_counts_and_weighs_the_time_given() -> None:
    points = [(1.0, 5.0, 5.0), (2.0, 1.0, 1.0), (3.0, 1.0, 3.0)]
    assert with_bounds(points, [1.0], 8.0) == [(1.0, 5.0, 5.0), (2.0, 3.0, 1.25), (3.0, 7.0, 3.75)]
