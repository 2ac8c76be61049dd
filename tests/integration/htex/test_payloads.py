"""Tasks that arrive serialised, as from Globus Compute's endpoint: they run and are not sized."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sizer_tasks as tasks
from parsl.executors import HighThroughputExecutor
from parsl.executors import ThreadPoolExecutor as ThreadPool
from parsl.jobs.job_status_poller import JobStatusPoller
from parsl.providers import LocalProvider
from parsl.serialize import pack_apply_message
from sizer_queue import Queue
from sizer_runs import htex, nothing_left, running, sized, wait_until

from parsl_sizer import SizedExecutor
from parsl_sizer.model import SizerError

LIMIT_S = 100


def payload(function: Any, *args: Any) -> bytes:
    return bytes(pack_apply_message(function, args, {}))


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[SizedExecutor]:
    """Return an executor without blocks, and scale it as an endpoint does, without `parsl.load`."""
    provider = LocalProvider(init_blocks=0, min_blocks=0, max_blocks=1)
    made = sized(htex(2, provider=provider))
    assert isinstance(made, HighThroughputExecutor)
    made.interchange_launch_cmd = [
        sys.executable, "-m", "parsl.executors.high_throughput.interchange"
    ]  # fmt: skip
    made.launch_cmd = re.sub(
        r"^process_worker_pool\.py",
        f"{sys.executable} -m parsl.executors.high_throughput.process_worker_pool",
        made.launch_cmd,
    )
    made._check_python_mismatch = False
    made.run_dir = str(tmp_path)
    made.provider.script_dir = str(tmp_path)
    poller = JobStatusPoller(strategy="simple", max_idletime=0.5, strategy_period=0.1)
    with nothing_left():
        made.start()
        poller.add_executors([made])
        try:
            yield made
        finally:
            poller.close()
            made.scale_in_facade(1)
            made.shutdown()


def test_a_payload_has_a_block_started_and_comes_back(
    executor: SizedExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "parsl_sizer"):
        futures = [executor.submit_payload({}, payload(abs, -number)) for number in range(5)]
    assert executor.outstanding() == 5
    assert [future.result(LIMIT_S) for future in futures] == list(range(5))
    wait_until(lambda: executor.outstanding() == 0, "no more demand")
    (warning,) = [text for text in caplog.messages if "submit_payload" in text]
    assert "are not sized" in warning


def test_the_future_is_htex_own(executor: SizedExecutor) -> None:
    context = {"task_executor": {"f": "builtins.len"}}
    future = executor.submit_payload(context, b"seven!!")
    assert future.parsl_executor_task_id == executor._task_counter
    assert future.result(LIMIT_S) == 7
    with pytest.raises(ValueError, match="seven"):
        executor.submit_payload({}, payload(int, "seven")).result(LIMIT_S)


def test_what_an_endpoint_sets_reaches_the_inner_executor(executor: SizedExecutor) -> None:
    inner = executor.inner
    assert inner.interchange_proc.args == executor.interchange_launch_cmd
    assert inner.launch_cmd.startswith(sys.executable)  # with its fields filled in
    assert executor.launch_cmd == inner.launch_cmd
    assert inner._check_python_mismatch is executor._check_python_mismatch is False


@pytest.mark.parametrize("observe", [False, True])
def test_sized_tasks_and_payloads_are_counted_once_each(tmp_path: Path, observe: bool) -> None:
    queue = Queue()
    made = sized(htex(16, provider=queue), node="cores=16,memory=16GB", observe=observe)
    with running(made, tmp_path):
        for _ in range(3):
            made.submit_payload({}, payload(abs, -1))
        assert made.outstanding() == 3
        for _ in range(4):
            tasks.hold(1, parsl_resource_specification={"memory": "1GB", "fixed": True})
        wait_until(lambda: made.outstanding() == 7, "demand for 4 tasks and 3 payloads")


def test_payloads_and_tasks_that_many_threads_submit_have_their_own_results(
    tmp_path: Path,
) -> None:
    made = sized(htex(2))
    with running(made, tmp_path):
        sizes = [tasks.hold(number) for number in range(40)]

        def submit(number: int) -> Future[Any]:
            future: Future[Any] = made.submit_payload({}, payload(abs, -number))
            return future

        with ThreadPoolExecutor(8) as threads:
            payloads = list(threads.map(submit, range(200)))
        assert [future.result(LIMIT_S) for future in payloads] == list(range(200))
        assert [future.result(LIMIT_S) for future in sizes] == list(range(40))
        wait_until(lambda: made.outstanding() == 0, "no more demand")


def test_a_payload_is_refused_where_no_block_would_be_requested_for_it(tmp_path: Path) -> None:
    made = sized(htex(2, provider=LocalProvider(init_blocks=0, max_blocks=1)), scaling="per-stage")
    with running(made, tmp_path), pytest.raises(SizerError, match="scaling='parsl'"):
        made.submit_payload({}, payload(abs, -1))


def test_an_executor_that_takes_no_payloads_has_no_such_method() -> None:
    made = SizedExecutor(ThreadPool())
    assert not hasattr(made, "submit_payload")
    assert not hasattr(made, "launch_cmd")
