"""A group that dies hands its tasks on: none is lost, nothing hangs, nothing is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sizer_tasks as tasks
from parsl.executors.errors import BadStateException
from parsl.providers import LocalProvider
from sizer_groups import kill_managers, member, nodes_of, two_groups
from sizer_runs import htex, running, wait_until

from parsl_sizer import SizedExecutor, sizing_of
from parsl_sizer.model import Ending

LIMIT_S = 100
DONE, LOST = Ending.DONE, Ending.LOST
LARGE = {"memory": "700MB", "fixed": True}
"""One fits on the small node, five on the large one, of which it has workers for two."""


def kill_interchange(executor: SizedExecutor, label: str) -> None:
    member(executor, label).interchange_proc.kill()


def fill(folder: Path, count: int) -> list[Any]:
    """Tasks that run until there is a file: three of them at once, in both groups."""
    begun = [folder / f"begun{number}" for number in range(count)]
    futures = [
        tasks.hold_until(str(folder / "go"), 1, str(path), parsl_resource_specification=LARGE)
        for path in begun
    ]
    wait_until(lambda: sum(path.exists() for path in begun) == 3, "three tasks that run")
    return futures


@pytest.mark.parametrize("kill", [kill_interchange, kill_managers])
@pytest.mark.parametrize("label", ["big", "standard"])
def test_tasks_of_a_group_that_dies_run_in_the_other(tmp_path: Path, kill: Any, label: str) -> None:
    made = two_groups()
    with running(made, tmp_path):
        wait_until(lambda: len(nodes_of(made)) == 2, "both groups")
        futures = fill(tmp_path, 8)
        kill(made, label)
        wait_until(lambda: label not in nodes_of(made), "the end of the group")
        (tmp_path / "go").touch()
        assert [future.result(LIMIT_S) for future in futures] == [1] * 8
        endings = [[one.ending for one in sizing_of(future).attempts] for future in futures]
        lost = endings.count([LOST, DONE])
        assert lost == (2 if label == "big" else 1)
        assert endings.count([DONE]) == 8 - lost
        assert tasks.hold(1).result(LIMIT_S) == 1


def test_when_all_groups_are_dead_tasks_fail_with_the_reason(tmp_path: Path) -> None:
    made = two_groups()
    with running(made, tmp_path):
        wait_until(lambda: len(nodes_of(made)) == 2, "both groups")
        futures = fill(tmp_path, 8)
        kill_interchange(made, "big")
        kill_interchange(made, "standard")
        for future in futures:
            with pytest.raises(BadStateException):
                future.result(LIMIT_S)
        with pytest.raises(BadStateException):
            tasks.hold(1).result(LIMIT_S)


def test_what_only_fitted_the_dead_group_fails_with_a_story(tmp_path: Path) -> None:
    made = two_groups()
    with running(made, tmp_path):
        wait_until(lambda: len(nodes_of(made)) == 2, "both groups")
        kill_interchange(made, "big")
        wait_until(lambda: "big" not in nodes_of(made), "the end of the group")
        spec = {"memory": "2GB"}
        future = tasks.hold(1500, 0.5, parsl_resource_specification=spec)
        with pytest.raises(Exception, match="memory"):
            future.result(LIMIT_S)
        assert tasks.hold(1).result(LIMIT_S) == 1


def test_a_group_whose_blocks_never_start_leaves_the_work_to_the_other(tmp_path: Path) -> None:
    broken = LocalProvider(init_blocks=1, max_blocks=1, worker_init="exit 3")
    made = two_groups(inner=[htex(2, label="big", provider=broken), htex(2, label="standard")])
    with running(made, tmp_path):
        futures = [tasks.hold(1, 0.1) for _ in range(10)]
        assert [future.result(LIMIT_S) for future in futures] == [1] * 10
        wait_until(lambda: member(made, "big").bad_state_is_set, "the end of the group")
        assert tasks.hold(1).result(LIMIT_S) == 1
