"""Two groups of which one is slow: after a profile, tasks go where their labels say."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl.providers import LocalProvider
from sizer_groups import nodes_of, recorded, two_groups
from sizer_runs import htex, running, wait_until

from parsl_sizer import SizedExecutor
from parsl_sizer.archive.open import open_archive
from parsl_sizer.engines.several import group_of
from parsl_sizer.executor.arguments import BadArgument
from parsl_sizer.model import NodeProfile

LIMIT_S = 200
NODE = "cores=2,memory=1GB"


@pytest.fixture
def brake() -> Iterator[str]:
    """A line of shell that slows down all that comes after it, to a third of a core."""
    group = Path("/sys/fs/cgroup/cpu", f"parsl_sizer_{uuid.uuid4().hex[:8]}")
    try:
        group.mkdir()
        (group / "cpu.cfs_quota_us").write_text("33000")
    except OSError as error:
        with suppress(OSError):
            group.rmdir()
        pytest.skip(f"no CPU quota can be set here: {error}")
    yield f"echo $$ > {group}/cgroup.procs; renice -n 10 -p $$ > /dev/null"
    wait_until(lambda: not (group / "cgroup.procs").read_text(), "an empty cgroup")
    group.rmdir()


def groups(brake: str, archive: Path) -> SizedExecutor:
    slow = LocalProvider(init_blocks=1, max_blocks=1, worker_init=brake)
    inner = [htex(2, label="slow", provider=slow), htex(2, label="fast")]
    return two_groups(inner=inner, node=NODE, archive=archive, placement="tarema")


@pytest.mark.skipif(os.cpu_count() == 1, reason="two groups on one core are slow both")
def test_tasks_go_to_the_group_whose_labels_are_theirs(
    tmp_path: Path, is_long: bool, brake: str
) -> None:
    if not is_long:
        pytest.skip("half a minute of both cores; Work Queue's test does the same: make test-long")
    archive = tmp_path / "archive.sqlite"
    made = groups(brake, archive)
    with running(made, tmp_path):
        wait_until(lambda: len(nodes_of(made)) == 2, "both groups", LIMIT_S)
        learned = [tasks.compute(0.5) for _ in range(4)] + [tasks.hold(1, 0.5) for _ in range(4)]
        for future in learned:
            future.result(LIMIT_S)
    with closing(open_archive(archive)) as opened:  # as a profile has it on an idle machine
        speeds = {"slow": 200.0, "fast": 600.0}
        opened.keep_profiles(
            NodeProfile("host", {"cpu_single": speeds[label]}, executor=label) for label in speeds
        )
    made = groups(brake, archive)
    with running(made, tmp_path):
        wait_until(lambda: len(nodes_of(made)) == 2, "both groups", LIMIT_S)
        for _ in range(4):  # one at a time: there is room everywhere
            tasks.compute(0.2).result(LIMIT_S)
            tasks.hold(1, 0.2).result(LIMIT_S)
    placed = [
        (outcome.attempt.task.category, group_of(outcome.attempt.node))
        for outcome in recorded(archive)[len(learned) :]
    ]
    assert placed[2:] == [("compute", "fast"), ("hold", "slow")] * 3


def test_what_nodes_have_stands_in_for_what_they_can_do(tmp_path: Path) -> None:
    """Nothing was profiled: the group with more memory is for what uses more.

    The other group has a fifth of all memory, so it is for the fifth of tasks that uses least.
    """
    archive = tmp_path / "archive.sqlite"
    made = two_groups(archive=archive, placement="tarema")
    with running(made, tmp_path):
        wait_until(lambda: len(nodes_of(made)) == 2, "both groups", LIMIT_S)
        heavy = {"category": "heavy"}
        learned = [tasks.hold(1, 0.1)]
        learned += [tasks.hold(100, 0.1, parsl_resource_specification=heavy) for _ in range(16)]
        for future in learned:
            future.result(LIMIT_S)
        for _ in range(3):
            tasks.hold(1, 0.2).result(LIMIT_S)
            tasks.hold(100, 0.2, parsl_resource_specification=heavy).result(LIMIT_S)
    placed = [
        (outcome.attempt.task.category, group_of(outcome.attempt.node))
        for outcome in recorded(archive)[len(learned) :]
    ]
    assert placed[2:] == [("hold", "standard"), ("heavy", "big")] * 2


@pytest.mark.parametrize(
    ("inner", "placement", "said"),
    [(["big"], "best", "must be one of 'any', 'tarema'"), ("big", "tarema", "several inner")],
)
def test_a_placement_that_cannot_be_is_refused(inner: object, placement: str, said: str) -> None:
    one = htex(label="big") if inner == "big" else [htex(label="big")]
    with pytest.raises(BadArgument, match=said):
        SizedExecutor(one, placement=placement)
