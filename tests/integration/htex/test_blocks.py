"""Blocks: asked for by size, in both directions; and those that never come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sizer_tasks as tasks
from parsl.executors.errors import BadStateException
from parsl.jobs.errors import TooManyJobFailuresError
from parsl.jobs.states import JobState
from parsl.providers import LocalProvider
from parsl.providers.base import ExecutionProvider
from sizer_queue import Queue
from sizer_runs import htex, running, sized, wait_until

from parsl_sizer import sizing_of

LIMIT_S = 100


@pytest.fixture
def queue() -> Queue:
    return Queue()


def on(provider: ExecutionProvider, **options: Any) -> Any:
    inner = htex(16, provider=provider)
    return sized(inner, **{"node": "cores=16,memory=16GB", "kinds": ["cores", "memory"], **options})


@pytest.mark.parametrize(
    ("count", "memory", "blocks"), [(10, "1GB", 1), (33, "1GB", 3), (5, "12GB", 5)]
)
def test_blocks_are_asked_for_by_size_not_by_number(
    tmp_path: Path, queue: Queue, count: int, memory: str, blocks: int
) -> None:
    made = on(queue)
    with running(made, tmp_path, strategy="simple"):
        spec = {"memory": memory, "cores": 1, "fixed": True}
        for _ in range(count):
            tasks.hold(1, parsl_resource_specification=spec)
        wait_until(lambda: queue.active >= blocks, f"{blocks} blocks")
        wait_until(lambda: len(made._driver) == count, "all tasks with the driver")
        polls = made.inner._last_poll_time
        wait_until(lambda: made.inner._last_poll_time > polls, "another look at the demand")
        assert queue.active == blocks
        assert made.outstanding() <= 16 * blocks


def states(executor: Any) -> set[JobState]:
    return {status.state for status in executor.status_facade.values()}


def test_a_block_is_asked_for_while_tasks_are_held_and_given_back_when_they_are_over(
    tmp_path: Path,
) -> None:
    provider = LocalProvider(init_blocks=0, min_blocks=0, max_blocks=1)
    made = sized(htex(2, provider=provider), node="cores=2,memory=1GB")
    with running(made, tmp_path, strategy="simple", max_idletime=0.5):
        assert made.outstanding() == 0
        whole = {"memory": "1GB", "fixed": True}
        futures = [tasks.hold(1, 0.1, parsl_resource_specification=whole) for _ in range(3)]
        assert [future.result(LIMIT_S) for future in futures] == [1, 1, 1]
        wait_until(lambda: states(made) == {JobState.SCALED_IN}, "the end of the idle block")
        assert made.outstanding() == 0
        assert tasks.hold(1).result(LIMIT_S) == 1  # and there is one again


def test_a_block_that_is_starting_is_not_taken_for_idle(tmp_path: Path, queue: Queue) -> None:
    """Parsl asks HTEX to give 0 blocks back, and HTEX takes that for all that are idle."""
    made = on(queue)
    with running(made, tmp_path, strategy="htex_auto_scale", max_idletime=0.1):
        tasks.hold(1)
        wait_until(lambda: queue.active == 1, "a block that waits")
        polls = made.inner._last_poll_time
        wait_until(lambda: made.inner._last_poll_time > polls, "another look at the demand")
        wait_until(lambda: queue.active == 1, "a block that waits")
        assert len(queue.jobs) == 1


@pytest.mark.parametrize("node", ["cores=16,memory=16GB", None])
def test_a_queue_that_takes_no_blocks_fails_every_task(tmp_path: Path, node: str | None) -> None:
    queue = Queue(refuses=True, init_blocks=1)
    with running(on(queue, node=node), tmp_path, strategy="simple"):
        futures = [tasks.hold(1) for _ in range(5)]
        for future in futures:
            with pytest.raises((BadStateException, TooManyJobFailuresError)):
                future.result(LIMIT_S)


def test_blocks_that_never_start_leave_tasks_waiting_and_nothing_pending_in_the_end(
    tmp_path: Path, queue: Queue
) -> None:
    made = on(queue)
    with running(made, tmp_path, strategy="simple") as dfk:
        futures = [tasks.hold(1) for _ in range(5)]
        wait_until(lambda: queue.active, "a block that waits")
        assert not any(future.done() for future in futures)
        dfk.cleanup()
        for future in futures:
            assert "shut down" in str(future.exception(LIMIT_S))
            assert sizing_of(future) is None


def test_a_local_engine_whose_block_fails_fails_what_is_launched_and_what_is_held(
    tmp_path: Path,
) -> None:
    class Refuses(LocalProvider):
        def submit(self, *args: Any, **kwargs: Any) -> object:
            raise RuntimeError("no processes today")

    made = sized(htex(2, provider=Refuses(init_blocks=1, max_blocks=1)), node="cores=2,memory=1GB")
    whole = {"memory": "1GB", "fixed": True}
    with running(made, tmp_path):
        futures = [tasks.hold(1, parsl_resource_specification=whole) for _ in range(5)]
        for future in futures:
            with pytest.raises((BadStateException, TooManyJobFailuresError)):
                future.result(LIMIT_S)
