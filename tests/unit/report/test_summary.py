"""A recorded run in figures."""

from __future__ import annotations

import io
import json
import random
import resource
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, TaskInfo, Usage
from parsl_sizer.report import bounded, run_summary
from parsl_sizer.report.bounded import MOST_DISTINCT, Allocations, Timeline
from parsl_sizer.report.figures import Summary, as_json
from parsl_sizer.report.html import render
from parsl_sizer.report.overview import overview
from parsl_sizer.report.run import OTHERS, RunCost, run_table
from parsl_sizer.report.run_summary import SHOWN, STEPS, summary_of

RUN = Run("run-1", started_at=1000.0, workflow="align.py")
GB, HOUR = 1e9, 3600.0


def outcome(task: int | str = 1, category: str = "align", number: int = 1, **given: Any) -> Outcome:
    """An attempt that held 4 GB for an hour and used 2 GB, or as is said."""
    held, peak = given.get("held", 4 * GB), given.get("peak", 2 * GB)
    wall_s, ended_at = given.get("wall_s", HOUR), given.get("ended_at", 1000.0 + HOUR)
    return Outcome(
        Attempt(
            TaskInfo(task, category),
            number,
            {} if held is None else {Kind.MEMORY: held},
            launched_at=ended_at - wall_s,
        ),
        given.get("ending", Ending.DONE),
        ended_at,
        Usage({} if peak is None else {Kind.MEMORY: peak}, wall_s),
        frozenset(given.get("exhausted", ())),
        overran=given.get("overran", False),
        layers=given.get("layers", ()),
        node_lost=given.get("node_lost", False),
    )


def summary(*outcomes: Outcome, run: Run = RUN) -> Summary:
    return summary_of(run, [Entry(run, outcome) for outcome in outcomes])


FAILED = {"ending": Ending.EXHAUSTED, "exhausted": [Kind.MEMORY], "held": GB, "peak": GB}


def retried(task: int = 1, wall_s: float = HOUR) -> list[Outcome]:
    """The attempts at a task that ran out of memory once, the newest first."""
    return [
        outcome(task, number=2, ended_at=1000.0 + 2 * HOUR, wall_s=wall_s),
        outcome(task, number=1, **FAILED),
    ]


def test_a_task_with_a_retry_is_one_task_that_wasted_what_its_attempts_did_not_use() -> None:
    found = summary(*retried())
    totals = found.totals
    assert (totals.tasks, totals.attempts, totals.retries, totals.failed) == (1, 2, 1, 0)
    assert totals.endings == {"done": 1, "raised": 0, "exhausted": 1, "lost": 0}
    assert totals.causes == {"memory": 1}
    memory = totals.kinds["memory"]
    assert (memory.allocated, memory.used, memory.wasted) == pytest.approx((5.0, 2.0, 3.0))
    assert memory.efficiency == pytest.approx(0.4)
    assert totals.kinds["disk"].allocated is None
    [task] = found.most_wasteful
    assert (task.attempts, task.wall_s, task.wasted) == pytest.approx((2, 2 * HOUR, 3.0))
    assert (task.allocated, task.peak, task.ending) == (4 * GB, 2 * GB, "done")


def test_the_order_of_attempts_does_not_matter() -> None:
    outcomes = [attempt for task in range(20) for attempt in retried(task, 60.0 + task)]
    assert as_json(summary(*outcomes)) == as_json(summary(*outcomes[::-1]))


def test_what_was_saved_is_against_the_largest_allocation_and_says_so() -> None:
    found = summary(outcome(1, held=8 * GB), outcome(2, held=2 * GB), outcome(3, **FAILED)).saving
    assert found is not None
    assert found.against == "8 GB, the largest allocation that any task of the run had"
    assert (found.whole, found.allocated, found.saved) == pytest.approx((24.0, 11.0, 13.0))
    assert found.share == pytest.approx(13 / 24)


