"""The task server is a forked process: what is made before the fork is only data."""

from __future__ import annotations

import threading
from pathlib import Path

import psutil
import pytest

pytest.importorskip("colmena", reason="Colmena is not installed here")

import colmena_methods as methods
from colmena.queue import PipeQueues
from colmena.task_server import ParslTaskServer
from colmena_runs import campaign
from parsl import Config
from sizer_runs import htex

from parsl_sizer import SizedExecutor


def test_before_the_fork_there_is_no_thread_no_process_and_nothing_open(tmp_path: Path) -> None:
    this = psutil.Process()
    queues = PipeQueues()
    before = (threading.enumerate(), this.num_fds(), this.children(recursive=True))
    executor = SizedExecutor(htex(), archive=tmp_path / "archive.sqlite3")
    config = Config(executors=[executor], run_dir=str(tmp_path / "runinfo"))
    ParslTaskServer([methods.simulate], queues, config)
    assert (threading.enumerate(), this.num_fds(), this.children(recursive=True)) == before
    assert list(tmp_path.iterdir()) == []


def test_the_executor_without_an_argument_works_in_the_task_server(tmp_path: Path) -> None:
    with campaign(SizedExecutor(report=False), [methods.simulate], tmp_path) as made:
        assert made.asked("simulate", 5).value == -25
