"""How fast is the simulator, and does a decision cost more the more tasks wait?

Three measurements of the sizer that runs live, driven by a virtual clock: task events
(submitted, started, ended) per minute; 1,000 nodes with 10^5 tasks in one run, and the memory
that takes; and the time per task as more and more of them wait for the same nodes. Time is that
of the processor, so other work on the machine does not count. `--plot` draws the last one.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from printing import Line, described, lines_table, machine, table
from rich.table import Table

from parsl_sizer.cli.output import console, print_json, say
from parsl_sizer.model import Kind, Resources, TaskInfo
from parsl_sizer.simulator import Row
from parsl_sizer.simulator.cluster import replay_cluster
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family

NODE = Resources(cores=16, memory=64e9, disk=64e9)
CATEGORIES = 10
EVENTS_PER_MINUTE = 1e6
LARGE = (100_000, 1_000)
"""Tasks and nodes."""
MOST_MB = 1000.0
WAITING = tuple(1000 * 2**power for power in range(7))
GROWTH = 1.5
"""A decision may cost so many times as much with 64,000 waiting as with 1,000: their
logarithms are as 1.6 to 1."""


@dataclass(frozen=True)
class Speed:
    """One replay."""

    strategy: str
    tasks: int
    nodes: int
    attempts: int
    seconds: float

    @property
    def events_per_minute(self) -> float:
        return (self.tasks + 2 * self.attempts) / self.seconds * 60

    @property
    def us_per_attempt(self) -> float:
        return self.seconds / self.attempts * 1e6


def rows(tasks: int) -> Iterator[Row]:
    """Tasks of one core each, in turn of ten categories with 2 to 20 GB."""
    random = Random(1)
    for number in range(tasks):
        category = number % CATEGORIES
        peak = random.gauss(2e9 * (1 + category), 2e8)
        task = TaskInfo(number, f"c{category}", requested={Kind.CORES: 1.0})
        yield Row(number, task, {Kind.MEMORY: peak}, random.uniform(50, 150))


def speed(strategy: str, tasks: int, nodes: int) -> Speed:
    categories = Categories(family(strategy, Setting((Kind.MEMORY,), "waste")))
    before = time.process_time()
    result = replay_cluster(rows(tasks), categories, NODE, nodes=nodes)
    seconds = time.process_time() - before
    if result.done < tasks:
        raise RuntimeError(f"{tasks - result.done} of {tasks} tasks did not finish")
    return Speed(strategy, tasks, nodes, result.attempts, seconds)


def growth_table(found: list[Speed]) -> Table:
    made = table(["waiting"], ["µs per attempt", "÷ the first", "log ÷ log"])
    first = found[0]
    for one in found:
        made.add_row(
            f"{one.tasks:,}",
            f"{one.us_per_attempt:.1f}",
            f"{one.us_per_attempt / first.us_per_attempt:.2f}",
            f"{math.log(one.tasks) / math.log(first.tasks):.2f}",
        )
    return made


def plot(found: list[Speed], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 4))
    axis.plot([one.tasks for one in found], [one.us_per_attempt for one in found], "o-")
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    axis.set_xlabel("tasks that wait")
    axis.set_ylabel("µs per attempt")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--plot", type=Path, help="where to draw the cost of a decision")
    parser.add_argument("--quick", action="store_true", help="without 1,000 nodes")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    growing = [speed(asked.strategy, tasks, 10) for tasks in WAITING]
    plain = speed("whole-machine", 50_000, 100)
    lines = [
        Line(
            f"{one.strategy}, {one.tasks:,} tasks on {one.nodes} nodes: µs per event",
            60e6 / one.events_per_minute,
            60e6 / EVENTS_PER_MINUTE,
            "µs",
        )
        for one in (plain, growing[-1])
    ]
    times = growing[-1].us_per_attempt / growing[0].us_per_attempt
    lines.append(Line("64,000 waiting ÷ 1,000 waiting, time per attempt", times, GROWTH, "×"))
    large = None
    if not asked.quick:
        say("1,000 nodes and 10^5 tasks: some minutes")
        large = speed(asked.strategy, *LARGE)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        lines += [
            Line("1,000 nodes, 10^5 tasks: time of the processor", large.seconds, None, "s"),
            Line(
                "1,000 nodes, 10^5 tasks: µs per event",
                60e6 / large.events_per_minute,
                60e6 / EVENTS_PER_MINUTE,
                "µs",
            ),
            Line("1,000 nodes, 10^5 tasks: memory", memory, MOST_MB, "MB"),
        ]
    if asked.plot:
        plot(growing, asked.plot)
    if asked.json:
        runs = [*growing, plain, *([large] if large else [])]
        print_json({"machine": machine(), "runs": [asdict(one) for one in runs]})
        return
    out = console()
    out.print(described())
    out.print(growth_table(growing))
    out.print(lines_table(lines))


if __name__ == "__main__":
    main()
