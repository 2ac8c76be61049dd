"""A workflow that is killed leaves no block: neither one that runs nor one that waits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from sizer_runs import marked, nothing_left, wait_until
from sizer_slurm import Slurm

SCRIPT = """
import sys
from pathlib import Path
import sizer_tasks as tasks
from sizer_runs import htex, running, sized, wait_until
from sizer_slurm import provider
from parsl_sizer import Scaling, stage
from parsl_sizer.scaling import Geometry

folder = Path(sys.argv[1])
inner = htex(
    1,
    provider=provider(nodes_per_block=2, max_blocks=2),
    label="slurm",
    heartbeat_threshold=5,
    address_probe_timeout=5,
)
how = Scaling("per-stage", look_s=0.2)
made = sized(inner, node="cores=1,memory=1GB", scaling=how)
with running(made, folder, strategy="none"):
    with stage("first"):
        held = tasks.hold_until(str(folder / "never"), begun=str(folder / "begun"))
    wait_until((folder / "begun").exists, "a task that runs")
    made._scaling.blocks.request("waits", Geometry(2))
    held.result()
"""


@contextmanager
def workflow(slurm: Slurm, folder: Path) -> Iterator[psutil.Process]:
    """A workflow with a block that runs and one that waits; it is killed in the end."""
    script = folder / "workflow.py"
    script.write_text(SCRIPT)
    process = subprocess.Popen([sys.executable, str(script), str(folder)])
    try:
        wait_until((folder / "begun").exists, "a task that runs")
        wait_until(
            lambda: sorted(job.state for job in slurm.blocks()) == ["PENDING", "RUNNING"],
            "a block that runs and one that waits",
        )
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait(30)


def test_a_killed_workflow_leaves_no_block(slurm: Slurm, tmp_path: Path) -> None:
    slurm.fill(600, nodes=3)
    with nothing_left() as mark:
        with workflow(slurm, tmp_path):
            pass
        wait_until(lambda: not slurm.blocks(), "an empty queue")
        wait_until(lambda: not marked(mark), "no process that is left")


def test_without_its_host_a_workflow_leaves_blocks_that_end_by_themselves(
    slurm: Slurm, tmp_path: Path
) -> None:
    """The watchdog is gone, too, and so is the interchange."""
    others = [slurm.fill(600) for _ in range(3)]
    with nothing_left() as mark:
        with workflow(slurm, tmp_path) as killed:
            family = [killed, *killed.children(recursive=True)]
            for process in family:
                process.kill()
        slurm.call("scancel", *others)
        wait_until(lambda: not slurm.blocks(), "an empty queue")
        wait_until(lambda: not marked(mark), "no process that is left")
