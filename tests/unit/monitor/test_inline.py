"""Calls in this very process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from parsl.serialize import deserialize, pack_apply_message

from parsl_sizer.monitor import inline, travel
from parsl_sizer.monitor.wire import opened

Run = Callable[..., dict[str, Any]]

MB = 1_000_000


def test_a_call_is_made_here(run: Run) -> None:
    report = run(lambda: (os.getpid(), threading.get_ident()), isolation="inline")
    assert report["result"] == (os.getpid(), threading.get_ident())
    assert report["payload"] is None


def test_results_are_not_copied(run: Run) -> None:
    data = object()
    assert run(lambda: data, isolation="inline")["result"] is data


def test_an_exception_is_the_one_that_was_raised(run: Run) -> None:
    error = ValueError("seven")

    def fail() -> None:
        raise error

    report = run(fail, isolation="inline")
    assert (report["ending"], report["error"]) == ("raised", error)


def test_nothing_is_ever_stopped(run: Run) -> None:
    def hold() -> None:
        data = b"x" * 50 * MB
        time.sleep(0.5)
        assert data

    report = run(hold, isolation="inline", limits={"memory": 1})
    assert report["ending"] == "returned"


def test_packed_calls_can_be_made_here_too(order: Any) -> None:
    given = order("inline")
    report = opened(travel.run_packed(given, pack_apply_message(os.getpid, (), {})))
    assert report["result"] == os.getpid()
    report = opened(travel.run_packed(given, pack_apply_message(int, ("x",), {})))
    assert report["ending"] == "raised"
    assert isinstance(deserialize(report["payload"]).get_exception(), ValueError)
    assert "error" not in report


def test_threads_that_share_a_process_have_cpu_time_but_no_memory(run: Run) -> None:
    def work() -> None:
        began = time.thread_time()
        while time.thread_time() - began < 0.05:
            pass

    def one(_: int) -> dict[str, Any]:
        return run(work, isolation="inline", shared_process=True)

    with ThreadPoolExecutor(4) as pool:
        for report in pool.map(one, range(8)):
            assert "memory" not in report["peak"]
            assert report["cpu_s"] == pytest.approx(0.05, abs=0.02)
            assert report["layers"] == ["thread"]


def test_variables_are_not_set_for_a_process_that_is_shared(run: Run) -> None:
    def look() -> str | None:
        return os.environ.get("SIZER_TEST")

    env = {"SIZER_TEST": "1"}
    report = run(look, isolation="inline", shared_process=True, env=env)
    assert report["result"] is None


def test_a_thread_looks_at_calls_that_last_and_rests(
    run: Run, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "BOREDOM_S", 0.1)
    report = run(time.sleep, 0.5, isolation="inline", series=20)
    assert len(report["series"]) >= 2
    here = inline._here()
    eventually(lambda: not here._wanted.is_set())
    assert run(time.sleep, 0.5, isolation="inline", series=20)["series"]


def test_a_runner_beside_it_is_not_charged(run: Run) -> None:
    run(os.getpid)
    report = run(time.sleep, 0.3, isolation="inline")
    assert report["peak"]["memory"] < 10 * MB
