"""Which calls may be sent with others?"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from parsl_sizer.executor.bundles import LONG, MOMENT_S, PROVEN, Bundler
from parsl_sizer.executor.calls import Call
from parsl_sizer.model import Attempt, OptOut, Resources, TaskInfo

HTEX: Any = SimpleNamespace(sends_together=True)


@pytest.fixture
def bundler() -> Bundler:
    """One that has seen a thousand short calls, but one."""
    made = Bundler(HTEX)
    for _ in range(PROVEN - 1):
        made.took("noop", MOMENT_S / 10)
    return made


def may_join(bundler: Bundler, argument: object = "", *opt_outs: OptOut, number: int = 1) -> bool:
    call = Call(len, (argument,), {}, "inline", {}, "ledger")
    call.pack()
    task = TaskInfo(1, "noop", opt_outs=frozenset(opt_outs))
    return bundler.may_join(call, Attempt(task, number, Resources()))


def test_only_what_was_short_for_long_may(bundler: Bundler) -> None:
    assert not may_join(bundler)
    bundler.took("noop", MOMENT_S / 10)
    assert may_join(bundler)
    assert not may_join(bundler, b"x" * 100_000)
    assert not may_join(bundler, "", OptOut.ALONE)
    assert not may_join(bundler, "", OptOut.NO_RETRY)
    assert not may_join(bundler, number=2)


def test_a_call_that_had_to_wait_for_a_core_does_not_matter(bundler: Bundler) -> None:
    bundler.took("noop", LONG * MOMENT_S)
    assert may_join(bundler)


def test_a_long_one_does(bundler: Bundler) -> None:
    bundler.took("noop", 1.01 * LONG * MOMENT_S)
    for _ in range(PROVEN - 1):
        bundler.took("noop", 0.0)
    assert not may_join(bundler)
    bundler.took("noop", 0.0)
    assert may_join(bundler)


def test_calls_that_become_longer_are_sent_alone_again(bundler: Bundler) -> None:
    for _ in range(PROVEN):
        bundler.took("noop", 2 * MOMENT_S)
    assert not may_join(bundler)
