"""Threads of one process: nothing can be measured or stopped, tasks are only admitted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl import python_app
from parsl.executors import ThreadPoolExecutor
from parsl.executors.status_handling import BlockProviderExecutor
from sizer_runs import running, wait_until

from parsl_sizer import Kind, ResourcesExhausted, SizedExecutor, sizing_of
from parsl_sizer.executor.hints import BadHint
from parsl_sizer.model import Ending

LIMIT_S = 100


def sized_threads(**options: object) -> SizedExecutor:
    inner = ThreadPoolExecutor(max_threads=4)
    return SizedExecutor(inner, **{"node": "cores=4,memory=1GB", "report": False, **options})


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedExecutor]:
    made = sized_threads()
    with running(made, tmp_path_factory.mktemp("threads")):
        yield made


def test_a_task_that_raises_resources_exhausted_itself_is_retried(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with running(sized_threads(), tmp_path, retries=1), pytest.raises(ResourcesExhausted):
        tasks.note_and_exhaust(str(notes)).result(LIMIT_S)
    assert len(notes.read_text()) == 2


class Crowd:
    """Counts how many are in here at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = 0
        self.leave = threading.Event()

    def __enter__(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.now -= 1


@python_app
def join_crowd(crowd, leave=None, parsl_resource_specification=None):
    with crowd:
        (leave or crowd.leave).wait(LIMIT_S)
    return crowd.most


@python_app
def the_same(thing):
    return thing


def test_results_and_exceptions_are_as_without_us(executor: SizedExecutor) -> None:
    assert tasks.add(1, 2).result(LIMIT_S) == 3
    thing = object()
    assert the_same(thing).result(LIMIT_S) is thing
    with pytest.raises(ValueError, match="as it should"):
        tasks.fail().result(LIMIT_S)
    with pytest.raises(ValueError, match="outer") as caught:
        tasks.fail_with_cause().result(LIMIT_S)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    "spec",
    [
        {"cores": 4, "memory": 2000, "disk": 500},
        {"memory": "300MB", "running_time_min": 3, "priority": 2},
        {"num_nodes": 1, "ranks_per_node": 2, "memory": None},
        None,
    ],
)
def test_a_specification_that_was_written_for_another_executor_does_no_harm(
    executor: SizedExecutor, spec: dict[str, object] | None
) -> None:
    assert tasks.hold(1, parsl_resource_specification=spec).result(LIMIT_S) == 1


def test_apps_of_all_kinds_work(executor: SizedExecutor, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert tasks.echo(f"hello > {out}").result(LIMIT_S) == 0
    assert out.read_text() == "hello\n"
    assert tasks.joined([1, 2, 3]).result(LIMIT_S) == [2, 4, 6]
    assert [tasks.memoised(9).result(LIMIT_S) for _ in "12"] == [9, 9]


def test_what_cannot_be_packed_need_not_be(executor: SizedExecutor) -> None:
    assert list(tasks.unpicklable().result(LIMIT_S)) == [0, 1, 2]
    assert tasks.length(list(range(3))).result(LIMIT_S) == 3


def test_a_task_that_leaves_the_interpreter_fails_alone(executor: SizedExecutor) -> None:
    for future in (tasks.leave(), tasks.interrupt()):
        assert isinstance(future.exception(LIMIT_S), Exception)
    assert tasks.add(1, 2).result(LIMIT_S) == 3


def test_a_memory_error_is_the_users_where_nothing_was_limited(executor: SizedExecutor) -> None:
    future = tasks.refused_by_python(1)
    with pytest.raises(MemoryError):
        future.result(LIMIT_S)
    assert [attempt.ending for attempt in sizing_of(future).attempts] == [Ending.RAISED]


def test_tasks_that_state_what_they_need_start_when_that_is_free(executor: SizedExecutor) -> None:
    crowd = Crowd()
    spec = {"memory": 400}
    futures = [join_crowd(crowd, parsl_resource_specification=spec) for _ in range(6)]
    wait_until(lambda: crowd.now == 2, "two of 400 MB in 1 GB")
    crowd.leave.set()
    assert {future.result(LIMIT_S) for future in futures} == {2}


def test_tasks_that_state_nothing_have_all_threads(executor: SizedExecutor) -> None:
    crowd = Crowd()
    futures = [join_crowd(crowd) for _ in range(12)]
    wait_until(lambda: crowd.now == 4, "four threads at work")
    crowd.leave.set()
    assert {future.result(LIMIT_S) for future in futures} == {4}


def test_no_task_is_ever_stopped_or_measured(executor: SizedExecutor) -> None:
    future = tasks.hold(300, 0.5, parsl_resource_specification={"memory": 100, "fixed": True})
    assert future.result(LIMIT_S) == 300
    [attempt] = sizing_of(future).attempts
    assert attempt.ending is Ending.DONE
    assert attempt.allocation == {Kind.MEMORY: 1e8}
    assert Kind.MEMORY not in attempt.peak
    assert Kind.DISK not in attempt.peak


def test_isolation_that_threads_cannot_give_is_refused_with_a_sentence(
    executor: SizedExecutor,
) -> None:
    future = tasks.hold(1, parsl_resource_specification={"isolation": "runner"})
    with pytest.raises(BadHint, match="isolation='runner' is not possible with threads"):
        future.result(LIMIT_S)
    with pytest.raises(BadHint, match="isolation='fork' is not possible with threads"):
        sized_threads(isolation="fork")


def test_a_task_that_states_more_than_there_is_runs_alone(executor: SizedExecutor) -> None:
    crowd = Crowd()
    spec = {"memory": "5GB"}
    futures = [join_crowd(crowd, parsl_resource_specification=spec) for _ in range(3)]
    wait_until(lambda: crowd.now == 1, "one at work")
    crowd.leave.set()
    assert {future.result(LIMIT_S) for future in futures} == {1}


def test_parsl_sees_threads_and_no_blocks(executor: SizedExecutor) -> None:
    assert isinstance(executor, ThreadPoolExecutor)
    assert not isinstance(executor, BlockProviderExecutor)
    assert not hasattr(executor, "provider")
    assert executor.monitor_resources() is False
    assert executor.max_threads == 4
