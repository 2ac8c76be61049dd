"""A mixed workload on this machine twice: a whole machine for every task, then sized.

    python examples/demo.py

Tasks of two apps hold real memory and mostly sleep. What they were given and what they
used, over time, is drawn into a picture.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import parsl
from parsl import python_app
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider

from parsl_sizer import Kind, Outcome, Proposal, Resources, Setting, SizedExecutor, TaskInfo
from parsl_sizer.report import plot
from parsl_sizer.strategies import Strategy
from parsl_sizer.strategies.catalog import family

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

MEMORY_GB = 2.0
POINTS = 2000
"""Of a curve."""
GIVEN, USED, FAILED = "#c6d4e6", "#4c78a8", "#e45756"


@python_app
def align(megabytes: float, seconds: float) -> int:
    import time

    held = bytearray(b"x") * int(megabytes * 1_000_000)
    time.sleep(seconds)
    return len(held)


@python_app
def assemble(megabytes: float, seconds: float) -> int:
    import time

    held = bytearray(b"x") * int(megabytes * 1_000_000)
    time.sleep(seconds)
    return len(held)


class Noted:
    """A strategy of which all that it learns is noted down: every attempt, and its end."""

    def __init__(self, strategy: Strategy, notes: list[Outcome]) -> None:
        self.strategy = strategy
        self.notes = notes

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        return self.strategy.propose(task, failures, largest)

    def learn(self, outcome: Outcome) -> None:
        self.notes.append(outcome)
        self.strategy.learn(outcome)


@dataclass(frozen=True)
class Run:
    """The workload, run once."""

    name: str
    began: float
    makespan_s: float
    outcomes: list[Outcome]

    def given(self, at: NDArray[np.float64], *, in_vain: bool) -> NDArray[np.float64]:
        """The GB that attempts were given at these times: those that ran out, or the others."""
        total = np.zeros_like(at)
        for outcome in self.outcomes:
            if bool(outcome.exhausted) is in_vain:
                total += _during(outcome, at) * outcome.attempt.allocation[Kind.MEMORY]
        return total / 1e9

    def used(self, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """The GB that attempts really used at these times."""
        total = np.zeros_like(at)
        for outcome in self.outcomes:
            usage = outcome.usage
            points = usage.series or ((0.0, usage.peak.get(Kind.MEMORY, 0.0)),)
            times, uses = np.array(points).T
            since = at - (outcome.ended_at - usage.wall_s)
            latest = np.clip(np.searchsorted(times, since, side="right") - 1, 0, None)
            total += _during(outcome, at) * uses[latest]
        return total / 1e9


def _during(outcome: Outcome, at: NDArray[np.float64]) -> NDArray[np.bool_]:
    return (outcome.ended_at - outcome.usage.wall_s <= at) & (at < outcome.ended_at)


def workload(tasks: int) -> list[tuple[Callable[..., Any], float, float]]:
    """Apps, megabytes and seconds: small tasks and large ones, mixed, always the same."""
    draw = random.Random(1)
    sizes: dict[Callable[..., Any], float] = {align: 80.0, assemble: 300.0}
    apps = draw.choices(list(sizes), k=tasks)
    return [(app, sizes[app] * draw.lognormvariate(0, 0.2), draw.uniform(0.6, 1.4)) for app in apps]


def run(name: str, strategy: str, tasks: int, cores: int, folder: Path) -> Run:
    """The workload on an engine of its own, until its last task is over."""
    outcomes: list[Outcome] = []
    made = family(strategy, Setting())

    def noted(category: str) -> Strategy:
        return Noted(made(category), outcomes)

    engine = HighThroughputExecutor(
        label=name.replace(" ", "-"),
        address="127.0.0.1",
        max_workers_per_node=cores,
        cores_per_worker=0.1,  # they sleep, so there may be more of them than cores
        provider=LocalProvider(init_blocks=1, max_blocks=1),
    )
    node = f"cores={cores},memory={MEMORY_GB}GB"
    config = Config(
        executors=[SizedExecutor(engine, strategy=noted, node=node, archive=False)],
        run_dir=str(folder / "runinfo"),
        strategy="none",
    )
    with parsl.load(config):
        align(1, 0).result()  # by then the engine is up
        outcomes.clear()
        began = time.time()
        futures = [app(megabytes, seconds) for app, megabytes, seconds in workload(tasks)]
        for future in futures:
            future.result()
        makespan_s = time.time() - began
    parsl.clear()
    return Run(name, began, makespan_s, outcomes)


def draw(runs: Sequence[Run], path: Path) -> None:
    """Memory over time, one run above the other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), dpi=120, layout="constrained")
    panels = figure.subplots(len(runs), 1, sharex=True, sharey=True)
    for axes, shown in zip(panels, runs, strict=True):
        _draw_run(axes, shown)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=4)
    panels[-1].set_xlim(left=0)
    panels[-1].set_xlabel("seconds")
    figure.savefig(path)


def _draw_run(axes: Axes, run: Run) -> None:
    seconds = np.linspace(0, run.makespan_s, POINTS)
    at = run.began + seconds
    given = run.given(at, in_vain=False)
    in_vain = run.given(at, in_vain=True)
    axes.fill_between(
        seconds, given, given + in_vain, color=FAILED, linewidth=0, label="given in vain"
    )
    axes.fill_between(seconds, given, color=GIVEN, label="given")
    axes.fill_between(seconds, run.used(at), color=USED, label="used")
    axes.axhline(MEMORY_GB, color="black", linewidth=0.8, linestyle="--", label="the node has")
    axes.set_title(f"{run.name}: {run.makespan_s:.1f} s", loc="left", fontsize=10)
    axes.set_ylabel("memory, GB")
    axes.set_ylim(0, 1.15 * MEMORY_GB)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--cores", type=int, default=8, help="of the machine, as tasks see it")
    parser.add_argument("--png", type=Path, default=Path("out/demo.png"))
    asked = parser.parse_args()
    plot.check()
    folder: Path = asked.png.parent
    folder.mkdir(parents=True, exist_ok=True)
    # Parsl looks for its own programs there, and not everybody activates an environment.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    node = f"{MEMORY_GB} GB and {asked.cores} cores"
    print(f"{asked.tasks} tasks, each with all of {node} to itself ...")
    whole = run("whole machine", "whole-machine", asked.tasks, asked.cores, folder)
    print(f"... took {whole.makespan_s:.1f} s. The same tasks, sized ...")
    sized = run("sized", "auto", asked.tasks, asked.cores, folder)
    print(f"... took {sized.makespan_s:.1f} s.")
    draw([whole, sized], asked.png)
    print(f"Sized they are {whole.makespan_s / sized.makespan_s:.1f} times as fast.")
    print(f"The picture is {asked.png}.")


if __name__ == "__main__":
    main()
