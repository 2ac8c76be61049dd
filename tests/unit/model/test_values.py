"""What a task is, how it is tried and how it ended."""

from __future__ import annotations

import copy
import pickle

import pytest

from parsl_sizer.model import Attempt, Ending, Kind, Node, Outcome, Resources, TaskInfo, Usage


@pytest.fixture
def outcome() -> Outcome:
    task = TaskInfo("a1", "align", features={"input_size": 1e9}, requested={Kind.MEMORY: 2e9})
    attempt = Attempt(task, 1, {Kind.MEMORY: 2e9}, node="n1", why="a guess")
    return Outcome(attempt, Ending.DONE, ended_at=3.0, usage=Usage({Kind.MEMORY: 1e9}, 2.0))


def test_an_outcome_comes_back_from_pickling_equal(outcome: Outcome) -> None:
    assert pickle.loads(pickle.dumps(outcome)) == outcome


def test_what_was_not_measured_is_absent_and_not_zero() -> None:
    usage = Usage()
    assert dict(usage.peak) == {}
    assert usage.cpu_s is None


def test_what_values_made_without_arguments_share_cannot_be_changed() -> None:
    for shared in (Usage().peak, TaskInfo(1, "a").features, TaskInfo(1, "a").labels):
        for change in (
            lambda found: found.update(a=1),
            lambda found: found.setdefault("a", 1),
            lambda found: found.__setitem__("a", 1),
            lambda found: found.__ior__({"a": 1}),
        ):
            with pytest.raises(TypeError, match="cannot be changed"):
                change(shared)
        assert shared == {}
        assert pickle.loads(pickle.dumps(shared)) is shared
        assert copy.deepcopy(shared) is shared


def test_values_cannot_be_changed(outcome: Outcome) -> None:
    for value, name in (
        (outcome, "ending"),
        (outcome.usage, "wall_s"),
        (outcome.attempt, "number"),
        (outcome.attempt.task, "category"),
        (Node("n1", Resources()), "name"),
    ):
        with pytest.raises(AttributeError):
            setattr(value, name, None)


def test_endings_are_words() -> None:
    assert [ending.value for ending in Ending] == ["done", "raised", "exhausted", "lost"]
