"""TaskVine's dialect, without TaskVine: only its executor needs the binding."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from parsl.executors.taskvine.errors import TaskVineManagerFailure, TaskVineTaskFailure

from parsl_sizer.engines import CannotWrap
from parsl_sizer.engines.taskvine import TaskVine
from parsl_sizer.model import Ending, Kind, Resources

LISTENS = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()
"""

NODE = Resources(cores=16, memory=12e9, disk=48e9)


def engine(*, mode: str = "regular", port: int = 9123, autolabel: bool = False) -> TaskVine:
    config = SimpleNamespace(port=port, project_password_file=None, autolabel=autolabel)
    inner = SimpleNamespace(
        function_exec_mode=mode, manager_config=config, tasks={}, _submit_process=None
    )
    return TaskVine(inner)


def test_an_allocation_is_asked_for_in_whole_cores_and_mb() -> None:
    allocation = {Kind.CORES: 2.0, Kind.MEMORY: 1000.2e6, Kind.DISK: 10e6}
    specification = engine().specification(allocation, {"priority": 1}, NODE)
    assert specification == {"cores": 2, "memory": 1001, "disk": 10, "priority": 1}


def test_what_nobody_sizes_is_asked_for_so_that_it_never_binds() -> None:
    specification = engine().specification({Kind.MEMORY: 5e9}, {}, NODE)
    assert specification == {"cores": 6, "memory": 5000, "disk": 20000}


def test_what_nobody_sizes_is_left_out_while_no_worker_is_known() -> None:
    assert engine().specification({Kind.MEMORY: 5e9}, {}, None) == {"memory": 5000}


def test_only_a_process_per_task_can_be_measured() -> None:
    with pytest.raises(CannotWrap, match="function_exec_mode='serverless'"):
        engine(mode="serverless")
    with pytest.raises(CannotWrap, match="exec_mode='serverless' in a specification"):
        engine().specification({Kind.MEMORY: 5e9}, {"exec_mode": "serverless"}, NODE)
    given = {"exec_mode": "regular"}
    assert engine().specification({}, given, NODE) == given


@pytest.mark.parametrize(
    ("text", "ending", "kinds"),
    [
        ("unable to process TaskVine system failure", Ending.LOST, set()),
        ("The result file was not transfered from the worker.\n", Ending.LOST, set()),
        ("task used more resources than requested", Ending.EXHAUSTED, {Kind.DISK}),
    ],
)
def test_its_reasons_are_understood(text, ending, kinds) -> None:
    verdict = engine().verdict(TaskVineTaskFailure(f"taskvine result: {text}", None))  # type: ignore[arg-type]
    assert verdict == (ending, kinds, False)


def test_with_autolabel_a_task_is_stopped_for_memory_as_a_rule() -> None:
    error: Any = TaskVineTaskFailure("task used more resources than requested", 0)
    verdict = engine(autolabel=True).verdict(error)
    assert verdict is not None
    assert verdict.exhausted == {Kind.MEMORY}


def test_other_errors_say_nothing_special() -> None:
    error = TaskVineManagerFailure("taskvine executor failed to execute the task.")
    assert engine().verdict(error) is None


def test_a_port_that_the_manager_chose_is_found() -> None:
    made = engine(port=0)
    assert made._port() is None
    with subprocess.Popen(
        [sys.executable, "-S", "-c", LISTENS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as manager:
        assert manager.stdout is not None
        port = int(manager.stdout.readline())
        made.inner._submit_process = SimpleNamespace(pid=manager.pid)
        assert made._port() == port
    made.inner._submit_process = SimpleNamespace(pid=2**22 + 1)
    assert made._port() is None


def test_workers_of_taskvine_are_nodes_too() -> None:
    made = engine()
    worker = {"hostname": "host", "addrport": "10.0.0.1:42", "cores_total": 4}
    node = made._node({**worker, "memory_total": 4000, "disk_total": 5000})
    assert node.name == "host 10.0.0.1:42"
    assert node.capacity == Resources(cores=4, memory=4e9, disk=5e9)