def test_what_was_saved_is_the_same_at_the_end_of_a_run_and_in_its_report() -> None:
    lost, unlimited = {"ending": Ending.LOST}, {"held": None}
    tasks = [
        retried(1),
        [outcome(2, number=3), outcome(2, number=2, **lost), outcome(2, **lost | unlimited)],
        [outcome(3, number=2, **FAILED | {"held": 64 * GB}), outcome(3, **FAILED)],
        [outcome(4, ending=Ending.RAISED, wall_s=60.0)],
        [outcome(5, **unlimited)],
    ]
    cost, node = RunCost(), 64 * GB
    for attempts in tasks:
        cost.add(attempts[::-1], {Kind.MEMORY: node})
    entries = [attempt for attempts in tasks for attempt in attempts]
    found = summary(*entries, run=Run("run-1", labels={"node_memory": node})).categories[0].saving
    memory = cost.categories["align"].kinds[Kind.MEMORY]
    assert found is not None
    assert (found.whole, found.allocated, found.saved) == pytest.approx(
        (memory.whole / GB / HOUR, memory.allocated / GB / HOUR, memory.saved / GB / HOUR)
    )


@pytest.mark.parametrize("label", ["64GB", 64e9, 64_000_000_000])
def test_what_was_saved_is_against_a_node_where_a_label_says_how_large_it_is(label: object) -> None:
    run = Run("run-1", labels={"node_memory": label})
    found = summary(outcome(), run=run).saving
    assert found is not None
    assert found.against.startswith("64 GB, the memory of a node")
    assert found.saved == pytest.approx(60.0)


def test_a_label_that_is_no_amount_says_nothing() -> None:
    found = summary(outcome(), run=Run("run-1", labels={"node_memory": "plenty"})).saving
    assert found is not None
    assert found.baseline == 4 * GB


def test_an_empty_run_has_no_figures_but_zeros() -> None:
    found = summary()
    assert found.totals.tasks == found.totals.attempts == 0
    assert (found.saving, found.course, found.categories, found.rest) == (None, None, (), None)
    json.dumps(as_json(found), allow_nan=False)


def test_a_run_with_only_failures_wasted_all_that_it_held() -> None:
    causes = [
        {"ending": Ending.RAISED},
        {"ending": Ending.LOST},
        {"ending": Ending.LOST, "node_lost": True},
        {"ending": Ending.EXHAUSTED, "exhausted": [Kind.MEMORY, Kind.DISK]},
        {"ending": Ending.EXHAUSTED},
    ]
    found = summary(*(outcome(task, **how) for task, how in enumerate(causes)))
    assert found.totals.failed == found.totals.tasks == 5
    expected = ("raised", "lost", "node_lost", "memory", "disk", "exhausted")
    assert found.totals.causes == dict.fromkeys(expected, 1)
    memory = found.totals.kinds["memory"]
    assert (memory.used, memory.efficiency) == (None, 0.0)
    assert memory.wasted == memory.allocated == pytest.approx(20.0)
    [category] = found.categories
    assert (category.peaks, category.specification) == (None, None)


def test_what_is_not_known_is_none() -> None:
    found = summary(outcome(held=None, peak=None))
    memory = found.totals.kinds["memory"]
    assert (memory.allocated, memory.used, memory.wasted, memory.efficiency) == (None,) * 4
    assert found.saving is None
    assert found.most_wasteful == ()
    assert found.categories[0].ladder.final is None


def test_what_finished_without_being_measured_is_not_called_waste() -> None:
    memory = summary(outcome(1), outcome(2, peak=None)).totals.kinds["memory"]
    assert memory.allocated == pytest.approx(8.0)
    assert memory.wasted == pytest.approx(2.0)
    assert memory.efficiency == pytest.approx(0.5)


