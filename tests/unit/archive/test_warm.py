"""What a category is taught before its first task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from parsl.executors import ThreadPoolExecutor

from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.archive.memory import MemoryArchive
from parsl_sizer.archive.warm import FEW, LAST, lessons
from parsl_sizer.engines.threads import Threads
from parsl_sizer.executor import ending
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Proposal, Setting
from parsl_sizer.strategies.catalog import family

NODE = Resources(cores=16, memory=64e9, disk=64e9)


def entry(
    number: int,
    *,
    run: str = "old",
    ending: Ending = Ending.DONE,
    code: str | None = "new code",
    category: str = "align",
    peak: float = 2e9,
    layers: tuple[str, ...] = (),
) -> Entry:
    task = TaskInfo(number, category, code_hash=code)
    usage = Usage({Kind.MEMORY: peak}, wall_s=60.0)
    exhausted = frozenset({Kind.MEMORY} if ending is Ending.EXHAUSTED else ())
    attempt = Attempt(task, 1, {Kind.MEMORY: 4e9})
    outcome = Outcome(attempt, ending, float(number), usage, exhausted, layers=layers)
    return Entry(Run(run), outcome)


def taught(entries: Sequence[Entry], code: str | None = "new code") -> list[int | str]:
    archive = MemoryArchive()
    archive.record(entries)
    found = lessons(archive, TaskInfo(1, "align", code_hash=code))
    return [outcome.attempt.task.task_id for outcome in found]


def test_the_last_ones_of_the_category_are_taught_the_newest_last() -> None:
    entries = [entry(number) for number in range(LAST + 50)]
    entries += [entry(number + 10_000, category="other") for number in range(50)]
    assert taught(entries) == [f"old/{number}" for number in range(50, LAST + 50)]


def test_what_says_nothing_of_sizes_is_left_out() -> None:
    endings = (Ending.LOST, Ending.RAISED, Ending.DONE, Ending.EXHAUSTED)
    entries = [entry(number, ending=ending) for number, ending in enumerate(endings)]
    assert taught(entries) == ["old/2", "old/3"]


def test_of_other_code_every_fourth_is_taught_and_first() -> None:
    entries = [entry(number, code="old code") for number in range(8)]
    entries += [entry(number + 8) for number in range(2)]
    assert taught(entries) == ["old/3", "old/7", "old/8", "old/9"]
    assert len(taught(entries, code=None)) == 10


def test_samples_stand_in_only_where_too_few_were_measured() -> None:
    samples = [entry(number, layers=(SAMPLED,)) for number in range(5)]
    measured = [entry(number + 5) for number in range(FEW)]
    assert len(taught([*samples, *measured])) == FEW
    assert len(taught([*samples, *measured[:-1]])) == FEW + 4


def recalled(earlier: Sequence[Outcome]) -> Categories:
    categories = Categories(family("auto", Setting((Kind.MEMORY,))))
    categories.recall("align", earlier)
    return categories


def sized(categories: Categories, number: int = 100) -> Proposal:
    proposal = categories.propose(TaskInfo(number, "align"), (), NODE)
    assert proposal is not None
    return proposal


def test_a_strategy_knows_what_the_archive_knows_with_its_first_task() -> None:
    archive = MemoryArchive()
    archive.record([entry(number, peak=2e9 + 1e7 * number) for number in range(30)])
    categories = recalled(lessons(archive, TaskInfo(1, "align")))
    for number in range(3):
        proposal = sized(categories, number)
        assert 2e9 < proposal.amounts[Kind.MEMORY] < 2.5e9
        assert "from 30 tasks" in str(proposal.why)


def test_a_category_that_has_learned_already_is_taught_its_past_too() -> None:
    categories = Categories(family("auto", Setting((Kind.MEMORY,))))
    categories.learn(entry(99, run="this").outcome)  # it was fixed by the user, say
    categories.recall("align", [entry(number).outcome for number in range(30)])
    assert "from 31 tasks" in str(sized(categories).why)


def sized_after(odd: Outcome) -> str:
    """Why a task is given what it is, after five sound outcomes and an odd one."""
    return str(sized(recalled([*[entry(number).outcome for number in range(5)], odd])).why)


@pytest.mark.parametrize("peak", [1e24, 1e17, -1.0, math.nan, math.inf, 10**40, "much", True])
def test_a_peak_that_is_rejected_of_a_task_is_not_taught_from_an_archive(peak: Any) -> None:
    odd = entry(9).outcome
    assert "from 5 tasks" in sized_after(odd._replace(usage=Usage({Kind.MEMORY: peak}, 60.0)))
    held = odd.attempt._replace(allocation={Kind.MEMORY: peak})
    assert "from 5 tasks" in sized_after(odd._replace(attempt=held, ending=Ending.EXHAUSTED))
    report = {"parsl_sizer": 1, "ending": "returned", "peak": {"memory": peak}, "wall_s": 1.0}
    future: Future[object] = Future()
    future.set_result(report)
    answer = ending.read(future, odd.attempt, Threads(ThreadPoolExecutor()), 1.0)
    assert answer.rejected
    assert answer.outcome.usage.peak == {}


def test_a_peak_of_a_larger_machine_is_taught() -> None:
    assert "from 6 tasks" in sized_after(entry(9, peak=5e12).outcome)


@pytest.mark.parametrize("wall_s", [1e11, -1.0, math.nan, math.inf, "long"])
def test_a_time_that_cannot_be_is_not_taught(wall_s: Any) -> None:
    odd = entry(9).outcome._replace(usage=Usage({Kind.MEMORY: 2e9}, wall_s))
    assert "from 5 tasks" in sized_after(odd)
