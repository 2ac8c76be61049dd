"""The gate: few of a new category go first, the others wait, and nobody waits for ever."""

from __future__ import annotations

import pytest

from parsl_sizer.placement import Gate


def started(canaries: int, tasks: int) -> Gate:
    gate = Gate(canaries, patience_s=100.0)
    for number in range(tasks):
        gate.start("align", now=10.0 + number)
    return gate


def test_so_many_canaries_start_and_no_more() -> None:
    assert not started(3, 2).holds("align", 12.0)
    assert started(3, 3).holds("align", 12.0)


def test_one_that_has_finished_is_not_enough() -> None:
    gate = started(2, 2)
    gate.end("align", finished=True)
    assert gate.holds("align", 20.0)
    gate.end("align", finished=True)
    assert not gate.holds("align", 20.0)


def test_a_canary_that_does_not_finish_is_replaced() -> None:
    gate = started(2, 2)
    gate.end("align", finished=False)
    assert not gate.holds("align", 20.0)
    gate.start("align", 20.0)
    assert gate.holds("align", 20.0)


def test_nobody_waits_longer_than_it_is_patient() -> None:
    gate = started(2, 2)
    assert gate.opens_at == 110.0
    assert gate.holds("align", 109.0)
    assert not gate.holds("align", 110.0)
    gate.end("align", finished=False)  # what ends afterwards changes nothing
    gate.start("align", 120.0)
    assert not gate.holds("align", 120.0)


def test_categories_do_not_wait_for_each_other() -> None:
    gate = started(1, 1)
    assert gate.holds("align", 11.0)
    assert not gate.holds("sort", 11.0)
    gate.start("sort", 50.0)
    assert gate.opens_at == 150.0
    assert not gate.holds("align", 110.0)


def test_nothing_is_held_of_a_category_that_is_known() -> None:
    gate = Gate(1)
    assert gate.is_new("align")
    gate.open("align")
    assert not gate.is_new("align")
    gate.start("align", 0.0)
    gate.start("align", 0.0)
    assert not gate.holds("align", 0.0)


def test_at_least_one_has_to_run() -> None:
    with pytest.raises(ValueError, match="canaries must be 1 or more, not 0"):
        Gate(0)
