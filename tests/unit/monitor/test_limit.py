"""A limit is broken by what lasts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.monitor.limit import LASTING_S, Limit


@given(
    st.lists(st.floats(0.005, 0.05), min_size=30, max_size=60),
    st.floats(0.0, 0.5),
)
def test_what_lasts_0_2_s_longer_than_a_pause_is_always_stopped(
    pauses: list[float], begins: float
) -> None:
    limit, now = Limit(100.0), 0.0
    for pause in pauses:
        now += pause
        is_above = begins <= now
        if limit.is_broken_by(120.0 if is_above else 80.0, now):
            assert now - begins >= LASTING_S - max(pauses)
            return
    assert now < begins + LASTING_S + max(pauses)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.001, 10)), max_size=50))
def test_what_stays_within_its_limit_is_never_stopped(samples: list[tuple[float, float]]) -> None:
    limit, now = Limit(100.0), 0.0
    for use, pause in samples:
        now += pause
        assert not limit.is_broken_by(use, now)


def test_a_supervisor_that_slept_looks_again() -> None:
    limit = Limit(100.0)
    assert not limit.is_broken_by(50.0, 1.0)
    assert not limit.is_broken_by(150.0, 9.0)
    assert limit.is_broken_by(150.0, 9.15)


@pytest.mark.parametrize("between", [100.0, 0.0])
def test_one_sample_within_the_limit_forgives(between: float) -> None:
    limit = Limit(100.0)
    for now in (0.05, 0.1, 0.15):
        assert not limit.is_broken_by(150.0, now)
    assert not limit.is_broken_by(between, 0.19)
    assert not limit.is_broken_by(150.0, 0.3)
