"""Entries as lines of JSON: there and back, and nothing that cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parsl_sizer.archive.base import Entry
from parsl_sizer.archive.lines import LONGEST, BadLine, entry_of, line_of
from parsl_sizer.model import OptOut
from parsl_sizer.testing.archive_laws import entries

VALID = json.loads(line_of(entries(9)[8]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: str(entry.outcome.ended_at))
def test_there_and_back(entry: Entry) -> None:
    line = line_of(entry)
    assert "\n" not in line
    assert entry_of(line) == entry


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"run": None}, "run is not an object"),
        ({"category": ""}, "category is ''"),
        ({"category": "x" * 20_000}, "at most 10,000 letters"),
        ({"ending": "fine"}, "'fine' is none of done"),
        ({"peak": {"memory": -1}}, "memory is -1"),
        ({"peak": {"memory": float("nan")}}, "memory is nan"),
        ({"peak": {"speed": 1}}, "'speed' is none of"),
        ({"wall_s": "long"}, "wall_s is 'long'"),
        ({"wall_s": True}, "wall_s is True"),
        ({"number": 0}, "number is 0"),
        ({"series": [[1]]}, "a pair of numbers"),
        ({"inputs": [1]}, "a list of texts"),
        ({"overran": 1}, "true or false"),
        ({"task": -1}, "task is -1"),
        ({"exhausted": ["time"]}, "'time' is none of"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BadLine) as caught:
        entry_of(json.dumps(VALID | change))
    assert said in str(caught.value)


@pytest.mark.parametrize("line", ["", "[]", "7", "{", "[" * 100_000, '{"a":1}', b"\xff\xfe"])
def test_what_is_no_entry_is_refused(line: str | bytes) -> None:
    with pytest.raises(BadLine):
        entry_of(line)


def test_an_opt_out_that_there_is_no_more_is_left_out() -> None:
    found = entry_of(json.dumps(VALID | {"opt_outs": ["keep_files", "no_retry"]}))
    assert found.outcome.attempt.task.opt_outs == {OptOut.NO_RETRY}


def test_a_line_without_an_end_is_refused() -> None:
    with pytest.raises(BadLine, match="letters"):
        entry_of('{"a": "' + "x" * LONGEST)


@given(st.dictionaries(st.sampled_from([*VALID, "other"]), JSON))
@example({"host": "", "node": ""})
def test_whatever_comes_in_is_an_entry_or_a_clear_fault(change: dict[str, Any]) -> None:
    try:
        entry = entry_of(json.dumps(VALID | change))
    except BadLine:
        return
    assert entry_of(line_of(entry)) == entry
