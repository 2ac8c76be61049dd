"""Do tasks gain when a few of a new category run before the others?

Every trace of $PARSL_SIZER_DATA is replayed with `auto` on a cluster that 32 of its tasks
fill, all submitted at once: without a gate, and with one for 2 and 3 canaries. Memory is sized
for the least waste, an attempt fails at the end of its task's time, and every task takes the
cores that it was measured to use, or one.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, geometric_mean

from costs import DATA, trace
from printing import described, machine, table
from rich.table import Table

from parsl_sizer.cli.output import console, print_json, progress, say
from parsl_sizer.model import Kind, Resources
from parsl_sizer.placement import Gate
from parsl_sizer.simulator import Row
from parsl_sizer.simulator.cluster import replay_cluster
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family

IN_FLIGHT = 32
CANARIES = (0, 2, 3)
ROWS = 6000
"""Of longer traces so many are replayed: it is their beginning that matters."""


@dataclass(frozen=True)
class Effect:
    """What a trace cost with so many canaries; 0 is without a gate."""

    trace: str
    categories: int
    nodes: int
    canaries: int
    waste: float
    retries: float
    """Failed attempts per task."""
    makespan_s: float


def on_cores(rows: Sequence[Row], node: Resources) -> list[Row]:
    """The rows, each with a request for its cores."""
    made = []
    for row in rows:
        cores = min(node.cores, max(1, math.ceil(row.peak.get(Kind.CORES, 1.0))))
        requested = {**row.task.requested, Kind.CORES: float(cores)}
        made.append(replace(row, task=row.task._replace(requested=requested)))
    return made


def effects(name: str) -> list[Effect]:
    """One trace without and with a gate."""
    rows, node = trace(name)
    rows = on_cores(rows[:ROWS], node)
    share = fmean(
        max(
            row.task.requested[Kind.CORES] / node.cores,
            row.peak.get(Kind.MEMORY, 0.0) / node.memory,
        )
        for row in rows
    )
    nodes = max(2, round(IN_FLIGHT * share))
    found = []
    for canaries in CANARIES:
        result = replay_cluster(
            rows,
            Categories(family("auto", Setting((Kind.MEMORY,), "waste"))),
            node,
            nodes=nodes,
            gate=Gate(canaries) if canaries else None,
        )
        waste = result.allocated[Kind.MEMORY] - result.used[Kind.MEMORY]
        retries = result.attempts / result.done - 1
        categories = len({row.task.category for row in rows})
        found.append(Effect(name, categories, nodes, canaries, waste, retries, result.makespan_s))
    return found


def effects_table(found: Sequence[Sequence[Effect]]) -> Table:
    """Each trace: waste and makespan as ratios to those without a gate."""
    columns = ["categories", "nodes", "retries"]
    for canaries in CANARIES[1:]:
        columns += [f"waste, {canaries}", f"retries, {canaries}", f"makespan, {canaries}"]
    made = table(["trace"], columns)
    for without, *gated in found:
        cells = [str(without.categories), str(without.nodes), f"{without.retries:.3f}"]
        for one in gated:
            cells += [
                f"{one.waste / without.waste:.3f} ×",
                f"{one.retries:.3f}",
                f"{one.makespan_s / without.makespan_s:.3f} ×",
            ]
        made.add_row(without.trace, *cells)
    cells = ["", "", f"{fmean(without.retries for without, *_ in found):.3f}"]
    for at in range(1, len(CANARIES)):
        pairs = [(row[at], row[0]) for row in found]
        cells += [
            f"{geometric_mean(one.waste / without.waste for one, without in pairs):.3f} ×",
            f"{fmean(one.retries for one, _ in pairs):.3f}",
            f"{geometric_mean(one.makespan_s / base.makespan_s for one, base in pairs):.3f} ×",
        ]
    made.add_row("mean", *cells)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", help="names, by default all")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    known = sorted(path.stem for path in (DATA / "traces").glob("*.csv"))
    names = asked.traces.split(",") if asked.traces else known
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"there is no trace {unknown[0]!r}; there are {', '.join(known)}")
    if not names:
        say("There are no traces here, so nothing is measured: set PARSL_SIZER_DATA.")
        return
    found = []
    with progress("traces", len(names)) as advance:
        for name in names:
            found.append(effects(name))
            advance(1)
    if asked.json:
        print_json({"machine": machine(), "effects": [asdict(one) for row in found for one in row]})
        return
    out = console()
    out.print(f"{IN_FLIGHT} tasks in flight, time to failure 1: {described()}")
    out.print(effects_table(found))


if __name__ == "__main__":
    main()
