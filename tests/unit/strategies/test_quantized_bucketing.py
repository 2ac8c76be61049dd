from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.model import (
    Attempt,
    Ending,
    Kind,
    Outcome,
    Resources,
    TaskInfo,
    UnknownStrategy,
    Usage,
)
from parsl_sizer.strategies import Hindsight, Setting, Strategy
from parsl_sizer.strategies.catalog import family
from parsl_sizer.strategies.quantized_bucketing import (
    COLD_START,
    ColdStart,
    InStep,
    QuantizedBuckets,
)
from parsl_sizer.testing import LAWS, check_failure_grows_only_what_ran_out

NODE = Resources(cores=16, memory=64.0, disk=64.0)
TASK = TaskInfo(1, "align")
MEMORY_ONLY = Setting((Kind.MEMORY,))


def taught(peaks: Sequence[float], n: int = 1) -> QuantizedBuckets:
    buckets = QuantizedBuckets(n, ColdStart(0))
    for peak in peaks:
        buckets.observe(TASK, peak, 10.0)
    return buckets


def done(category: str, peak: float) -> Outcome:
    task = TaskInfo(1, category)
    attempt = Attempt(task, 1, {Kind.MEMORY: 64.0})
    return Outcome(attempt, Ending.DONE, usage=Usage({Kind.MEMORY: peak}, 10.0))


def ran_out(amounts: dict[Kind, float], *kinds: Kind) -> Outcome:
    return Outcome(Attempt(TASK, 1, amounts), Ending.EXHAUSTED, exhausted=frozenset(kinds))


def memory(strategy: Strategy, category: str = "align") -> float:
    return strategy.propose(TaskInfo(1, category), [], NODE).amounts[Kind.MEMORY]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=50), st.integers(1, 6))
def test_bucket_j_of_n_ends_at_index_floor_of_j_times_k_minus_1_over_n(
    peaks: list[int], n: int
) -> None:
    ordered = sorted(peaks)
    expected = [ordered[math.floor(j * (len(peaks) - 1) / n)] for j in range(1, n + 1)]
    assert list(taught(peaks, n).ends) == expected


def test_one_bucket_is_the_largest_peak() -> None:
    assert taught([3, 9, 5]).predict(TASK, 64.0) == 9


def test_a_failed_task_gets_the_next_bucket_and_then_the_largest_node() -> None:
    buckets = taught([1, 2, 3, 4, 5, 6, 7], n=3)
    assert buckets.ends == (3, 5, 7)
    assert [buckets.grow(TASK, [held], 64.0) for held in (3, 5, 7)] == [5, 7, None]


def test_buckets_that_end_alike_are_one_step() -> None:
    buckets = taught([2, 2, 2, 9], n=3)
    assert buckets.ends == (2, 2, 9)
    assert buckets.grow(TASK, [2.0], 64.0) == 9


def test_the_cold_start_is_ten_tasks_of_the_whole_workload() -> None:
    make = family("quantized-bucketing", MEMORY_ONLY)
    align, call = make("align"), make("call")
    for _ in range(COLD_START - 1):
        align.learn(done("align", 5.0))
    assert memory(align) == 64.0
    call.learn(done("call", 7.0))
    assert (memory(align), memory(call)) == (5.0, 7.0)


def test_a_category_that_comes_later_gets_the_machine_until_it_has_a_finished_task() -> None:
    make = family("quantized-bucketing", MEMORY_ONLY)
    align = make("align")
    for _ in range(COLD_START):
        align.learn(done("align", 5.0))
    call = make("call")
    assert memory(call) == 64.0
    call.learn(done("call", 7.0))
    assert memory(call) == 7.0


def test_during_the_cold_start_the_users_request_is_taken() -> None:
    strategy = family("quantized-bucketing", MEMORY_ONLY)("align")
    task = TaskInfo(1, "align", requested={Kind.MEMORY: 4.0})
    assert strategy.propose(task, [], NODE).amounts == {Kind.MEMORY: 4.0}
    failed = ran_out({Kind.MEMORY: 4.0}, Kind.MEMORY)
    assert strategy.propose(task, [failed], NODE).amounts == {Kind.MEMORY: 64.0}


def test_only_finished_tasks_count() -> None:
    strategy = family("quantized-bucketing", MEMORY_ONLY)("align")
    for _ in range(2 * COLD_START):
        strategy.learn(ran_out({Kind.MEMORY: 4.0}, Kind.MEMORY))
    assert memory(strategy) == 64.0


@pytest.mark.parametrize("level", [1, 2])
def test_at_levels_1_and_2_all_categories_share_their_buckets(level: int) -> None:
    make = family(f"quantized-bucketing:level={level}", MEMORY_ONLY)
    assert make("align") is make("call")


