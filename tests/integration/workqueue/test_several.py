"""Work Queue workers of three sizes, each kind a group; and a group beside one of HTEX."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import sizer_tasks as tasks
from parsl.executors import WorkQueueExecutor
from parsl.providers import LocalProvider
from sizer_groups import member, most_by_node, nodes_of, recorded, two_groups
from sizer_runs import htex, running, wait_until
from sizer_workers import Crew, Size

from parsl_sizer import SizedExecutor, sizing_of
from parsl_sizer.engines.several import group_of
from parsl_sizer.model import Ending

LIMIT_S = 200
SIZES = {"low": Size(2, 1000, 2000), "mid": Size(2, 2000, 2000), "high": Size(2, 4000, 2000)}


def queue(label: str) -> WorkQueueExecutor:
    none = LocalProvider(init_blocks=0, min_blocks=0, max_blocks=0)
    return WorkQueueExecutor(label=label, address="127.0.0.1", port=0, provider=none)


@contextmanager
def groups(
    folder: Path, inner: list[Any], sizes: dict[str, Size], **options: Any
) -> Iterator[SizedExecutor]:
    """One sized executor over these, with a worker of each size in the group of its name."""
    made = two_groups(inner=inner, node=None, **options)
    with running(made, folder), ExitStack() as stack:
        for label, size in sizes.items():
            port = member(made, label)._chosen_port
            crew = stack.enter_context(Crew("work_queue_worker", port, folder / label))
            crew.add(size)
        wait_until(lambda: len(nodes_of(made)) == len(inner), "a node of each group", LIMIT_S)
        yield made


def test_tasks_go_to_the_kind_of_worker_whose_labels_are_theirs(tmp_path: Path) -> None:
    archive = tmp_path / "archive.sqlite"
    using = {"light": 20, "middle": 90, "heavy": 250}
    to_learn = ["light"] + ["middle"] * 2 + ["heavy"] * 4  # as the memory is spread

    def run(name: str) -> Any:
        return tasks.hold(using[name], 0.1, parsl_resource_specification={"category": name})

    inner = [queue(label) for label in SIZES]
    with groups(tmp_path, inner, SIZES, archive=archive, placement="tarema"):
        for future in [run(name) for name in to_learn]:
            assert future.result(LIMIT_S)
        for name in using:  # one at a time: there is room everywhere
            run(name).result(LIMIT_S)
    outcomes = recorded(archive)
    placed = {
        outcome.attempt.task.category: group_of(outcome.attempt.node)
        for outcome in outcomes[len(to_learn) :]
    }
    assert placed == {"light": "low", "middle": "mid", "heavy": "high"}
    for node, most in most_by_node(outcomes).items():
        assert most <= SIZES[group_of(node)].memory * 1e6


@pytest.mark.filterwarnings("ignore:Exception in thread WorkQueue-collector")  # that is Parsl's
def test_a_group_of_work_queue_that_dies_hands_its_tasks_on_to_htex(tmp_path: Path) -> None:
    inner = [queue("mid"), htex(1, label="htex")]
    sizes = {"mid": SIZES["mid"]}
    with groups(tmp_path, inner, sizes) as made:
        begun = [tmp_path / f"begun{number}" for number in range(3)]
        spec = {"memory": "900MB", "cores": 1, "fixed": True}
        futures = [
            tasks.hold_until(str(tmp_path / "go"), 1, str(path), parsl_resource_specification=spec)
            for path in begun
        ]
        for path in begun:
            tasks.wait_for(path)
        member(made, "mid").submit_process.kill()
        wait_until(lambda: "mid" not in nodes_of(made), "the end of the group")
        (tmp_path / "go").touch()
        assert [future.result(LIMIT_S) for future in futures] == [1, 1, 1]
        attempts = [[one.ending for one in sizing_of(future).attempts] for future in futures]
        assert attempts.count([Ending.LOST, Ending.DONE]) == 2
        assert attempts.count([Ending.DONE]) == 1
