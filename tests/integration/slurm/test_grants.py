"""What Slurm grants a block is what its tasks have, however large the machine is."""

from __future__ import annotations

from pathlib import Path

import sizer_tasks as tasks
from parsl.launchers import SrunLauncher
from sizer_runs import LIMIT_S, htex, running, sized, wait_until
from sizer_slurm import Slurm, provider

from parsl_sizer import Kind, sizing_of
from parsl_sizer.monitor import node


def test_tasks_are_given_no_more_than_their_job_and_jobs_are_nodes(
    slurm: Slurm, tmp_path: Path
) -> None:
    """Three jobs with 2 GB each, of Slurm's nodes that are all on this host."""
    asked = provider(
        init_blocks=3,
        max_blocks=3,
        mem_per_node=None,
        cores_per_node=None,
        scheduler_options="#SBATCH --mem=2000M",
        launcher=SrunLauncher(),
    )
    made = sized(htex(2, provider=asked, label="slurm"), node=None)
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
