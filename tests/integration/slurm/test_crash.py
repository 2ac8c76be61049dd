"""A workflow that is killed leaves no block: neither one that runs nor one that waits."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from sizer_runs import marked, nothing_left, wait_until
from sizer_slurm import Slurm

SCRIPT = """
import sys
from pathlib import Path
import sizer_tasks as tasks
from sizer_runs import htex, running, sized
from sizer_slurm import provider
from parsl_sizer import Scaling, stage
from parsl_sizer.scaling import Geometry

folder = Path(sys.argv[1])
inner = htex(1, provider=provider(nodes_per_block=2, max_blocks=2), label="slurm")
how = Scaling("per-stage", look_s=0.2)
made = sized(inner, node="cores=1,memory=1GB", scaling=how)
with running(made, folder, strategy="none"):
    with stage("first"):
        held = tasks.hold_until(str(folder / "never"), begun=str(folder / "begun"))
    made._scaling.blocks.request("waits", Geometry(2))
    held.result()
"""


def test_a_killed_workflow_leaves_no_block(slurm: Slurm, tmp_path: Path) -> None:
    script = tmp_path / "workflow.py"
    script.write_text(SCRIPT)
    slurm.fill(600, nodes=3)
    with nothing_left() as mark:
        workflow = subprocess.Popen([sys.executable, str(script), str(tmp_path)])
        try:
            wait_until((tmp_path / "begun").exists, "a task that runs")
            wait_until(
                lambda: sorted(job.state for job in slurm.blocks()) == ["PENDING", "RUNNING"],
                "a block that runs and one that waits",
            )
        finally:
            workflow.send_signal(signal.SIGKILL)
            workflow.wait(30)
        wait_until(lambda: not slurm.blocks(), "an empty queue")
        wait_until(lambda: not marked(mark), "no process that is left")
