"""How long does a workload of memory-hungry tasks take, by how its tasks are sized?

Tasks of three categories hold real memory and mostly sleep, on nodes that promise 16 cores
and 12 GB (they sleep, so this machine need not have 16). The ways to size them:

    whole machine   one task at a time, plain engine
    fixed guess     every task of a category is given the category's largest peak
    autolabel       Work Queue's own, plain engine; it is told that a task needs one core
    cold            ours, with nothing known
    warm            ours, having learned the outcomes of the cold run with another seed
    oracle          every task is given its own peak and a small margin

With Work Queue, and with --whole, the whole machine's time is extrapolated from the first
tasks. `--scale 0.1 --node-gb 3 --tasks 30` is a quick try, not a result.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean
from tempfile import TemporaryDirectory
from typing import Any

import parsl
from parsl import python_app
from parsl.config import Config
from printing import Line, described, lines_table, machine, table, verdict
from rich.table import Table
from workload import MEDIANS_GB, NODE_GB, PLANS, WAYS, Plan, Work, hints

from parsl_sizer import Outcome, Proposal, Resources, Setting, TaskInfo, sizing_of
from parsl_sizer.cli.output import console, print_json, say
from parsl_sizer.strategies import Family, Strategy
from parsl_sizer.strategies.catalog import family

WARM, COLD = 1.15, 1.35
"""Of the oracle's makespan, at most."""
WHOLE = 1 / 3
"""Of the whole machine's."""
SETTLE_S = 3.0
"""After its first task an engine has so long to tell about its nodes."""


def app(category: str) -> Callable[..., Any]:
    """An app of this name: Work Queue's categories are names of functions.

    It is in the script itself, and not in a module that workers would have to find.
    """

    def hold(
        gigabytes: float,
        seconds: float,
        parsl_resource_specification: Mapping[str, object],  # noqa: ARG001
    ) -> int:
        import mmap
        import time

        until = time.monotonic() + seconds
        # In huge pages, as NumPy has it: in small ones two cores are busy clearing them.
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        with mmap.mmap(-1, int(gigabytes * 1e9), flags=private) as held:
            if hasattr(mmap, "MADV_HUGEPAGE"):
                held.madvise(mmap.MADV_HUGEPAGE)
            held[::4096] = bytes(len(range(0, len(held), 4096)))
            time.sleep(max(0.0, until - time.monotonic()))
            return len(held)

    hold.__name__ = hold.__qualname__ = category
    made: Callable[..., Any] = python_app(hold)
    return made


APPS = {category: app(category) for category in MEDIANS_GB}


@dataclass(frozen=True)
class Ran:
    """A workload that was run."""

    way: str
    seed: int
    makespan_s: float
    tasks: int
    failed: int
    retries: int | None
    """Of ours; what others do inside is not told."""


class Recorded:
    """A strategy that notes down what it is taught."""

    def __init__(self, strategy: Strategy, lessons: list[Outcome]) -> None:
        self._strategy = strategy
        self._lessons = lessons

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        return self._strategy.propose(task, failures, largest)

    def learn(self, outcome: Outcome) -> None:
        self._lessons.append(outcome)
        self._strategy.learn(outcome)


def taught(earlier: Sequence[Outcome], lessons: list[Outcome]) -> Family:
    """`auto` with the outcomes of an earlier run learned; what it learns now are `lessons`."""
    auto = family("auto", Setting())
    before: dict[str, Strategy] = {}
    for outcome in earlier:  # in their order: categories learn from each other, too
        category = outcome.attempt.task.category
        if category not in before:
            before[category] = auto(category)
        before[category].learn(outcome)
    return lambda category: Recorded(before.get(category) or auto(category), lessons)


def run(plan: Plan, way: str, seed: int, strategy: Family) -> Ran:
    """Run the workload once, on an engine of its own."""
    works = plan.works(seed)
    shown = works[: plan.whole] if way == "whole machine" else works
    with TemporaryDirectory() as folder:
        executor = plan.executor(way, Path(folder), strategy)
        inner = getattr(executor, "inner", executor)
        config = Config(
            executors=[executor], run_dir=folder, strategy="none", initialize_logging=False
        )
        with parsl.load(config):
            inner.submit(time.sleep, {}, 0).result()
            time.sleep(SETTLE_S)
            began = time.perf_counter()
            futures = [
                APPS[work.category](work.peak_gb, work.seconds, parsl_resource_specification=said)
                for work, said in zip(shown, hints(way, works), strict=False)
            ]
            errors = [error for future in futures if (error := future.exception()) is not None]
            makespan_s = time.perf_counter() - began
        parsl.clear()
    makespan_s *= _seconds(works) / _seconds(shown)
    stories = [story for future in futures if (story := sizing_of(future)) is not None]
    retries = sum(len(story.attempts) - 1 for story in stories) if stories else None
    if errors:
        say(f"seed {seed}, {way}: {len(errors)} tasks failed, the first with {errors[0]!r:.500}")
    return Ran(way, seed, makespan_s, len(shown), len(errors), retries)


def _seconds(works: Sequence[Work]) -> float:
    return sum(work.seconds for work in works)


