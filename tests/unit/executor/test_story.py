"""The story of a task, packed and told."""

from __future__ import annotations

import sys
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed, wait

import pytest

from parsl_sizer.executor.story import SizedFuture, Story, sizing_of
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, TaskInfo, Usage

TASK = TaskInfo(1, "align")


def outcome(number: int, ending: Ending, **usage: object) -> Outcome:
    allocation = {Kind.CORES: 1.0, Kind.MEMORY: number * 1e9}
    attempt = Attempt(TASK, number, allocation, "n1", f"reason {number}")
    return Outcome(attempt, ending, 0.0, Usage(**usage), host="n1")


@pytest.mark.parametrize("ending", list(Ending))
def test_a_story_is_told_as_it_was(ending: Ending) -> None:
    made = outcome(1, ending, peak={Kind.MEMORY: 5e8, Kind.DISK: 0.0}, wall_s=2.5)
    sizing = Story([made], "a reason").sizing()
    assert sizing.category == "align"
    [attempt] = sizing.attempts
    assert attempt.ending is ending
    assert attempt.allocation == made.attempt.allocation
    assert attempt.peak == made.usage.peak
    assert (attempt.wall_s, attempt.why, attempt.host) == (2.5, "a reason", "n1")


def test_the_text_of_a_story_is_printable() -> None:
    attempt = Attempt(TaskInfo(1, "\x1b[31m\n"), 1, {Kind.MEMORY: 1e9})
    text = str(Story([Outcome(attempt, Ending.DONE, host="\x9b")], "\u202e").sizing())
    assert text.splitlines()[0] == r"\x1b[31m\x0a"
    assert text.replace("\n", "").isprintable()


def test_every_attempt_is_in_it() -> None:
    outcomes = [
        outcome(1, Ending.LOST),
        outcome(2, Ending.EXHAUSTED, peak={Kind.MEMORY: 2.1e9}, wall_s=1.0),
        outcome(3, Ending.DONE, peak={Kind.MEMORY: 2.5e9}, wall_s=9.0),
    ]
    sizing = Story(outcomes, "reason 3").sizing()
    assert [attempt.number for attempt in sizing.attempts] == [1, 2, 3]
    assert [attempt.why for attempt in sizing.attempts] == ["reason 1", "reason 2", "reason 3"]
    assert str(sizing).splitlines() == [
        "align",
        "  attempt 1: lost after 0 s on n1: cores 1 core, memory 1 GB; reason 1",
        (
            "  attempt 2: exhausted after 1 s on n1: "
            "cores 1 core, memory 2 GB (used 2.1 GB); reason 2"
        ),
        "  attempt 3: done after 9 s on n1: cores 1 core, memory 3 GB (used 2.5 GB); reason 3",
    ]


def test_what_was_not_limited_says_so() -> None:
    made = Outcome(Attempt(TASK, 1, {}), Ending.DONE, 0.0, Usage({Kind.MEMORY: 1e9}, 1.0))
    assert "memory no limit (used 1 GB)" in str(Story([made], "observed only").sizing())
    nothing = Outcome(Attempt(TASK, 1, {}), Ending.DONE)
    assert "nothing sized" in str(Story([nothing], "").sizing())


def test_a_story_of_one_attempt_takes_less_than_250_bytes() -> None:
    made = outcome(1, Ending.DONE, peak={Kind.MEMORY: 5e8}, wall_s=2.5)
    stories = [Story([made], "one reason for all") for _ in range(3)]
    story = stories[0]
    own = sys.getsizeof(story) + sys.getsizeof(story._record)
    assert own < 250
    assert story._why is stories[1]._why
    assert story._host is stories[1]._host


def test_the_story_is_found_by_the_future_of_the_app_or_of_the_executor() -> None:
    future = SizedFuture(1)
    assert sizing_of(future) is None
    future.story = Story([outcome(1, Ending.DONE)], "why")
    assert sizing_of(future).category == "align"
    app = Future()
    app.task_record = {"exec_fu": future}
    assert sizing_of(app) == sizing_of(future)
    app.task_record = {"exec_fu": None}
    assert sizing_of(app) is None
    assert sizing_of(Future()) is None


def test_futures_are_told_by_their_task() -> None:
    assert SizedFuture(42).parsl_executor_task_id == 42


def test_a_sized_future_can_be_waited_for_in_every_way() -> None:
    futures = [SizedFuture(number) for number in range(3)]
    heard: list[int] = []
    futures[0].add_done_callback(lambda done: heard.append(done.result()))
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(future.result, 60) for future in futures]
        together = pool.submit(wait, futures, 60)
        in_order = pool.submit(lambda: [done.result() for done in as_completed(futures, 60)])
        with pytest.raises(TimeoutError):
            futures[2].result(timeout=0.01)
        for number, future in enumerate(futures):
            assert future.set_running_or_notify_cancel()
            future.set_result(number)
        assert [one.result(60) for one in waiting] == [0, 1, 2]
        assert together.result(60).not_done == set()
        assert sorted(in_order.result(60)) == [0, 1, 2]
    assert heard == [0]


def test_a_sized_future_can_be_cancelled_while_somebody_waits() -> None:
    future = SizedFuture(1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(future.result, 60)
        assert future.cancel()
        with pytest.raises(CancelledError):
            waiting.result(60)
    assert not future.set_running_or_notify_cancel()
