from __future__ import annotations

from collections import Counter

from parsl_sizer.model import Ending, Kind
from parsl_sizer.testing import NODE, lessons, peak_of, task


def test_lessons_are_the_same_every_time() -> None:
    lessons.cache_clear()
    once = lessons(100)
    lessons.cache_clear()
    assert lessons(100) == once


def test_lessons_are_as_untidy_as_real_ones() -> None:
    outcomes = lessons(1000)
    endings = Counter(outcome.ending for outcome in outcomes)
    assert set(endings) == set(Ending)
    assert endings[Ending.DONE] > 700
    assert any(outcome.usage.wall_s == 0 for outcome in outcomes)
    done = [outcome for outcome in outcomes if outcome.ending is Ending.DONE]
    assert any(Kind.MEMORY not in outcome.usage.peak for outcome in done)
    assert any(Kind.MEMORY in outcome.usage.peak for outcome in done)
    names = Counter(name for outcome in outcomes for name in outcome.attempt.task.features)
    assert sum(1 for count in names.values() if count == 1) > 3
    assert names["input_size"] > 300


def test_a_failed_lesson_is_censored_at_its_allocation() -> None:
    failed = [outcome for outcome in lessons(1000) if outcome.ending is Ending.EXHAUSTED]
    for outcome in failed:
        assert outcome.exhausted
        for kind in outcome.exhausted:
            allocated = outcome.attempt.allocation[kind]
            assert outcome.usage.peak[kind] == allocated < peak_of(outcome.attempt.task)[kind]


def test_no_task_needs_more_than_the_node() -> None:
    for number in range(500):
        for category in ("align", "call", "merge"):
            assert not NODE.exceeded_by(peak_of(task(number, category)))
