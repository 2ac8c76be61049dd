"""What tasks do wrong, and what becomes of them, their processes and their neighbours."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import sizer_tasks as tasks
from parsl.app.errors import BashExitFailure
from parsl.serialize.errors import SerializationError
from sizer_runs import alive, htex, running, sized, wait_until

from parsl_sizer import Kind, ResourcesExhausted, SizedExecutor, sizing_of
from parsl_sizer.model import Ending

LIMIT_S = 100
SMALL = {"memory": 150, "fixed": True}
DONE, EXHAUSTED, RAISED = Ending.DONE, Ending.EXHAUSTED, Ending.RAISED


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedExecutor]:
    made = sized(htex())
    with running(made, tmp_path_factory.mktemp("faults")):
        yield made


@pytest.fixture(autouse=True)
def goes_on(executor: SizedExecutor) -> Iterator[None]:
    """Whatever a task did, the next one runs."""
    yield
    assert tasks.add(1, 2).result(LIMIT_S) == 3


@pytest.fixture
def seconds() -> float:
    """A time to sleep by which no other test on this machine can be mistaken for this one."""
    return 86_000 + secrets.randbelow(10**9) / 10**6


def endings(future: object) -> list[Ending]:
    return [attempt.ending for attempt in sizing_of(future).attempts]


# Memory


def test_a_breach_stops_the_task_and_neither_its_worker_nor_its_neighbour(
    tmp_path: Path,
) -> None:
    go, never = str(tmp_path / "go"), str(tmp_path / "never")
    begun, also = tmp_path / "begun", tmp_path / "also"
    neighbour = tasks.hold_until(go, 10, str(begun), parsl_resource_specification=SMALL)
    tasks.wait_for(begun)
    greedy = tasks.hold_until(never, 300, str(also), parsl_resource_specification=SMALL)
    tasks.wait_for(also)
    worker = psutil.Process(tasks.pid_of("worker", int(also.read_text())))
    with pytest.raises(ResourcesExhausted):
        greedy.result(LIMIT_S)
    assert worker.is_running()
    assert not neighbour.done()
    Path(go).touch()
    assert neighbour.result(LIMIT_S) == 10
    assert endings(neighbour) == [DONE]


@pytest.mark.parametrize("app", [tasks.refused_by_numpy, tasks.refused_by_python])
def test_a_memory_error_far_from_the_limit_is_the_tasks_own(app: object) -> None:
    future = app(1)
    with pytest.raises(MemoryError):
        future.result(LIMIT_S)
    assert endings(future) == [RAISED]


def test_a_memory_error_near_the_limit_is_tried_again_with_more(executor: SizedExecutor) -> None:
    """It is raised again, and then it is the task's own: half of the node is far away."""
    future = tasks.refused_by_python(300)
    with pytest.raises(MemoryError):
        future.result(LIMIT_S)
    first, *_, last = sizing_of(future).attempts
    assert (first.ending, last.ending) == (EXHAUSTED, RAISED)
    assert first.allocation[Kind.MEMORY] < last.allocation[Kind.MEMORY]


def test_memory_of_a_process_in_another_session_is_charged_to_the_task(seconds: float) -> None:
    future = tasks.grow_in_child(300, seconds, parsl_resource_specification=SMALL)
    with pytest.raises(ResourcesExhausted):
        future.result(LIMIT_S)
    assert not alive(f"time.sleep({seconds})")


def test_a_bash_app_that_holds_too_much_is_stopped_with_all_its_processes(
    seconds: float,
) -> None:
    future = tasks.bash_hold(300, seconds, parsl_resource_specification=SMALL)
    with pytest.raises(ResourcesExhausted):
        future.result(LIMIT_S)
    assert not alive(f"time.sleep({seconds})")


def test_a_bash_app_that_needs_more_gets_it() -> None:
    future = tasks.bash_hold(900, 3)  # a busy machine may not look at it for a second
    assert future.result(LIMIT_S) == 0
    assert endings(future) == [DONE]
    [only] = sizing_of(future).attempts
    assert only.allocation[Kind.MEMORY] > 900e6
    assert "it grew" in only.why


# Disk


def test_a_task_that_fills_the_disk_is_stopped_and_its_files_are_removed(tmp_path: Path) -> None:
    note = tmp_path / "note"
    small = {"disk": 50, "fixed": True}
    future = tasks.fill_disk(150, 60, str(note), parsl_resource_specification=small)
    with pytest.raises(ResourcesExhausted) as caught:
        future.result(LIMIT_S)
    assert caught.value.outcomes[0].exhausted == {Kind.DISK}
    assert not Path(note.read_text()).exists()