def run_all(plan: Plan, seeds: Sequence[int], ways: Sequence[str]) -> list[Ran]:
    """Every way with every seed; the cold runs come first, to teach the warm ones."""
    lessons: dict[int, list[Outcome]] = {}
    # The seed before, going round; if there is one only, the next number teaches it.
    teachers = {
        seed: seeds[place - 1] if len(seeds) > 1 else seed + 1 for place, seed in enumerate(seeds)
    }
    runs = []

    def ran(way: str, seed: int, strategy: Family) -> Ran:
        done = run(plan, way, seed, strategy)
        say(f"seed {seed}, {way}: {done.makespan_s:.1f} s")
        return done

    def cold(seed: int) -> Ran:
        lessons[seed] = []
        return ran("cold", seed, taught((), lessons[seed]))

    runs += [cold(seed) for seed in seeds if "cold" in ways]
    for seed in seeds:
        teacher = teachers[seed]
        if "warm" in ways and teacher not in lessons:
            cold(teacher)
        for way in ways:
            if way != "cold":
                earlier = lessons[teacher] if way == "warm" else ()
                runs.append(ran(way, seed, taught(earlier, [])))
    return runs


def lines(runs: Sequence[Ran]) -> list[Line]:
    """Ours beside the others, with the bars; over several seeds the geometric mean."""
    seconds: dict[str, list[float]] = {}
    for one in sorted(runs, key=lambda one: one.seed):
        seconds.setdefault(one.way, []).append(one.makespan_s)
    bars: Mapping[tuple[str, str], float] = {("warm", "oracle"): WARM, ("cold", "oracle"): COLD} | {
        (ours, other): bar
        for ours in ("cold", "warm")
        for other, bar in (("whole machine", WHOLE), ("fixed guess", 1.0), ("autolabel", 1.0))
    }
    return [
        Line(
            f"{ours} ÷ {other}",
            geometric_mean(a / b for a, b in zip(seconds[ours], seconds[other], strict=True)),
            bar,
            "×",
        )
        for (ours, other), bar in bars.items()
        if ours in seconds and other in seconds
    ]


def missed(runs: Sequence[Ran]) -> list[str]:
    """The bars that these runs do not reach, and tasks that failed."""
    failed = [f"{one.failed} failed: {one.way}" for one in runs if one.failed]
    return [line.what for line in lines(runs) if line.is_missed] + failed


def seeds_table(runs: Sequence[Ran], ways: Sequence[str]) -> Table:
    """Seconds by seed and way, with the retries of ours."""
    made = table(["seed"], ways)
    for seed in sorted({one.seed for one in runs}):
        of_seed = {one.way: one for one in runs if one.seed == seed}
        cells = [_cell(of_seed[way]) for way in ways]
        made.add_row(str(seed), *cells, verdict(missed(list(of_seed.values()))))
    return made


def _cell(one: Ran) -> str:
    return f"{one.makespan_s:.0f} s" + (f", {one.retries} retries" if one.retries else "")


def _arguments() -> tuple[argparse.Namespace, Plan]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=PLANS, default="htex")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--ways", default="", help=f"some of {', '.join(WAYS)}")
    parser.add_argument("--tasks", type=int)
    parser.add_argument("--whole", type=int, help="tasks to run with a whole machine each")
    parser.add_argument("--scale", type=float, default=1.0, help="of the tasks' times")
    parser.add_argument("--node-gb", type=float, default=NODE_GB, help="peaks go with it")
    parser.add_argument("--workers", type=int, default=1, help="of Work Queue, each a node")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    base = PLANS[asked.engine]
    tasks = asked.tasks or base.tasks
    plan = Plan(
        asked.engine,
        tasks,
        base.shortest_s * asked.scale,
        base.longest_s * asked.scale,
        min(tasks, asked.whole or base.whole),
        asked.node_gb,
        asked.workers if asked.engine == "workqueue" else 1,
    )
    possible = [way for way in WAYS if way != "autolabel" or asked.engine == "workqueue"]
    asked.ways = asked.ways.split(",") if asked.ways else possible
    asked.seeds = [int(seed) for seed in asked.seeds.split(",")]
    if not set(asked.ways) <= set(possible):
        parser.error(f"--ways must be some of {', '.join(possible)}")
    available_gb = _available_gb()
    if plan.workers * plan.node_gb > available_gb:
        parser.error(
            f"the tasks are going to hold up to {plan.workers * plan.node_gb:g} GB, "
            f"and {available_gb:.1f} GB are available; try a smaller --node-gb"
        )
    return asked, plan


def _available_gb() -> float:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    [kilobytes] = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(kilobytes) * 1024 / 1e9


def main() -> None:
    asked, plan = _arguments()
    # Parsl and Work Queue look for their programs and for python3 there.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    runs = run_all(plan, asked.seeds, asked.ways)
    if asked.json:
        found = [asdict(line) | {"missed": line.is_missed} for line in lines(runs)]
        print_json(
            {
                "machine": machine(),
                "plan": asdict(plan),
                "runs": [asdict(one) for one in runs],
                "lines": found,
            }
        )
        return
    out = console()
    out.print(f"{plan.engine}, {plan.tasks} tasks, {plan.workers} node(s): {described()}")
    if plan.whole < plan.tasks and "whole machine" in asked.ways:
        out.print(f"The whole machine's time is extrapolated from {plan.whole} tasks.")
    out.print(seeds_table(runs, asked.ways))
    out.print(lines_table(lines(runs)))


if __name__ == "__main__":
    main()