@pytest.mark.parametrize("nonsense", [float("nan"), float("inf"), -1.0])
def test_what_cannot_be_is_not_known(nonsense: float) -> None:
    found = summary(outcome(1), outcome(2, held=nonsense, peak=nonsense, wall_s=nonsense))
    assert found.totals.tasks == 2
    assert found.totals.kinds["memory"].allocated == pytest.approx(4.0)
    assert found.categories[0].specification == "{'memory': 2100}"
    json.dumps(as_json(found), allow_nan=False)


def test_the_ladder_is_told_as_it_was_lived() -> None:
    firsts = [outcome(n, held=(1 if n < 5 else 3) * GB, ended_at=5000.0 + n) for n in range(8)]
    retry = outcome(0, number=2, held=7 * GB, ended_at=9000.0)
    [category] = summary(retry, *firsts[::-1]).categories
    ladder = category.ladder
    assert [(rung.memory, rung.attempts) for rung in ladder.first.rungs] == [(GB, 5), (3 * GB, 3)]
    assert [(rung.memory, rung.attempts) for rung in ladder.later.rungs] == [(7 * GB, 1)]
    assert ladder.final == 3 * GB


def test_allocations_that_are_all_different_are_rounded_until_few_are_left() -> None:
    found = Allocations()
    draw = random.Random(1)
    for at in range(20_000):
        found.add(draw.uniform(1e6, 1e12), float(at))
    rungs = found.rungs()
    assert rungs.distinct <= MOST_DISTINCT
    assert sum(rung.attempts for rung in rungs.rungs) + rungs.other_attempts == 20_000


def test_peaks_have_quantiles_and_every_task_is_in_a_bin() -> None:
    outcomes = [outcome(n, peak=n * 1e6) for n in range(1, 101)]
    [category] = summary(*outcomes).categories
    peaks = category.peaks
    assert peaks is not None
    assert peaks.quantiles == {
        name: share * 1e6
        for name, share in zip(("p5", "p25", "p50", "p75", "p95"), (5, 25, 50, 75, 95), strict=True)
    } | {"max": 100e6}
    assert sum(bin_.tasks for bin_ in peaks.bins) == 100
    for bin_ in peaks.bins[1:]:
        within = sum(1 for n in range(1, 101) if bin_.least < n * 1e6 <= bin_.most)
        assert bin_.tasks == pytest.approx(within, abs=1)  # edges are rounded
    assert (peaks.bins[0].least, peaks.bins[-1].most) == (1e6, 100e6)


@pytest.mark.parametrize("peaks", [[0.0], [0.0, 5e9], [3e9, 3e9]])
def test_peaks_of_nothing_and_equal_ones_have_bins_too(peaks: list[float]) -> None:
    outcomes = [outcome(n, peak=peak) for n, peak in enumerate(peaks)]
    found = summary(*outcomes).categories[0].peaks
    assert found is not None
    assert sum(bin_.tasks for bin_ in found.bins) == len(peaks)


def test_the_line_to_paste_is_the_one_that_the_end_of_the_run_prints() -> None:
    assert summary(outcome()).categories[0].specification == "{'memory': 2100}"


def test_the_line_to_paste_is_for_the_tasks_that_finished_and_says_who_needed_more() -> None:
    ran_out = [outcome(3, number=2, **FAILED | {"held": 8 * GB}), outcome(3, **FAILED)]
    raised = [outcome(4, number=2, ending=Ending.RAISED), outcome(4, **FAILED)]
    given = [*retried(1), outcome(2), *ran_out, *raised]
    found, cost = summary(*given), RunCost()
    for task in range(1, 5):
        attempts = [one for one in given[::-1] if one.attempt.task.task_id == task]
        cost.add(attempts, {Kind.MEMORY: 8 * GB})
    line = "align: parsl_resource_specification={'memory': 2100} (1 task needed more than 8 GB of"
    for shown in (overview(found), run_table(cost)):
        console = Console(width=200, file=io.StringIO(), record=True)
        console.print(shown)
        text = console.export_text()
        assert "enough for every task that finished, as a fixed request:" in text
        assert f"{line} memory)" in text
    assert "finished, as a fixed request (1 task needed more than 8 GB of memory):" in render(found)


