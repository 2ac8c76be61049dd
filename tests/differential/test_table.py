"""The table of cases is sound, and the page of differences says what is in it."""

from __future__ import annotations

from collections import Counter

import pytest
from diff_case import HTEX, THREADS, WORK_QUEUE, Case
from diff_page import COMMAND, PAGE, page
from diff_table import CASES, cases


def test_the_page_of_differences_is_up_to_date() -> None:
    is_same = PAGE.read_text(encoding="utf-8") == page()
    assert is_same, f"{PAGE.name} is not what the table says: run `{COMMAND}`"


def test_no_two_cases_have_the_same_name() -> None:
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_a_case_that_is_not_the_same_says_what_is_expected(case: Case) -> None:
    if case.kind == "same":
        assert (case.title, case.expected, dict(case.hints), case.option) == ("", None, {}, "")
    else:
        assert case.expected is not None
        assert bool(case.hints) == (case.kind == "different")
        assert bool(case.title) == bool(case.plain) == bool(case.ours)
        assert case.option or case.kind == "better"


@pytest.mark.parametrize(("engine", "least"), [(HTEX, 80), (WORK_QUEUE, 25), (THREADS, 15)])
def test_each_engine_has_enough_cases(engine: str, least: int) -> None:
    assert len(cases(engine)) >= least
