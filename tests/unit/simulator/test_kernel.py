"""A clock that only goes forward."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.simulator.kernel import Kernel


@given(st.lists(st.floats(0, 1e9)))
def test_happenings_come_in_order_of_time_then_of_planning(times: list[float]) -> None:
    kernel: Kernel[tuple[float, int]] = Kernel()
    planned = [(time, number) for number, time in enumerate(times)]
    for happening in planned:
        kernel.at(happening[0], happening)
    seen = []
    for happening in kernel:
        assert kernel.now == happening[0]
        seen.append(happening)
    assert seen == sorted(planned)


def test_what_is_planned_on_the_way_happens_too() -> None:
    kernel: Kernel[int] = Kernel()
    kernel.at(0.0, 3)
    seen = []
    for left in kernel:
        seen.append((kernel.now, left))
        if left:
            kernel.at(kernel.now + left, left - 1)
    assert seen == [(0.0, 3), (3.0, 2), (5.0, 1), (6.0, 0)]


def test_happenings_of_one_time_need_not_compare() -> None:
    kernel: Kernel[object] = Kernel()
    things = [object(), {}, None]
    for thing in things:
        kernel.at(1.0, thing)
    assert list(kernel) == things


@pytest.mark.parametrize("time", [-1.0, math.nan, math.inf])
def test_the_past_and_what_is_no_time_cannot_be_planned(time: float) -> None:
    with pytest.raises(ValueError, match="Nothing can be planned"):
        Kernel[str]().at(time, "too late")
