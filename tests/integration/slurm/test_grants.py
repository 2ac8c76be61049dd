"""What Slurm grants a block is what its tasks have, however large the machine is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sizer_tasks as tasks
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SrunLauncher
from sizer_runs import LIMIT_S, htex, running, sized, wait_until
from sizer_slurm import Slurm, provider

from parsl_sizer import Kind, sizing_of
from parsl_sizer.monitor import node


def three_blocks() -> HighThroughputExecutor:
    """Two workers in each of three jobs with 2 GB, all of which have this host's name."""
    asked = provider(
        init_blocks=3,
        max_blocks=3,
        mem_per_node=None,
        cores_per_node=None,
        scheduler_options="#SBATCH --mem=2000M",
        launcher=SrunLauncher(),
    )
    return htex(2, provider=asked, label="slurm")


def test_tasks_are_given_no_more_than_their_job_and_jobs_are_nodes(
    slurm: Slurm, tmp_path: Path
) -> None:
    """Three jobs with 2 GB each, of Slurm's nodes that are all on this host."""
    made = sized(three_blocks(), node=None)
    go = tmp_path / "go"
    with running(made, tmp_path):
        wait_until(lambda: len(made.inner.connected_managers()) == 3, "three managers")
        first = tasks.hold_until(str(tmp_path))
        first.result(LIMIT_S)
        begun = [tmp_path / f"begun{number}" for number in range(6)]
        futures = [tasks.hold_until(str(go), 1, str(path)) for path in begun]
        try:
            for path in begun:
                tasks.wait_for(path, 60)
        finally:
            go.touch()
        for future in futures:
            assert future.result(LIMIT_S) == 1
        names = {f"{node.name()} job {job.number}" for job in slurm.blocks()}
        wait_until(lambda: set(made._driver._nodes) == names, "three nodes")
        held = [one.capacity.memory for one in made._driver._nodes.values()]
        attempts = [sizing_of(future).attempts[-1] for future in (first, *futures)]
    assert held == [2e9] * 3
    assert all(attempt.allocation[Kind.MEMORY] <= 2e9 for attempt in attempts)


def test_as_many_tasks_run_at_once_as_with_plain_parsl(slurm: Slurm, tmp_path: Path) -> None:
    """24 tasks in three jobs on one host; ours know them from an earlier run."""
    archive = tmp_path / "archive.sqlite3"
    plain = most_at_once(three_blocks(), tmp_path / "plain")
    most_at_once(sized(three_blocks(), node=None, archive=archive), tmp_path / "cold")
    slurm.cancel_all()
    warm = most_at_once(sized(three_blocks(), node=None, archive=archive), tmp_path / "warm")
    assert warm == plain == 6


def most_at_once(executor: Any, folder: Path) -> int:
    """Run 24 tasks once three managers are there; the most that ran at one time."""
    inner = getattr(executor, "inner", executor)
    with running(executor, folder):
        wait_until(lambda: len(inner.connected_managers()) == 3, "three managers")
        spans = [future.result(LIMIT_S) for future in [tasks.span(1.0, 100) for _ in range(24)]]
    return overlap(spans)


def overlap(spans: Sequence[tuple[float, float]]) -> int:
    """The most spans that hold one moment."""
    return max(sum(began <= at < ended for began, ended in spans) for at, _ in spans)
