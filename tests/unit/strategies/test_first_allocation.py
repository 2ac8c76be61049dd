from __future__ import annotations

from collections.abc import Iterable

import pytest

from parsl_sizer.model import Kind, TaskInfo, UnknownStrategy
from parsl_sizer.strategies.first_allocation import Convergence, bin_width
from parsl_sizer.strategies.min_waste import MinWaste

TASK = TaskInfo(1, "align")
NODE = 64.0


def taught(peaks: Iterable[float], **options: bool | float) -> MinWaste:
    strategy = MinWaste(**options)  # type: ignore[arg-type]
    for peak in peaks:
        strategy.observe(TASK, peak, 10.0)
    return strategy


def test_nothing_is_predicted_before_the_tenth_task() -> None:
    assert taught([1.0] * 9).predict(TASK, NODE) is None
    assert taught([1.0] * 10).predict(TASK, NODE) == 1.0


def test_a_failed_task_gets_the_largest_peak_and_then_the_largest_node() -> None:
    strategy = taught([1.0] * 9 + [4.0])
    assert strategy.grow(TASK, [1.0], NODE) == 4.0
    assert strategy.grow(TASK, [1.0, 4.0], NODE) is None


def test_before_it_is_ready_a_failed_request_leads_to_the_largest_node() -> None:
    assert taught([4.0] * 9).grow(TASK, [1.0], NODE) is None


def test_bins_are_as_large_as_their_upper_end_but_never_above_the_largest_peak() -> None:
    assert taught([101.0] * 18 + [949.0], bin_width=50.0).predict(TASK, 1e4) == 150.0
    assert taught([949.0] * 10, bin_width=50.0).predict(TASK, 1e4) == 949.0


def test_online_it_waits_until_the_variance_has_settled() -> None:
    growing = [float(2**number) for number in range(12)]
    assert taught(growing).ready
    assert not taught(growing, online=True).ready
    assert taught([1.0, 3.0] * 10, online=True).ready


def test_online_a_new_maximum_leads_back_to_the_machine_for_ten_tasks() -> None:
    strategy = taught([1.0, 3.0] * 20, online=True)
    assert strategy.predict(TASK, NODE) is not None
    strategy.observe(TASK, 3.1, 10.0)
    for _ in range(10):
        assert strategy.predict(TASK, NODE) is None
        strategy.observe(TASK, 1.0, 10.0)
    assert strategy.predict(TASK, NODE) is not None
    assert strategy.grow(TASK, [1.0], NODE) == 3.1


def test_online_a_failure_at_the_largest_peak_leads_back_before_the_task_has_finished() -> None:
    strategy = taught([1.0, 3.0] * 20, online=True)
    strategy.observe_failure(TASK, 1.0, 10.0)
    assert strategy.ready
    strategy.observe_failure(TASK, 3.0, 10.0)
    assert not strategy.ready


def test_the_variance_is_that_of_all_peaks() -> None:
    convergence = Convergence()
    for peak in [0.0] * 10:
        convergence.observe(peak, is_new_maximum=False)
    convergence.restart()
    # From 0 to a variance that still grows by more than 5 % in ten tasks.
    for _ in range(10):
        convergence.observe(10.0, is_new_maximum=False)
    assert not convergence.reached


def test_only_bytes_are_binned() -> None:
    assert bin_width(Kind.MEMORY, 50) == 50e6
    assert bin_width(Kind.CORES, 50) == 0.0


@pytest.mark.parametrize("width", [-1, "wide", float("nan"), float("inf")])
def test_a_bin_that_is_no_width_is_refused(width: object) -> None:
    with pytest.raises(UnknownStrategy, match="bin must be a number of MB"):
        bin_width(Kind.MEMORY, width)
