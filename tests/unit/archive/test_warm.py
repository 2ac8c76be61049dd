"""What a category is taught before its first task."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.archive.memory import MemoryArchive
from parsl_sizer.archive.warm import FEW, LAST, lessons
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Setting
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


def test_a_strategy_knows_what_the_archive_knows_with_its_first_task() -> None:
    archive = MemoryArchive()
    archive.record([entry(number, peak=2e9 + 1e7 * number) for number in range(30)])
    asked: list[str] = []

    def before(task: TaskInfo) -> Sequence[Outcome]:
        asked.append(task.category)
        return lessons(archive, task)

    categories = Categories(family("auto", Setting((Kind.MEMORY,))), before=before)
    for number in range(3):
        proposal = categories.propose(TaskInfo(number, "align"), (), NODE)
        assert proposal is not None
        assert 2e9 < proposal.amounts[Kind.MEMORY] < 2.5e9
        assert "from 30 tasks" in str(proposal.why)
    assert asked == ["align"]


@pytest.mark.parametrize("fault", [OSError("gone"), ValueError("odd")])
def test_an_archive_that_fails_costs_what_it_knew_and_nothing_else(fault: Exception) -> None:
    said: list[str] = []

    def before(task: TaskInfo) -> Sequence[Outcome]:
        raise fault

    setting = Setting((Kind.MEMORY,))
    categories = Categories(family("auto", setting), before=before, warn=said.append)
    assert categories.propose(TaskInfo(1, "align"), (), NODE) is not None
    assert categories.propose(TaskInfo(2, "align"), (), NODE) is not None
    [text] = said
    assert "knows nothing of earlier runs" in text


def test_a_category_whose_first_lesson_comes_before_its_first_size_is_recalled_too() -> None:
    archive = MemoryArchive()
    archive.record([entry(number, peak=2e9 + 1e7 * number) for number in range(30)])
    categories = Categories(
        family("auto", Setting((Kind.MEMORY,))), before=lambda task: lessons(archive, task)
    )
    categories.learn(entry(99, run="this").outcome)  # it was fixed by the user, say
    proposal = categories.propose(TaskInfo(100, "align"), (), NODE)
    assert proposal is not None
    assert "from 31 tasks" in str(proposal.why)


def test_what_cannot_be_is_not_taught() -> None:
    archive = MemoryArchive()
    archive.record([entry(number) for number in range(5)])
    archive.record([entry(9, peak=float("inf"))])
    categories = Categories(
        family("auto", Setting((Kind.MEMORY,))), before=lambda task: lessons(archive, task)
    )
    proposal = categories.propose(TaskInfo(100, "align"), (), NODE)
    assert proposal is not None
    assert "from 5 tasks" in str(proposal.why)
