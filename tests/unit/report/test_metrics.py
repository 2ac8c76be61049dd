"""What a strategy cost."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.model import (
    MB,
    Amounts,
    Attempt,
    Ending,
    Kind,
    Outcome,
    Resources,
    TaskInfo,
    Usage,
)
from parsl_sizer.report.metrics import Metrics, Tally, measures, summary

NODE = Resources(cores=16, memory=64.0, disk=64.0)
TASK = TaskInfo(1, "align")


def attempts(
    peak: Amounts, time_s: float, *allocations: Amounts, ttf: float = 1.0
) -> list[Outcome]:
    """The outcomes of attempts with these allocations, as a replay would have them."""
    found = []
    for number, allocation in enumerate(allocations, start=1):
        over = frozenset(kind for kind in peak if peak[kind] > allocation[kind])
        ending = Ending.EXHAUSTED if over else Ending.DONE
        usage = Usage(peak, time_s * ttf if over else time_s)
        found.append(
            Outcome(Attempt(TASK, number, allocation), ending, usage=usage, exhausted=over)
        )
    return found


def memory(*allocations: float) -> list[Amounts]:
    return [{Kind.MEMORY: allocation} for allocation in allocations]


def test_a_task_that_fits_at_once_wastes_what_it_leaves() -> None:
    metrics = Metrics(NODE)
    peak = {Kind.MEMORY: 3.0}
    metrics.add(peak, 10.0, attempts(peak, 10.0, *memory(4.0)))
    tally = metrics.kinds[Kind.MEMORY]
    assert (tally.used, tally.fragmentation, tally.failed) == (30.0, 10.0, 0.0)
    assert (tally.waste, tally.allocated, tally.maq, tally.ate) == (10.0, 40.0, 0.75, 0.75)
    assert (metrics.tasks, metrics.attempts, metrics.retries, metrics.exhausted) == (1, 1, 0, 0)


def test_a_failed_attempt_is_wasted_for_as_long_as_it_ran() -> None:
    metrics = Metrics(NODE)
    peak = {Kind.MEMORY: 3.0}
    metrics.add(peak, 10.0, attempts(peak, 10.0, *memory(1.0, 2.0, 4.0), ttf=0.5))
    tally = metrics.kinds[Kind.MEMORY]
    assert tally.failed == (1.0 + 2.0) * 5.0
    assert tally.fragmentation == 10.0
    assert tally.ate == pytest.approx(3.0 / 7.0)
    assert (metrics.retries, metrics.attempts) == (2, 3)


def test_a_kind_by_itself_pays_only_until_it_held_and_then_for_the_whole_time() -> None:
    peak = {Kind.MEMORY: 3.0, Kind.CORES: 3.0}
    outcomes = attempts(
        peak,
        10.0,
        {Kind.MEMORY: 4.0, Kind.CORES: 1.0},
        {Kind.MEMORY: 4.0, Kind.CORES: 2.0},
        {Kind.MEMORY: 4.0, Kind.CORES: 4.0},
        ttf=0.5,
    )
    alone, together = Metrics(NODE), Metrics(NODE, together=True)
    alone.add(peak, 10.0, outcomes)
    together.add(peak, 10.0, outcomes)
    assert alone.kinds[Kind.MEMORY].failed == 0.0
    assert alone.kinds[Kind.MEMORY].fragmentation == 10.0
    assert alone.kinds[Kind.CORES].failed == (1.0 + 2.0) * 5.0
    assert (alone.retries, alone.kinds[Kind.CORES].retries) == (0, 2)
    assert together.kinds[Kind.MEMORY].failed == 2 * 4.0 * 5.0
    assert together.kinds[Kind.CORES].failed == (1.0 + 2.0) * 5.0
    assert (together.retries, together.attempts) == (2, 3)


def test_whole_nodes_for_all_save_nothing_and_exact_ones_everything() -> None:
    whole, exact = Metrics(NODE), Metrics(NODE)
    for size in (1.0, 5.0, 9.0):
        peak = {Kind.MEMORY: size}
        whole.add(peak, size, attempts(peak, size, *memory(64.0)))
        exact.add(peak, size, attempts(peak, size, *memory(size)))
    assert whole.kinds[Kind.MEMORY].wrr == 0.0
    tally = exact.kinds[Kind.MEMORY]
    assert (tally.waste, tally.maq, tally.wrr, tally.ate) == (0.0, 1.0, 1.0, 1.0)


def test_throughput_is_one_for_the_largest_peak_and_is_equation_three_for_two_steps() -> None:
    tasks = [(1.0, 10.0), (2.0, 20.0), (8.0, 70.0)]
    largest, two_steps = Metrics(NODE), Metrics(NODE)
    for size, time_s in tasks:
        peak = {Kind.MEMORY: size}
        largest.add(peak, time_s, attempts(peak, time_s, *memory(8.0)))
        steps = memory(2.0) if size <= 2.0 else memory(2.0, 8.0)
        two_steps.add(peak, time_s, attempts(peak, time_s, *steps))
    assert largest.kinds[Kind.MEMORY].throughput == 1.0
    # (a_m / a_1) P(r <= a_1) + P(r > a_1) over the mean time, failures counted twice
    expected = (8 / 2 * 2 / 3 + 1 / 3) / ((100 + 70) / 3) / (1 / (100 / 3))
    assert two_steps.kinds[Kind.MEMORY].throughput == pytest.approx(expected)


def test_no_time_weighs_nothing_but_counts() -> None:
    metrics = Metrics(NODE)
    peak = {Kind.MEMORY: 3.0}
    metrics.add(peak, 0.0, attempts(peak, 0.0, *memory(2.0, 4.0)))
    tally = metrics.kinds[Kind.MEMORY]
    assert (tally.used, tally.waste, tally.retries) == (0.0, 0.0, 1)
    assert (tally.maq, tally.wrr, tally.throughput) == (None, None, None)
    assert tally.ate == 0.5


def test_a_task_that_is_given_nothing_and_uses_nothing_is_efficient() -> None:
    metrics = Metrics(NODE)
    peak = {Kind.MEMORY: 0.0}
    metrics.add(peak, 10.0, attempts(peak, 10.0, *memory(0.0)))
    assert metrics.kinds[Kind.MEMORY].ate == 1.0
    assert metrics.kinds[Kind.MEMORY].throughput is None


def test_what_is_impossible_is_counted_and_left_out() -> None:
    metrics = Metrics(NODE)
    peak = {Kind.MEMORY: 100.0, Kind.CORES: 1.0}
    outcomes = attempts({Kind.CORES: 1.0}, 10.0, {Kind.MEMORY: 64.0, Kind.CORES: 2.0})
    metrics.add(peak, 10.0, outcomes, impossible=frozenset({Kind.MEMORY}))
    tally = metrics.kinds[Kind.MEMORY]
    assert (tally.tasks, tally.impossible, tally.allocated) == (0, 1, 0.0)
    assert metrics.kinds[Kind.CORES].tasks == 1
    assert (metrics.tasks, metrics.impossible, metrics.exhausted, metrics.attempts) == (1, 1, 1, 0)


def test_another_kind_that_is_impossible_is_not_memorys_fault_unless_they_go_together() -> None:
    peak = {Kind.MEMORY: 1.0, Kind.CORES: 99.0}
    alone, together = Metrics(NODE), Metrics(NODE, together=True)
    outcomes = attempts({Kind.MEMORY: 1.0}, 1.0, {Kind.MEMORY: 2.0, Kind.CORES: 16.0})
    alone.add(peak, 1.0, outcomes, impossible=frozenset({Kind.CORES}))
    together.add(peak, 1.0, [], impossible=frozenset({Kind.CORES}))
    assert (alone.impossible, alone.exhausted, alone.attempts) == (1, 0, 1)
    assert (together.impossible, together.exhausted, together.attempts) == (1, 1, 0)
    assert together.kinds[Kind.MEMORY].tasks == 0


def test_a_task_that_never_held_is_exhausted_and_all_waste() -> None:
    for together in (False, True):
        metrics = Metrics(NODE, together=together)
        peak = {Kind.MEMORY: 50.0}
        metrics.add(peak, 10.0, attempts(peak, 10.0, *memory(2.0, 4.0)))
        tally = metrics.kinds[Kind.MEMORY]
        assert (metrics.exhausted, metrics.retries, metrics.attempts) == (1, 1, 2)
        assert (tally.used, tally.waste, tally.maq) == (0.0, 60.0, 0.0)


def test_a_kind_that_no_strategy_controls_is_taken_whole() -> None:
    metrics = Metrics(NODE)
    peak = {Kind.DISK: 4.0}
    metrics.add(peak, 1.0, [Outcome(Attempt(TASK, 1, {}), Ending.DONE, usage=Usage(peak, 1.0))])
    assert metrics.kinds[Kind.DISK].fragmentation == 60.0


def test_categories_are_apart_and_add_up() -> None:
    metrics = Metrics(NODE, per_category=True)
    for category, size in (("align", 1.0), ("align", 2.0), ("call", 3.0)):
        peak = {Kind.MEMORY: size}
        metrics.add(peak, 1.0, attempts(peak, 1.0, *memory(4.0)), category=category)
    by_category = {name: kinds[Kind.MEMORY] for name, kinds in metrics.categories.items()}
    assert {name: tally.tasks for name, tally in by_category.items()} == {"align": 2, "call": 1}
    assert sum(tally.waste for tally in by_category.values()) == metrics.kinds[Kind.MEMORY].waste
    assert by_category["align"].throughput == 0.5  # its own largest peak is 2
    found = summary(metrics)["categories"]
    assert isinstance(found, dict)
    assert set(found["align"]) == {"memory"}


def test_nothing_is_kept_of_categories_unless_asked() -> None:
    metrics = Metrics(NODE)
    peak = {Kind.MEMORY: 1.0}
    metrics.add(peak, 1.0, attempts(peak, 1.0, *memory(4.0)), category="align")
    assert metrics.categories == {}
    assert "categories" not in summary(metrics)


def test_json_has_megabytes_and_cores_times_seconds() -> None:
    tally = Tally()
    tally.add(peak=3 * MB, time_s=10.0, whole=64 * MB, allocated=4 * MB)
    assert measures(Kind.MEMORY, tally)["used"] == 30.0
    assert measures(Kind.CORES, tally)["used"] == 30 * MB


def test_of_an_unknown_kind_json_has_counts_and_null() -> None:
    found = measures(Kind.DISK, Tally())
    counts = {name: value for name, value in found.items() if value is not None}
    assert counts == {"tasks": 0, "retries": 0, "exhausted": 0, "impossible": 0}


sizes = st.floats(0.01, 64.0)


@given(
    st.lists(
        st.tuples(sizes, st.floats(0.0, 1e6), st.lists(sizes, max_size=4)), min_size=1, max_size=20
    ),
    st.floats(0.0, 1.0),
)
def test_the_measures_stay_within_their_bounds(
    tasks: list[tuple[float, float, list[float]]], ttf: float
) -> None:
    metrics = Metrics(NODE)
    for size, time_s, others in tasks:
        peak = {Kind.MEMORY: size}
        failing = sorted(other for other in others if other < size)
        enough = min((other for other in others if other >= size), default=64.0)
        metrics.add(peak, time_s, attempts(peak, time_s, *memory(*failing, enough), ttf=ttf))
    tally = metrics.kinds[Kind.MEMORY]
    assert tally.waste == tally.fragmentation + tally.failed >= 0
    assert tally.allocated == pytest.approx(tally.used + tally.waste)
    assert tally.maq is None or 0 <= tally.maq <= 1
    assert tally.wrr is None or tally.wrr <= 1
    assert tally.ate is not None
    assert 0 < tally.ate <= 1 + 1e-12
    assert tally.throughput is None or tally.throughput > 0
    assert all(
        value is None or math.isfinite(value) for value in measures(Kind.MEMORY, tally).values()
    )
