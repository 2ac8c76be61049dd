"""What users say about apps, read."""

from __future__ import annotations

import functools
import math
import operator
import pickle

import numpy as np
import pytest

from parsl_sizer.executor.hints import (
    ATTRIBUTE,
    NAMES,
    NO_HINTS,
    BadHint,
    hints_of,
    merged,
    read,
    sized,
    with_hints,
)
from parsl_sizer.model import Kind, OptOut


def test_nothing_said_is_no_hint() -> None:
    assert read({}) is NO_HINTS


@pytest.mark.parametrize(
    ("said", "amounts"),
    [
        ({"memory": 500}, {Kind.MEMORY: 5e8}),
        ({"memory": 0.5}, {Kind.MEMORY: 5e5}),
        ({"memory": "500MB"}, {Kind.MEMORY: 5e8}),
        ({"memory": "1.5 GiB"}, {Kind.MEMORY: 1.5 * 2**30}),
        ({"disk": "2GB", "cores": 4}, {Kind.DISK: 2e9, Kind.CORES: 4.0}),
        ({"cores": "4", "gpus": 1}, {Kind.CORES: 4.0, Kind.GPUS: 1.0}),
        ({"cores": np.int64(4), "memory": np.float32(500)}, {Kind.CORES: 4.0, Kind.MEMORY: 5e8}),
        ({"cores": 4, "memory": None, "disk": None}, {Kind.CORES: 4.0}),
    ],
)
def test_amounts_are_mb_or_texts(said: dict[str, object], amounts: dict[Kind, float]) -> None:
    assert read(said).requested == amounts


def test_what_is_none_is_not_said() -> None:
    everything = dict.fromkeys([*NAMES, "priority", "running_time_min"])
    assert read(everything) == NO_HINTS
    assert read(None) is NO_HINTS


def test_everything_that_can_be_said() -> None:
    hints = read(
        {
            "category": "align",
            "memory": "2GB",
            "fixed": True,
            "never_kill": True,
            "no_retry": False,
            "keep_caches": True,
            "clean_files": True,
            "features": {"atoms": 3, "unknown": math.nan},
            "labels": {"sample": "S1"},
            "isolation": "fork",
            "priority": 3,
        }
    )
    assert hints.category == "align"
    left = {OptOut.KEEP_CACHES, OptOut.CLEAN_FILES}
    assert hints.opt_outs == {OptOut.FIXED, OptOut.NEVER_KILL, *left}
    assert hints.features == {"atoms": 3.0}
    assert hints.labels == {"sample": "S1"}
    assert hints.isolation == "fork"
    assert hints.given == {"priority": 3}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"memory": "lots"}, r"^memory='lots' is not an amount; write it like 64GB or 500MB\.$"),
        ({"memory": -5}, r"^memory=-5 is not an amount; give a number of MB"),
        ({"memory": math.nan}, "memory=nan is not an amount"),
        ({"memory": math.inf}, "memory=inf is not an amount"),
        ({"memory": True}, "memory=True is not an amount"),
        ({"cores": [1]}, r"^cores=\[1\] is not an amount; give a number\.$"),
        ({"cores": "1GB"}, r"cores='1GB' is not an amount"),
        ({"fixed": True}, r"^'fixed' gives a task exactly what it states, but no "),
        ({"fixed": 1, "memory": 5}, r"^fixed=1 must be True or False\.$"),
        ({"category": ""}, "category='' must be a text that is not empty"),
        ({"features": {"a": "b"}}, r"The feature 'a': 'b' must be a name and a number"),
        ({"features": {1: 2}}, r"The feature 1: 2 must be a name and a number"),
        ({"features": 5}, "features=5 must be a mapping"),
        (["memory"], r"A specification is a mapping of words to values, not \['memory'\]"),
        ({"labels": 5}, "labels=5 must be a mapping"),
        ({"isolation": "jail"}, "isolation='jail' must be one of runner, fork, inline"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_a_sentence(
    said: dict[str, object], told: str
) -> None:
    with pytest.raises(BadHint, match=told):
        read(said)


def test_a_call_speaks_before_its_app() -> None:
    app = read({"category": "a", "memory": 100, "cores": 2, "no_retry": True, "isolation": "fork"})
    call = read({"category": "b", "memory": 200, "features": {"n": 1}, "isolation": "inline"})
    both = merged(app, call)
    assert both.category == "b"
    assert both.requested == {Kind.MEMORY: 2e8, Kind.CORES: 2.0}
    assert both.opt_outs == {OptOut.NO_RETRY}
    assert both.features == {"n": 1.0}
    assert both.isolation == "inline"
    assert merged(app, NO_HINTS) is app
    assert merged(NO_HINTS, call) is call


def test_the_decorator_leaves_the_function_and_survives_wrapping() -> None:
    @sized(category="align", memory="1GB")
    def align(x: int) -> int:
        return x

    @functools.wraps(align)
    def wrapper(x: int) -> int:
        return align(x)

    assert align(3) == 3
    assert getattr(wrapper, ATTRIBUTE).category == "align"


def test_the_decorator_takes_no_word_that_it_does_not_know() -> None:
    with pytest.raises(BadHint, match=r"'memroy' is no hint; there are cores, memory"):
        sized(memroy=3)


def test_a_function_with_hints_does_the_same_and_can_be_pickled() -> None:
    hinted = with_hints(operator.add, category="sum", memory="1GB")
    assert hinted(1, 2) == 3
    assert hinted.__name__ == "add"
    again = pickle.loads(pickle.dumps(hinted))
    assert again(1, 2) == 3
    assert hints_of(again) == hints_of(hinted) == read({"category": "sum", "memory": "1GB"})


def test_hints_add_up_and_are_found_under_partials() -> None:
    @sized(category="first", memory="1GB")
    def function() -> None: ...

    hinted = functools.partial(with_hints(with_hints(function, cores=2), category="second"))
    said = read({"category": "second", "memory": "1GB", "cores": 2})
    assert hints_of(hinted) == said
    assert hints_of(function) == read({"category": "first", "memory": "1GB"})


def test_hints_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadHint, match="'memroy' is no hint"):
        with_hints(len, memroy=3)
    with pytest.raises(BadHint, match="with_hints is given 3, which cannot be called"):
        with_hints(3)
