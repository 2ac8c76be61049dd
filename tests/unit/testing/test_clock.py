from __future__ import annotations

import math

import pytest

from parsl_sizer.testing import ManualClock


def test_time_stands_still_until_it_is_advanced() -> None:
    clock = ManualClock(100.0)
    assert (clock(), clock()) == (100.0, 100.0)
    assert clock.advance(0.5) == clock() == 100.5


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_time_does_not_run_backwards_or_out(seconds: float) -> None:
    with pytest.raises(ValueError, match="time passes by 0 seconds or more"):
        ManualClock().advance(seconds)
