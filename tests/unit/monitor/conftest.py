"""What the tests of the monitor share: orders, and waiting for what happens in other processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from parsl.serialize import deserialize, pack_apply_message

from parsl_sizer.monitor import inline, probe, report, travel, wire
from parsl_sizer.monitor.keeper import is_tracker

CODEC = (
    "parsl.serialize:unpack_apply_message",
    "parsl.serialize:serialize",
    "parsl.app.errors:RemoteExceptionWrapper",
)


def make_order(isolation: str = "runner", **more: Any) -> dict[str, Any]:
    """An order with everything that an executor puts into it."""
    return {
        "limits": {},
        "enforce": True,
        "isolation": isolation,
        "keep_caches": False,
        "sandbox": "tmp",
        "env": {},
        "codec": CODEC,
        "claim": None,
        "series": 0,
        **more,
    }


def run_call(
    func: Callable[..., Any], *args: Any, isolation: str = "runner", **more: Any
) -> dict[str, Any]:
    """Run a call as an executor would have it run, and unpack what it gave back."""
    order = make_order(isolation, **more)
    if isolation == "runner":
        report = wire.opened(travel.run_packed(order, pack_apply_message(func, args, {})))
    else:
        report = travel.wrapped(func)(order, *args)
    if report["payload"] is not None:
        unpacked = deserialize(report["payload"])
        if report["ending"] == "raised":
            report["error"] = unpacked.get_exception()
        else:
            report["result"] = unpacked
    return report


def wait_until(condition: Callable[[], Any], within_s: float = 30.0) -> Any:
    """What `condition` gives as soon as it is true of other processes."""
    until = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < until, f"not so within {within_s} s"
        time.sleep(0.01)
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """After each test the runners end, and all that came out of them.

    What calls in this process use is compared with how this process begins the test.
    """
    before = set(probe.descendants(os.getpid()))
    inline._known = None
    report._place.cache_clear()
    yield
    for name in [name for name in sys.modules if name.endswith(".supervisor")]:
        sys.modules[name].close()  # also those of a monitor that has travelled
    left = set(probe.descendants(os.getpid())) - before
    wait_until(lambda: not any(probe.is_alive(pid) and not is_tracker(pid) for pid in left))


@pytest.fixture
def order() -> Callable[..., dict[str, Any]]:
    return make_order


@pytest.fixture
def run() -> Callable[..., dict[str, Any]]:
    return run_call


@pytest.fixture
def eventually() -> Callable[..., Any]:
    return wait_until


@pytest.fixture(params=["runner", "fork", "inline"])
def isolation(request: pytest.FixtureRequest) -> str:
    """Each of the three modes."""
    mode: str = request.param
    return mode


@pytest.fixture(params=["runner", "fork"])
def supervised(request: pytest.FixtureRequest) -> str:
    """Each of the modes in which a call has a process of its own."""
    mode: str = request.param
    return mode
