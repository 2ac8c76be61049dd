from __future__ import annotations

import pickle

import pytest

from parsl_sizer.model import (
    Attempt,
    Ending,
    Kind,
    OptOut,
    Outcome,
    ResourcesExhausted,
    SizerError,
    TaskInfo,
    TraceError,
    UnknownStrategy,
    Usage,
)


def exhausted(
    number: int, allocation: dict[Kind, float], peak: dict[Kind, float], *kinds: Kind
) -> Outcome:
    attempt = Attempt(TaskInfo(7, "align"), number, allocation)
    return Outcome(
        attempt, Ending.EXHAUSTED, usage=Usage(peak, wall_s=1.0), exhausted=frozenset(kinds)
    )


@pytest.fixture
def error() -> ResourcesExhausted:
    outcomes = [
        exhausted(1, {Kind.MEMORY: 2e9}, {Kind.MEMORY: 2.1e9}, Kind.MEMORY),
        exhausted(2, {Kind.MEMORY: 64e9, Kind.DISK: 1e9}, {}, Kind.MEMORY, Kind.DISK),
    ]
    return ResourcesExhausted(7, "align", outcomes)


def test_the_message_names_every_attempt_its_allocation_and_its_peak(
    error: ResourcesExhausted,
) -> None:
    assert str(error) == (
        "Task 7 (align) ran out of disk and memory in the largest allocation that any node has: "
        "attempt 1: memory 2 GB, used 2.1 GB; attempt 2: disk 1 GB, memory 64 GB. "
        "Give it a larger node, or split its work."
    )


def test_the_error_comes_back_from_pickling_whole(error: ResourcesExhausted) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is ResourcesExhausted
    assert (back.task_id, back.category, back.outcomes) == (7, "align", error.outcomes)
    assert str(back) == str(error)


def test_the_error_can_be_told_when_nothing_was_controlled() -> None:
    error = ResourcesExhausted(7, "align", [exhausted(1, {}, {Kind.MEMORY: 2e9}, Kind.MEMORY)])
    assert "attempt 1: memory" in str(error)


def test_every_error_on_purpose_is_a_sizer_error() -> None:
    for kind in (ResourcesExhausted, TraceError, UnknownStrategy):
        assert issubclass(kind, SizerError)
    for kind in (TraceError, UnknownStrategy):
        assert issubclass(kind, ValueError)


@pytest.mark.parametrize(
    ("held", "advice"),
    [
        (8e9, "State more, or leave 'fixed' out."),
        (4e9, "Give it a larger node, or split its work."),
    ],
)
def test_who_stated_more_than_a_node_has_is_not_told_to_state_more(
    held: float, advice: str
) -> None:
    requested = {Kind.MEMORY: 8e9}
    task = TaskInfo(7, "align", requested=requested, opt_outs=frozenset({OptOut.FIXED}))
    outcome = exhausted(1, {Kind.MEMORY: held}, {Kind.MEMORY: 9e9}, Kind.MEMORY)
    outcome = outcome._replace(attempt=outcome.attempt._replace(task=task))
    assert str(ResourcesExhausted(7, "align", [outcome])).endswith(advice)
