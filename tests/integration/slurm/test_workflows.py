"""Workflows in stages, under every policy, on a Slurm whose queue is busy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import sizer_tasks as tasks
from sizer_runs import LIMIT_S, htex, running, sized, wait_until
from sizer_slurm import Slurm, provider

from parsl_sizer import Scaling, SizedExecutor, stage
from parsl_sizer.archive.open import open_archive
from parsl_sizer.scaling import POLICIES, Geometry, Rule

QUICK = Rule(alternatives=(1.0, 2.0, 4.0, 8.0, 16.0))
"""Waits here are of seconds."""


def executor(policy: str = "asa", *, max_blocks: int = 2, **options: Any) -> SizedExecutor:
    """Blocks of up to three nodes, of a core each."""
    asked = provider(nodes_per_block=3, max_blocks=max_blocks)
    inner = htex(1, provider=asked, label="slurm", heartbeat_threshold=5)
    how = Scaling(policy, slack_s=2.0, look_s=0.2, again_s=0.0, rule=QUICK)
    return sized(inner, node="cores=1,memory=1GB", scaling=how, **options)


@contextmanager
def workflow(slurm: Slurm, made: SizedExecutor, folder: Path) -> Iterator[None]:
    """While it runs, no more blocks are asked for than may be; in the end there are none."""
    with running(made, folder, strategy="simple", max_idletime=0.1):
        yield
        assert len(slurm.blocks()) <= made.inner.provider.max_blocks
    wait_until(lambda: not slurm.blocks(), "no block that is left")


@pytest.mark.parametrize("policy", POLICIES)
def test_two_stages(slurm: Slurm, tmp_path: Path, policy: str) -> None:
    other = slurm.fill(600, nodes=4)
    made = executor(policy, archive=tmp_path / "archive.sqlite3")
    with workflow(slurm, made, tmp_path):
        with stage("wide"):
            wide = [tasks.after(s=1.0) for _ in range(3)]
        with stage("narrow"):
            last = tasks.after(*wide, s=0.5)
        wait_until(slurm.blocks, "a block that waits")
        slurm.call("scancel", other)
        assert last.result(LIMIT_S).startswith("n")
        shapes = {job.nodes for job in slurm.blocks()}
        assert shapes == {3} if policy == "big-job" else shapes <= {1}
    with closing(open_archive(tmp_path / "archive.sqlite3", read_only=True)) as archive:
        waits = archive.waits("slurm test")
    wanted = [3] if policy == "big-job" else [3, 1]
    assert [wait.geometry.nodes for wait in waits] == wanted
    assert waits[0].geometry == Geometry(3, 1, 1e9)
    assert not waits[0].at_most


@pytest.mark.parametrize("policy", POLICIES)
def test_four_stages(slurm: Slurm, tmp_path: Path, policy: str) -> None:
    """Categories are stages, too; two in a row that need the same keep their block."""
    slurm.fill(600, nodes=1)
    before = jobs_so_far(slurm)
    shapes = {"split": 2, "align": 2, "merge": 1, "draw": 3}
    with workflow(slurm, executor(policy), tmp_path):
        done: list[Any] = []
        for name, width in shapes.items():
            done = [
                tasks.after(*done, s=0.2, parsl_resource_specification={"category": name})
                for _ in range(width)
            ]
        assert all(future.result(LIMIT_S) for future in done)
    assert jobs_so_far(slurm) - before == (1 if policy == "big-job" else 3)


def jobs_so_far(slurm: Slurm) -> int:
    """How many blocks were ever asked for."""
    return slurm.call("scontrol", "show", "job", "-o").count("JobName=parsl.")


def test_tasks_that_need_not_wait_for_a_stage_use_its_blocks(slurm: Slurm, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with workflow(slurm, executor(), tmp_path):
        with stage("first"):
            held, quick = tasks.hold_until(str(gate)), tasks.after()
        with stage("second"):
            second = tasks.after(quick)
        assert second.result(LIMIT_S)
        assert not held.done()
        gate.touch()
        assert held.result(LIMIT_S)


def test_a_workflow_whose_blocks_never_start_ends_and_leaves_none(
    slurm: Slurm, tmp_path: Path
) -> None:
    slurm.fill(600, nodes=4)
    with workflow(slurm, executor(), tmp_path):
        future = tasks.after()
        wait_until(slurm.blocks, "a block that waits")
    assert "shut down" in str(future.exception(LIMIT_S))


def test_a_block_that_is_killed_is_replaced(slurm: Slurm, tmp_path: Path) -> None:
    gate, begun = tmp_path / "gate", tmp_path / "begun"
    with workflow(slurm, executor(max_blocks=1), tmp_path):
        future = tasks.hold_until(str(gate), begun=str(begun))
        [first] = wait_until(slurm.blocks, "a block")
        wait_until(begun.exists, "a task that runs")
        slurm.call("scancel", first.number)
        wait_until(lambda: first.number not in _numbers(slurm), "the end of the block")
        wait_until(slurm.blocks, "another block")
        gate.touch()
        assert future.result(LIMIT_S)


def test_a_workflow_goes_on_when_slurm_is_away_for_a_while(slurm: Slurm, tmp_path: Path) -> None:
    gate, begun = tmp_path / "gate", tmp_path / "begun"
    with workflow(slurm, executor(), tmp_path):
        first = tasks.hold_until(str(gate), begun=str(begun))
        second = [tasks.after(first) for _ in range(2)]
        wait_until(begun.exists, "a task that runs")
        slurm.stop_controller()
        try:
            gate.touch()
            assert first.result(LIMIT_S)
        finally:
            slurm.start_controller()
        assert all(future.result(LIMIT_S) for future in second)


def _numbers(slurm: Slurm) -> set[str]:
    return {job.number for job in slurm.blocks()}