def test_at_level_3_every_category_has_its_own() -> None:
    make = family("quantized-bucketing:level=3", MEMORY_ONLY)
    assert make("align") is not make("call")


@pytest.mark.parametrize(
    ("spec", "known", "n"),
    [
        ("level=1", None, 1),
        ("level=2", None, 2),
        ("level=2", 5, 5),
        ("level=3", 5, 1),
        ("level=2,n=4", 5, 4),
        ("level=3,n=3", None, 3),
    ],
)
def test_the_number_of_buckets_follows_from_what_is_known(
    spec: str, known: int | None, n: int
) -> None:
    hindsight = Hindsight(lambda task: {}, {}, known) if known else None
    strategy = family(f"quantized-bucketing:{spec}", Setting((Kind.MEMORY,), hindsight=hindsight))(
        "align"
    )
    for peak in range(1, 102):
        strategy.learn(done("align", float(peak)))
    assert memory(strategy) == min(1 + 100 // n, 64)


@pytest.mark.parametrize("option", ["level=0", "level=4", "level=high", "n=0", "n=1.5", "n=few"])
def test_what_is_no_level_or_number_is_refused(option: str) -> None:
    with pytest.raises(UnknownStrategy, match=r"(level|n, the number of buckets,) must be"):
        family(f"quantized-bucketing:{option}", MEMORY_ONLY)


class TestInStep:
    """The paper's way: all kinds take their next bucket together."""

    def test_all_kinds_take_the_next_bucket_when_one_runs_out(self) -> None:
        strategy = InStep({Kind.MEMORY: taught([1, 3, 5], 2), Kind.DISK: taught([2, 4, 6], 2)})
        first = dict(strategy.propose(TASK, [], NODE).amounts)
        assert first == {Kind.MEMORY: 3, Kind.DISK: 4}
        second = dict(strategy.propose(TASK, [ran_out(first, Kind.DISK)], NODE).amounts)
        assert second == {Kind.MEMORY: 5, Kind.DISK: 6}

    def test_above_the_last_bucket_all_kinds_get_the_largest_node(self) -> None:
        strategy = InStep({Kind.MEMORY: taught([1, 3, 5]), Kind.DISK: taught([2, 4, 6])})
        failed = ran_out({Kind.MEMORY: 5, Kind.DISK: 6}, Kind.MEMORY)
        amounts = strategy.propose(TASK, [failed], NODE).amounts
        assert amounts == {Kind.MEMORY: 64, Kind.DISK: 64}

    def test_where_two_buckets_end_alike_the_attempt_counts_as_in_the_paper(self) -> None:
        strategy = InStep({Kind.MEMORY: taught([1, 3, 5], 2), Kind.DISK: taught([4, 4, 4], 2)})
        failed = ran_out({Kind.MEMORY: 3, Kind.DISK: 4}, Kind.DISK)
        amounts = strategy.propose(TASK, [failed], NODE).amounts
        assert amounts[Kind.MEMORY] == 5
        assert amounts[Kind.DISK] > 4
        assert amounts[Kind.DISK] == pytest.approx(4)

    def test_a_kind_that_did_not_run_out_never_shrinks(self) -> None:
        strategy = InStep({Kind.MEMORY: taught([1, 3, 5], 2), Kind.DISK: taught([2, 4, 6], 2)})
        failed = ran_out({Kind.MEMORY: 3, Kind.DISK: 50}, Kind.MEMORY)
        amounts = strategy.propose(TASK, [failed], NODE).amounts
        assert amounts == {Kind.MEMORY: 5, Kind.DISK: 50}

    def test_a_lost_attempt_is_repeated_as_it_was(self) -> None:
        strategy = InStep({Kind.MEMORY: taught([1, 3, 5], 2), Kind.DISK: taught([2, 4, 6], 2)})
        held = {Kind.MEMORY: 3.0, Kind.DISK: 4.0}
        lost = Outcome(Attempt(TASK, 1, held), Ending.LOST)
        assert strategy.propose(TASK, [lost], NODE).amounts == held

    @pytest.mark.parametrize("name", ["quantized-bucketing", "kmeans-bucketing"])
    def test_all_laws_are_kept_but_that_other_kinds_stay(self, name: str) -> None:
        for law in LAWS:
            if law is not check_failure_grows_only_what_ran_out:
                law(f"{name}:level=2,together=true")

    def test_before_the_first_task_it_is_the_machine(self) -> None:
        make = family("quantized-bucketing:together=true", Setting((Kind.MEMORY, Kind.DISK)))
        failed = ran_out({Kind.MEMORY: 4.0, Kind.DISK: 4.0}, Kind.DISK)
        amounts = make("align").propose(TASK, [failed], NODE).amounts
        assert amounts == {Kind.MEMORY: 64.0, Kind.DISK: 64.0}
