"""The end of a run on threads: what runs may end, what waits fails."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl import python_app
from parsl.executors import ThreadPoolExecutor
from sizer_runs import running

from parsl_sizer import SizedExecutor, sizing_of
from parsl_sizer.executor.driver import ShutDown

LIMIT_S = 100


@python_app
def wait(begun, leave, parsl_resource_specification=None):
    begun.set()
    leave.wait(LIMIT_S)
    return "left"


def sized_threads(**options: object) -> SizedExecutor:
    inner = ThreadPoolExecutor(max_threads=2)
    return SizedExecutor(inner, **{"node": "cores=2,memory=1GB", "report": False, **options})


def test_what_runs_comes_back_and_what_is_held_fails(tmp_path: Path) -> None:
    begun, leave = threading.Event(), threading.Event()
    whole = {"memory": "1GB"}
    with running(sized_threads(), tmp_path) as dfk:
        runs = wait(begun, leave, parsl_resource_specification=whole)
        begun.wait(LIMIT_S)
        held = [wait(begun, leave, parsl_resource_specification=whole) for _ in range(5)]
        after = tasks.add(runs, "!")
        end = threading.Thread(target=dfk.cleanup)
        end.start()
        for future in held:
            with pytest.raises(ShutDown, match="shut down before"):
                future.result(LIMIT_S)
        leave.set()
        end.join(LIMIT_S)
        assert not end.is_alive()
        assert runs.result(LIMIT_S) == "left"
        assert after.exception(LIMIT_S) is not None
        assert "done" in str(sizing_of(runs))


def test_switched_off_everything_passes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARSL_SIZER", "off")
    with running(sized_threads(), tmp_path):
        future = tasks.hold(1, parsl_resource_specification={"memory": 100, "category": "x"})
        assert future.result(LIMIT_S) == 1
        assert sizing_of(future) is None


def test_a_report_of_what_threads_did_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(sized_threads(report=True), tmp_path):
        tasks.add(1, 2).result(LIMIT_S)
    assert "add" in capsys.readouterr().err