def test_temporary_files_are_measured_and_stay_after_success(tmp_path: Path) -> None:
    note = tmp_path / "note"
    future = tasks.fill_disk(20, 0.2, str(note))
    assert future.result(LIMIT_S) == 20
    assert sizing_of(future).attempts[0].peak[Kind.DISK] >= 20e6
    left = Path(note.read_text())
    assert left.stat().st_size == 20e6
    left.unlink()


# Processes


@pytest.mark.parametrize("mode", ["setsid", "double fork"])
def test_a_breach_ends_processes_that_left_the_session(mode: str, seconds: float) -> None:
    with pytest.raises(ResourcesExhausted):
        tasks.escape(seconds, 300, mode, parsl_resource_specification=SMALL).result(LIMIT_S)
    assert not alive(f"sleep {seconds}")


@pytest.mark.parametrize("mode", ["setsid", "double fork"])
def test_what_a_successful_task_leaves_running_is_ended(mode: str, seconds: float) -> None:
    future = tasks.escape(seconds, 0, mode)
    assert future.result(LIMIT_S) == "left one behind"
    assert endings(future) == [DONE]
    wait_until(lambda: not alive(f"sleep {seconds}"), "the end of what was left behind")


# What cannot travel


def test_a_result_that_cannot_be_packed_is_the_tasks_error() -> None:
    future = tasks.unpicklable()
    with pytest.raises(TypeError, match="generator"):
        future.result(LIMIT_S)
    assert endings(future) == [RAISED]


def test_an_exception_that_cannot_be_packed_is_told_as_well_as_possible() -> None:
    with pytest.raises(TypeError, match="not for travelling"):
        tasks.raise_unpicklable().result(LIMIT_S)


def test_a_result_that_cannot_be_unpacked_fails_its_task_alone() -> None:
    with pytest.raises(RuntimeError, match="turned sour"):
        tasks.sour().result(LIMIT_S)


def test_an_argument_that_cannot_be_packed_fails_its_task_at_once() -> None:
    future = tasks.length(number for number in range(3))
    with pytest.raises((TypeError, SerializationError)):
        future.result(LIMIT_S)


def test_an_argument_of_50_mb_arrives() -> None:
    assert tasks.length(b"x" * 50_000_000).result(LIMIT_S) == 50e6


# Ways to end


def test_a_task_that_leaves_the_interpreter_fails_alone() -> None:
    for future, name in ((tasks.leave(), "SystemExit"), (tasks.interrupt(), "KeyboardInterrupt")):
        error = future.exception(LIMIT_S)
        assert isinstance(error, Exception)
        assert name in str(error)
        assert endings(future) == [RAISED]


def test_a_task_that_calls_exit_in_c_is_lost(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    future = tasks.vanish(str(notes))
    with pytest.raises(Exception, match="exit status 5"):
        future.result(LIMIT_S)
    assert len(notes.read_text()) == 3


def test_a_bash_app_that_fails_is_not_tried_again(tmp_path: Path) -> None:
    future = tasks.bash_fail()
    with pytest.raises(BashExitFailure):
        future.result(LIMIT_S)
    assert endings(future) == [RAISED]


# All at once


def test_after_a_storm_of_all_this_nothing_is_held(executor: SizedExecutor, tmp_path: Path) -> None:
    calls = [
        lambda name: tasks.hold(5),
        lambda name: tasks.fail(),
        lambda name: tasks.hold(300, 60, parsl_resource_specification=SMALL),
        lambda name: tasks.noted_kill(str(tmp_path / name), "me", until=1),
        lambda name: tasks.unpicklable(),
        lambda name: tasks.leave(),
        lambda name: tasks.bash_fail(),
        lambda name: tasks.hold(1, parsl_resource_specification={"memory": "nonsense"}),
    ]
    futures = [calls[number % len(calls)](f"{number}") for number in range(5 * len(calls))]
    failed = [future.exception(LIMIT_S) is not None for future in futures]
    assert failed == [False, True, True, False, True, True, True, True] * 5
    driver, ledger = executor._driver, executor._sizer._ledger
    wait_until(lambda: len(driver) == driver.running == len(executor._sizer) == 0, "an end")
    assert driver.held == pytest.approx(0, abs=1)
    assert not ledger._claims
