"""Workers and runners that die: the same size again, no lesson, and an end to it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import sizer_tasks as tasks
from parsl.executors.high_throughput.errors import WorkerLost
from sizer_runs import htex, running, sized

from parsl_sizer import Kind, SizedExecutor, sizing_of
from parsl_sizer.executor.ending import TaskLost
from parsl_sizer.model import Ending

LIMIT_S = 100
DONE, LOST = Ending.DONE, Ending.LOST


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedExecutor]:
    made = sized(htex())
    with running(made, tmp_path_factory.mktemp("losses")):
        yield made


@pytest.mark.parametrize("whom", ["me", "worker"])
def test_a_task_that_is_lost_once_runs_again_at_the_same_size(
    executor: SizedExecutor, tmp_path: Path, whom: str
) -> None:
    future = tasks.noted_kill(str(tmp_path / "notes"), whom, until=1)
    assert future.result(LIMIT_S) == "survived"
    first, second = sizing_of(future).attempts
    assert (first.ending, second.ending) == (LOST, DONE)
    assert second.allocation == first.allocation
    assert second.why == "lost; the same again"


@pytest.mark.parametrize("whom", ["me", "worker"])
def test_a_task_that_is_always_lost_ends_after_lost_retries_with_the_engines_error(
    executor: SizedExecutor, tmp_path: Path, whom: str
) -> None:
    notes = tmp_path / "notes"
    future = tasks.noted_kill(str(notes), whom)
    with pytest.raises(TaskLost if whom == "me" else WorkerLost):
        future.result(LIMIT_S)
    assert len(notes.read_text()) == 3  # once, and lost_retries=2
    attempts = sizing_of(future).attempts
    assert [attempt.ending for attempt in attempts] == [LOST, LOST, LOST]
    sizes = [attempt.allocation[Kind.MEMORY] for attempt in attempts]
    assert sizes[0] == sizes[1] < sizes[2]  # it may be out of memory, and nobody saw it


def test_losses_teach_nothing(executor: SizedExecutor, tmp_path: Path) -> None:
    spec = {"category": "unlucky"}
    begun = tmp_path / "begun"
    future = tasks.hold_until(
        str(tmp_path / "go"), 300, str(begun), parsl_resource_specification=spec
    )
    tasks.wait_for(begun)
    os.kill(int(begun.read_text()), signal.SIGKILL)
    begun.unlink()
    tasks.wait_for(begun)
    other = tasks.hold(1, parsl_resource_specification=spec)
    other.result(LIMIT_S)
    (tmp_path / "go").touch()
    assert future.result(LIMIT_S) == 300
    assert sizing_of(other).attempts[0].why == sizing_of(future).attempts[0].why
    assert "a first guess" in sizing_of(other).attempts[0].why


def test_a_runner_killed_from_outside_is_a_loss_and_its_worker_lives_on(
    executor: SizedExecutor, tmp_path: Path
) -> None:
    """The kernel's out-of-memory killer does just that, and outside a cgroup tells nobody."""
    begun = tmp_path / "begun"
    future = tasks.hold_until(str(tmp_path / "go"), 10, str(begun))
    tasks.wait_for(begun)
    runner = int(begun.read_text())
    worker = tasks.pid_of("worker", runner)
    begun.unlink()
    os.kill(runner, signal.SIGKILL)
    tasks.wait_for(begun)
    assert psutil.pid_exists(worker)
    (tmp_path / "go").touch()
    assert future.result(LIMIT_S) == 10
    assert [attempt.ending for attempt in sizing_of(future).attempts] == [LOST, DONE]


def test_a_bash_app_killed_from_outside_is_lost_not_too_large(
    executor: SizedExecutor, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    future = tasks.bash_killed(str(notes))
    with pytest.raises(Exception, match="exit code -9"):
        future.result(LIMIT_S)
    assert len(notes.read_text().split()) == 3
    assert {attempt.ending for attempt in sizing_of(future).attempts} == {LOST}