def test_a_timeline_keeps_what_attempts_held_over_time() -> None:
    draw, timeline, held = random.Random(1), Timeline(50), 0.0
    for _ in range(500):
        start, wall_s, memory = draw.uniform(0, 9e4), draw.uniform(1, 4e4), draw.uniform(1e8, 1e9)
        timeline.add(start, start + wall_s, memory, memory / 2)
        held += memory * wall_s
    course = timeline.course()
    assert course is not None
    assert len(course.allocated) <= 50
    assert sum(course.allocated) * course.step_s == pytest.approx(held)
    assert sum(course.used) * course.step_s == pytest.approx(held / 2)


def test_categories_come_the_most_memory_first_and_the_small_ones_are_summed() -> None:
    count = SHOWN + 3
    found = summary(*(outcome(n, f"c{n}", held=(n + 1) * GB) for n in range(count)))
    assert found.categories[0].name == f"c{count - 1}"
    assert len(found.categories) == count
    assert found.rest is not None
    assert (found.rest.categories, found.rest.totals.tasks) == (3, 3)
    assert found.rest.totals.kinds["memory"].allocated == pytest.approx(6.0)


def test_processor_time_is_what_is_used_of_cores() -> None:
    attempt = Attempt(TaskInfo(1, "align"), 1, {Kind.CORES: 4.0})
    usage = Usage({Kind.CORES: 4.0}, HOUR, cpu_s=2 * HOUR)
    cores = summary(Outcome(attempt, Ending.DONE, 9000.0, usage)).totals.kinds["cores"]
    assert (cores.allocated, cores.used, cores.efficiency) == pytest.approx((4.0, 2.0, 0.5))
    assert (cores.unit, cores.largest_peak) == ("core·h", 4.0)


def test_overruns_and_sampled_peaks_are_counted() -> None:
    totals = summary(outcome(1, overran=True), outcome(2, layers=(SAMPLED,))).totals
    assert (totals.overruns, totals.sampled) == (1, 1)


def test_only_the_ten_that_stand_out_are_told() -> None:
    found = summary(*(outcome(n, wall_s=float(n + 1)) for n in range(30)))
    assert [task.task_id for task in found.slowest] == list(range(29, 19, -1))
    assert [task.task_id for task in found.most_wasteful] == list(range(29, 19, -1))


def many(count: int) -> Iterator[Entry]:
    draw = random.Random(1)
    for number in range(count, 0, -1):
        how = FAILED if number % 7 == 0 else {"held": draw.uniform(1e8, 9e9)}
        how = how | {"wall_s": draw.uniform(1, 9e3), "ended_at": 1e9 + 10.0 * number}
        peak = draw.lognormvariate(20, 1)
        yield Entry(RUN, outcome(number, f"c{number % 5}", **(how | {"peak": peak})))


def test_a_hundred_thousand_entries_take_little_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = summary_of(RUN, many(100_000))
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kb < 60_000
    assert (found.totals.tasks, found.totals.failed) == (100_000, 100_000 // 7)
    assert found.course is not None
    assert len(found.course.allocated) <= STEPS
    assert len(json.dumps(as_json(found))) < 200_000


def test_what_is_kept_does_not_grow_with_the_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST_OPEN", 100)
    sizes = []
    for count in (3_000, 12_000):
        tracemalloc.start()
        assert summary_of(RUN, many(count)).totals.tasks == count
        sizes.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert sizes[1] < 1.5 * sizes[0]


def test_categories_without_number_share_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_summary, "MOST_CATEGORIES", 20)
    count = 70
    found = summary_of(RUN, (Entry(RUN, outcome(n, f"c{n}")) for n in range(count)))
    others = next(category for category in found.categories if category.name == OTHERS)
    assert others.totals.tasks == 50
    assert found.totals.tasks == count
