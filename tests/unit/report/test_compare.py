"""Strategies side by side."""

from __future__ import annotations

import pytest

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.report import Metrics, Result, standings
from parsl_sizer.report.compare import as_json

NODE = Resources(cores=16, memory=64.0, disk=64.0)


def result(
    name: str, *allocations: float, kind: Kind = Kind.MEMORY, is_limit: bool = False
) -> Result:
    """One task with a peak of 4 for 10 s."""
    metrics = Metrics(NODE)
    outcomes = []
    for number, allocation in enumerate(allocations, start=1):
        over = frozenset({kind}) if allocation < 4.0 else frozenset[Kind]()
        attempt = Attempt(TaskInfo(1, "align"), number, {kind: allocation})
        ending = Ending.EXHAUSTED if over else Ending.DONE
        usage = Usage({kind: 4.0}, 10.0)
        outcomes.append(Outcome(attempt, ending, usage=usage, exhausted=over))
    metrics.add({kind: 4.0}, 10.0, outcomes)
    return Result(name, metrics, is_limit=is_limit)


def test_the_least_waste_comes_first_and_the_best_is_no_limit() -> None:
    ranked = standings(
        [result("whole", 64.0), result("doubling", 2.0, 4.0), result("oracle", 4.0, is_limit=True)]
    )
    assert [standing.result.name for standing in ranked] == ["oracle", "doubling", "whole"]
    assert [standing.is_best for standing in ranked] == [False, True, False]
    assert [standing.relative_waste for standing in ranked] == [0.0, 1.0, 30.0]
    assert [standing.retries_per_task for standing in ranked] == [0.0, 1.0, 0.0]


def test_of_two_that_waste_the_same_the_one_with_fewer_retries_is_best() -> None:
    ranked = standings([result("retrying", 2.0, 4.0), result("steady", 6.0)])
    assert [standing.result.name for standing in ranked] == ["steady", "retrying"]


def test_nothing_is_relative_to_a_best_without_waste() -> None:
    ranked = standings([result("exact", 4.0), result("whole", 64.0)])
    assert [standing.relative_waste for standing in ranked] == [None, None]


def test_a_trace_without_memory_is_judged_by_what_it_has() -> None:
    [standing] = standings([result("doubling", 8.0, kind=Kind.DISK)])
    assert standing.kind is Kind.DISK
    assert standing.tally.waste == 40.0


def test_nothing_to_compare_is_an_empty_table() -> None:
    assert standings([]) == []


def test_json_has_the_figures_of_replay_and_the_place() -> None:
    best, _ = standings([result("whole", 64.0), result("close", 5.0)])
    found = as_json(best)
    assert (found["strategy"], found["best"], found["relative_waste"]) == ("close", True, 1.0)
    assert {"tasks", "retries", "attempts", "memory", "cores", "disk"} <= set(found)


def test_retries_of_kinds_that_go_together_are_those_of_the_task() -> None:
    metrics = Metrics(NODE, together=True)
    peak = {Kind.MEMORY: 1.0, Kind.CORES: 4.0}
    outcomes = [
        Outcome(
            Attempt(TaskInfo(1, "align"), 1, {Kind.MEMORY: 2.0, Kind.CORES: 2.0}),
            Ending.EXHAUSTED,
            usage=Usage(peak, 10.0),
            exhausted=frozenset({Kind.CORES}),
        ),
        Outcome(
            Attempt(TaskInfo(1, "align"), 2, {Kind.MEMORY: 2.0, Kind.CORES: 4.0}),
            Ending.DONE,
            usage=Usage(peak, 10.0),
        ),
    ]
    metrics.add(peak, 10.0, outcomes)
    [standing] = standings([Result("doubling", metrics)])
    assert standing.retries_per_task == pytest.approx(1.0)
