"""Blocks ahead of time on a real Slurm: makespan and core-hours of three policies.

Every policy has a Slurm of its own, with twelve pretended nodes that others keep busy: jobs of
one node that take 24 s on average, six of them always waiting. In it a workflow of two stages
runs again and again, three tasks side by side and then one, each of which sleeps. The first run
is not counted: there nothing is known of the tasks' times, nor of the queue.

    big-job     one block of three nodes for all of it
    per-stage   a block for each stage, asked for when the stage can begin
    asa         a block for each stage, asked for ahead of time

A run's makespan is from the first call to the last result; its core-hours are those of its
blocks, from when Slurm started them until they ended. It needs root, slurm-wlm and munge.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import parsl
from parsl import python_app
from parsl.config import Config
from printing import Line, described, lines_table, machine, table
from rich.table import Table

from parsl_sizer import Scaling, SizedExecutor, stage
from parsl_sizer.cli.output import console, print_json, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "integration" / "support"))
from sizer_runs import htex
from sizer_slurm import Node, Slurm, provider, slurm, why_not

POLICIES = ("big-job", "per-stage", "asa")
BAR = 1.10
NODES, WAITING, JOB_S = 12, 6, (16, 32)


@python_app
def work(seconds: float, *others: Any) -> float:  # noqa: ARG001 - it waits for them
    import time

    time.sleep(seconds)
    return seconds


def main() -> int:
    options = _options()
    if (reason := why_not()) is not None:
        say(f"{reason}.")
        return 2
    if options.policy is not None:
        print(json.dumps(_runs(options.policy, options.runs, options.seconds)))
        return 0
    # Parsl looks for its own programs there.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    children = {
        policy: subprocess.Popen(
            [
                *(sys.executable, __file__, "--policy", policy),
                *("--runs", str(options.runs), "--seconds", str(options.seconds)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for policy in POLICIES
    }
    said = {policy: child.communicate()[0] for policy, child in children.items()}
    failed = [policy for policy, child in children.items() if child.returncode]
    if failed:
        say(f"There is nothing to compare, since this failed: {', '.join(failed)}.")
        return 1
    found = {policy: json.loads(text) for policy, text in said.items()}
    lines = _lines(found)
    if options.json:
        print_json({"machine": machine(), "runs": found, "bars": [vars(line) for line in lines]})
    else:
        out = console()
        out.print(f"{described()}; stages of {options.seconds:g} s, {options.runs} runs.\n")
        out.print(_table(found))
        out.print(lines_table(lines))
    return int(any(line.is_missed for line in lines))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="default: 5")
    parser.add_argument("--seconds", type=float, default=60.0, help="of a stage (default: 60)")
    parser.add_argument("--policy", choices=POLICIES, help="only this one, as JSON")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def _runs(policy: str, runs: int, seconds: float) -> list[dict[str, float]]:
    """What each run of a policy took, without the first."""
    nodes = [Node(f"n{number}") for number in range(1, NODES + 1)]
    with TemporaryDirectory() as folder, slurm(nodes) as made, _busy(made):
        found = [_run(policy, made, Path(folder), seconds) for _ in range(runs + 1)]
    return found[1:]


@contextmanager
def _busy(made: Slurm) -> Iterator[None]:
    """Others' jobs, while it lasts; at first until the queue is as long as it is going to be."""
    is_over, random = threading.Event(), Random(1)
    is_busy = threading.Event()

    def feed() -> None:
        while not is_over.is_set():
            others = [job for job in made.jobs() if job.name == "other"]
            waiting = sum(job.state == "PENDING" for job in others)
            for _ in range(WAITING - waiting):
                made.fill(random.uniform(*JOB_S))
            if waiting >= WAITING and len(others) >= NODES:
                is_busy.set()
            is_over.wait(0.5)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        is_busy.wait()
        time.sleep(JOB_S[1])  # by now they do not end all at once
        yield
    finally:
        is_over.set()
        feeder.join()


def _run(policy: str, made: Slurm, folder: Path, seconds: float) -> dict[str, float]:
    asked = provider(nodes_per_block=3, max_blocks=2, walltime="00:20:00")
    executor = SizedExecutor(
        htex(1, provider=asked, label="slurm"),
        node="cores=1,memory=1GB",
        kinds=["memory"],
        archive=folder / "archive.sqlite3",
        scaling=Scaling(policy, slack_s=3.0, look_s=1.0),
        report=False,
    )
    config = Config(
        executors=[executor],
        run_dir=str(folder / "runinfo"),
        strategy="none",
        strategy_period=0.5,
        usage_tracking=0,
    )
    logging.getLogger("parsl").setLevel(logging.CRITICAL)
    with parsl.load(config):
        began = time.monotonic()
        with stage("wide"):
            wide = [work(seconds) for _ in range(3)]
        with stage("narrow"):
            last = work(seconds, *wide)
        last.result()
        makespan = time.monotonic() - began
    mark = executor._scaling.mark if executor._scaling else ""
    parsl.clear()
    return {"makespan_s": makespan, **_usage(made, mark)}


def _usage(made: Slurm, mark: str) -> dict[str, float]:
    """What the blocks with this mark had, once they have ended."""
    fields = "%k|%D|%V|%S|%e"
    while any(job.comment == mark for job in made.jobs()):
        time.sleep(0.2)
    made.environment["SLURM_TIME_FORMAT"] = "%s"
    core_s, waits = 0.0, []
    for line in made.call("squeue", "-h", "-t", "all", "-S", "i", "-o", fields).splitlines():
        comment, nodes, asked, started, ended = line.split("|")
        if comment == mark:
            core_s += int(nodes) * (float(ended) - float(started))
            waits.append(float(started) - float(asked))
    return {"core_s": core_s, "blocks": len(waits), "first_wait_s": waits[0]}


def _lines(found: dict[str, list[dict[str, float]]]) -> list[Line]:
    def ratio(figure: str, policy: str, other: str) -> float:
        return _median(found[policy], figure) / _median(found[other], figure)

    return [
        Line("asa ÷ big-job, makespan", ratio("makespan_s", "asa", "big-job"), BAR, "×"),
        Line("asa ÷ per-stage, core-hours", ratio("core_s", "asa", "per-stage"), BAR, "×"),
    ]


def _median(runs: Sequence[dict[str, float]], figure: str) -> float:
    return median(run[figure] for run in runs)


def _table(found: dict[str, list[dict[str, float]]]) -> Table:
    made = table(["policy"], ["makespan, s", "median", "core-hours", "median", "first wait, s"])
    for policy, runs in found.items():
        made.add_row(
            policy,
            ", ".join(f"{run['makespan_s']:.0f}" for run in runs),
            f"{_median(runs, 'makespan_s'):.0f}",
            ", ".join(f"{run['core_s'] / 3600:.3f}" for run in runs),
            f"{_median(runs, 'core_s') / 3600:.3f}",
            ", ".join(f"{run['first_wait_s']:.0f}" for run in runs),
            "",
        )
    return made


if __name__ == "__main__":
    sys.exit(main())
