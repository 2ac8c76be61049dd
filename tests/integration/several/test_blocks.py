"""Blocks of several groups: each is asked for those that its share of the tasks fills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sizer_tasks as tasks
from parsl.jobs.states import JobState
from parsl.providers import LocalProvider
from sizer_groups import member, two_groups
from sizer_queue import Queue
from sizer_runs import htex, running, wait_until

from parsl_sizer import SizedExecutor

LIMIT_S = 100
SMALL, LARGE = {"max_blocks": 2}, {"max_blocks": 3}


def queued(small: Queue, large: Queue, **options: Any) -> SizedExecutor:
    """Groups that wait for nodes with 16 and with 4 GB."""
    inner = [htex(16, label="large", provider=large), htex(4, label="small", provider=small)]
    node = {"large": "cores=16,memory=16GB", "small": "cores=4,memory=4GB"}
    return two_groups(inner=inner, node=node, kinds=["cores", "memory"], **options)


def polled(made: SizedExecutor) -> None:
    """Blocks have been looked after once more in both groups."""
    for label in ("large", "small"):
        inner = member(made, label)
        last = inner._last_poll_time
        wait_until(lambda inner=inner, last=last: inner._last_poll_time > last, "another look")


@pytest.mark.parametrize(
    ("count", "memory", "small", "large"),
    [(3, "1GB", 1, 0), (8, "1GB", 2, 0), (12, "1GB", 2, 1), (2, "12GB", 0, 2), (9, "12GB", 0, 3)],
)
def test_blocks_are_of_the_smallest_nodes_that_do_until_there_are_no_more(
    tmp_path: Path, count: int, memory: str, small: int, large: int
) -> None:
    queues = Queue(**SMALL), Queue(**LARGE)
    made = queued(*queues)
    with running(made, tmp_path, strategy="simple"):
        spec = {"memory": memory, "cores": 1, "fixed": True}
        for _ in range(count):
            tasks.hold(1, parsl_resource_specification=spec)
        wait_until(lambda: len(made._driver) == count, "all tasks with the driver")
        wait_until(lambda: [queue.active for queue in queues] == [small, large], "blocks")
        polled(made)
        assert [queue.active for queue in queues] == [small, large]


def test_first_blocks_are_asked_for_and_all_are_given_back(tmp_path: Path) -> None:
    queues = Queue(init_blocks=1, **SMALL), Queue(init_blocks=2, **LARGE)
    with running(queued(*queues), tmp_path):
        wait_until(lambda: [queue.active for queue in queues] == [1, 2], "the first blocks")
    assert [queue.active for queue in queues] == [0, 0]


def test_a_group_without_nodes_gets_one_for_what_fits_nowhere_else(tmp_path: Path) -> None:
    elastic = LocalProvider(init_blocks=0, min_blocks=0, max_blocks=1)
    made = two_groups(inner=[htex(2, label="big", provider=elastic), htex(2, label="standard")])
    with running(made, tmp_path, strategy="simple", max_idletime=0.5):
        assert tasks.hold(1).result(LIMIT_S) == 1
        assert not member(made, "big").status_facade  # for that there was room elsewhere
        spec = {"memory": "2GB", "fixed": True}
        assert tasks.hold(1, parsl_resource_specification=spec).result(LIMIT_S) == 1
        big = member(made, "big")
        wait_until(
            lambda: {one.state for one in big.status_facade.values()} == {JobState.SCALED_IN},
            "the end of the idle block",
        )
