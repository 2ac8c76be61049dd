"""Which order and which predictor are best for workflows?

Witt et al. (HPCS 2019): 500 workflows of 1000 tasks in five shapes, on a pool of 128 cores
and 1952 GB, each with every predictor, every order, and attempts that fail after 0.1, 0.5 and
0.9 of their time. This counts, as their Fig. 4 does, for how many workflows an order has the
highest memory allocation quality (MAQ) and the shortest makespan, with whatever predictor;
and puts `auto` beside their predictors. By default there are 50 workflows, with `--full` 500.

"Tasks are taken from the head of the queue", so by default nothing goes past a task for which
there is no room. Live it does: `--overtaking`.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

from printing import Line, described, lines_table, machine, table, verdict
from rich.table import Table

from parsl_sizer.cli.output import console, print_json, progress
from parsl_sizer.model import Kind, Resources
from parsl_sizer.simulator.cluster import replay_workflow
from parsl_sizer.simulator.shapes import SHAPES
from parsl_sizer.simulator.workflows import generated
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family

POOL = Resources(cores=128, memory=1952e9)
ORDERS = (
    "fifo",
    *(
        f"{order}-{how}"
        for order in ("bfs", "dfs", "topology-rank", "least-finished-first")
        for how in ("persevere", "postpone")
    ),
)
PREDICTORS = {
    "PC 50": ("percentile:p=50", "power2"),
    "PC 95": ("percentile:p=95", "power2"),
    "LR": ("regression", "power2"),
    "LR mean±": ("regression:offset=mean+-", "power2"),
    "LR mean-": ("regression:offset=mean-", "power2"),
    "LR max-": ("regression:offset=max-", "power2"),
    "Power 2": ("user-estimate", "power2"),
    "Power 10": ("user-estimate", "power10"),
    "Max +20%": ("user-estimate", "max:1.2"),
}
"""Of the paper: the strategy, and how users estimate."""
LEARNING = tuple(name for name in PREDICTORS if name.startswith(("PC", "LR")))
OURS = {"auto": ("auto", "power2")}
LFF = "least-finished-first-persevere"


@dataclass(frozen=True)
class Scenario:
    """One simulation and what came of it."""

    workflow: str
    ttf: float
    predictor: str
    order: str
    maq: float
    makespan_s: float
    retries: float
    """Failed attempts per task."""


def simulated(asked: tuple[str, int, int, float, bool]) -> list[Scenario]:
    """One workflow with every predictor of theirs in every order, and ours in one."""
    shape, seed, tasks, ttf, overtaking = asked
    found = []
    for predictor, (strategy, estimate) in (PREDICTORS | OURS).items():
        workflow = generated(shape, tasks, seed, estimate=estimate)
        for order in ORDERS if predictor in PREDICTORS else (LFF,):
            sized = Categories(family(strategy, Setting((Kind.MEMORY,), "waste")))
            result = replay_workflow(
                workflow, sized, POOL, order=order, overtaking=overtaking, ttf=ttf
            )
            if result.done < len(workflow.rows):
                raise RuntimeError(f"{workflow.name}, {predictor}, {order}: tasks did not finish")
            maq = result.used[Kind.MEMORY] / result.allocated[Kind.MEMORY]
            retries = result.attempts / result.done - 1
            found.append(
                Scenario(workflow.name, ttf, predictor, order, maq, result.makespan_s, retries)
            )
    return found


def everything(
    workflows: int, tasks: int, ttfs: Sequence[float], processes: int, *, overtaking: bool
) -> list[Scenario]:
    shapes = itertools.islice(itertools.cycle(SHAPES), workflows)
    asked = [
        (shape, number // len(SHAPES) + 1, tasks, ttf, overtaking)
        for number, shape in enumerate(shapes)
        for ttf in ttfs
    ]
    found: list[Scenario] = []
    with progress("workflows", len(asked)) as advance, multiprocessing.Pool(processes) as pool:
        for some in pool.imap_unordered(simulated, asked):
            found += some
            advance(1)
    return sorted(found, key=lambda one: (one.ttf, one.workflow, one.predictor, one.order))


def ttfs_of(found: Sequence[Scenario]) -> tuple[float, ...]:
    return tuple(sorted({one.ttf for one in found}))


def winners(found: Sequence[Scenario], ttf: float, figure: str) -> Iterator[tuple[str, str]]:
    """Of each workflow the predictor and order that are best; if several are, all of them."""
    theirs = [one for one in found if one.ttf == ttf and one.predictor in PREDICTORS]
    for _, group in itertools.groupby(theirs, key=lambda one: one.workflow):
        values = [
            (one.maq if figure == "MAQ" else -one.makespan_s, one.predictor, one.order)
            for one in group
        ]
        best = max(value for value, _, _ in values)
        for value, predictor, order in values:
            if math.isclose(value, best, rel_tol=1e-9):
                yield predictor, order


def orders_table(found: Sequence[Scenario]) -> tuple[Table, list[str]]:
    """For how many workflows each order is best, as in Fig. 4."""
    ttfs = ttfs_of(found)
    columns = [f"{figure}, TTF {ttf:g}" for figure in ("MAQ", "makespan") for ttf in ttfs]
    made = table(["order"], columns)
    won = {
        (figure, ttf): Counter(order for _, order in winners(found, ttf, figure))
        for figure in ("MAQ", "makespan")
        for ttf in ttfs
    }
    for order in ORDERS:
        made.add_row(order, *(str(counts[order]) for counts in won.values()))
    missed = []
    for figure in ("MAQ", "makespan") if {0.1, 0.9} <= set(ttfs) else ():
        if won[figure, 0.9].most_common(1)[0][0] != LFF:
            missed.append(f"{LFF} does not win most by {figure} at TTF 0.9")
        if won[figure, 0.1].most_common(1)[0][0] != "fifo":
            missed.append(f"fifo does not win most by {figure} at TTF 0.1")
    return made, missed


def failures_table(found: Sequence[Scenario]) -> tuple[Table, list[str]]:
    """What becomes of MAQ and makespan if failed attempts come first, of all predictors."""
    ttfs = ttfs_of(found)
    made = table(["order"], [f"{what}, TTF {ttf:g}" for what in ("MAQ", "days") for ttf in ttfs])
    means: dict[tuple[str, str, float], float] = {}
    for order in ORDERS:
        for ttf in ttfs:
            mine = [
                one
                for one in found
                if (one.order, one.ttf) == (order, ttf) and one.predictor in LEARNING
            ]
            means["MAQ", order, ttf] = fmean(one.maq for one in mine)
            means["days", order, ttf] = fmean(one.makespan_s for one in mine) / 86400
        made.add_row(
            order,
            *(f"{means['MAQ', order, ttf]:.3f}" for ttf in ttfs),
            *(f"{means['days', order, ttf]:.2f}" for ttf in ttfs),
        )
    missed = [
        f"{order} is not better with persevere at TTF {ttf:g} by MAQ"
        for order in ("bfs", "dfs", "topology-rank", "least-finished-first")
        for ttf in ttfs
        if means["MAQ", f"{order}-persevere", ttf] <= means["MAQ", f"{order}-postpone", ttf]
    ]
    return made, missed


def suited_table(found: Sequence[Scenario]) -> Table:
    """The predictors, each in the order that suits it best: what the choice of order can do."""
    ttfs = ttfs_of(found)
    made = table(["predictor"], [f"MAQ, TTF {ttf:g}" for ttf in ttfs])
    for predictor in PREDICTORS:
        best = []
        for ttf in ttfs:
            mine = [one for one in found if (one.predictor, one.ttf) == (predictor, ttf)]
            best.append(
                max(fmean(one.maq for one in mine if one.order == order) for order in ORDERS)
            )
        made.add_row(predictor, *(f"{maq:.3f}" for maq in best))
    return made


def pairs_table(found: Sequence[Scenario]) -> Table:
    """The pairs of predictor and order that are best most often, as in Fig. 5."""
    ttfs = ttfs_of(found)
    made = table(["TTF", "by"], ["the pairs that win most workflows"])
    for ttf in ttfs:
        for figure in ("MAQ", "makespan"):
            counts = Counter(winners(found, ttf, figure)).most_common(3)
            words = ", ".join(f"{pair[0]} with {pair[1]} ({count})" for pair, count in counts)
            made.add_row(f"{ttf:g}", figure, words)
    return made


def predictors_table(found: Sequence[Scenario]) -> tuple[Table, list[Line]]:
    """The predictors, each over all workflows in the order of Fig. 6."""
    ttfs = ttfs_of(found)
    columns = [f"{what}, TTF {ttf:g}" for what in ("MAQ", "days", "retries") for ttf in ttfs]
    made = table(["predictor"], columns)
    maq: dict[tuple[str, float], float] = {}
    retries: dict[tuple[str, float], float] = {}
    for predictor in PREDICTORS | OURS:
        mine = [one for one in found if one.predictor == predictor and one.order == LFF]
        by_ttf = [[one for one in mine if one.ttf == ttf] for ttf in ttfs]
        for ttf, some in zip(ttfs, by_ttf, strict=True):
            maq[predictor, ttf] = fmean(one.maq for one in some)
            retries[predictor, ttf] = fmean(one.retries for one in some)
        made.add_row(
            predictor,
            *(f"{maq[predictor, ttf]:.3f}" for ttf in ttfs),
            *(f"{median(one.makespan_s for one in some) / 86400:.2f}" for some in by_ttf),
            *(f"{retries[predictor, ttf]:.3f}" for ttf in ttfs),
        )
    lines = [
        Line(
            f"best predictor of the paper ÷ auto, MAQ, TTF {ttf:g}",
            max(maq[name, ttf] for name in PREDICTORS) / maq["auto", ttf],
            1.0,
            "×",
        )
        for ttf in ttfs
    ]
    lines += [
        Line(
            f"auto's retries ÷ those of {name}, TTF {ttfs[-1]:g}",
            retries["auto", ttfs[-1]] / retries[name, ttfs[-1]],
            1.0,
            "×",
        )
        for name in ("LR mean-", "PC 50")
    ]
    return made, lines


def plot(found: Sequence[Scenario], path: Path) -> None:
    """MAQ beside makespan, as Fig. 3, for three predictors and ours."""
    ttfs = ttfs_of(found)
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(ttfs), figsize=(12, 4), sharey=True)
    for axis, ttf in zip(axes, ttfs, strict=True):
        for predictor, sign in (("PC 50", "x"), ("Power 2", "+"), ("LR mean-", "."), ("auto", "o")):
            mine = [one for one in found if one.ttf == ttf and one.predictor == predictor]
            axis.plot(
                [one.maq for one in mine],
                [one.makespan_s / 86400 for one in mine],
                sign,
                label=predictor,
                alpha=0.4,
            )
        axis.set_title(f"failures after {ttf:g} of the time")
        axis.set_xlabel("memory allocation quality")
    axes[0].set_ylabel("makespan, days")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workflows", type=int, default=50)
    parser.add_argument("--full", action="store_true", help="500 workflows: some hours")
    parser.add_argument("--tasks", type=int, default=1000, help="per workflow")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--ttf", default="0.1,0.5,0.9", help="times to failure")
    parser.add_argument("--overtaking", action="store_true", help="as it is live")
    parser.add_argument("--plot", type=Path, help="where to draw MAQ beside makespan")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    count = 500 if asked.full else asked.workflows
    ttfs = [float(text) for text in asked.ttf.split(",")]
    found = everything(count, asked.tasks, ttfs, asked.processes, overtaking=asked.overtaking)
    if asked.plot:
        plot(found, asked.plot)
    if asked.json:
        print_json({"machine": machine(), "scenarios": [asdict(one) for one in found]})
        return
    out = console()
    out.print(f"{count} workflows of {asked.tasks:,} tasks: {described()}")
    orders, missed = orders_table(found)
    out.print(orders)
    out.print(f"As in the paper: {verdict(missed)}")
    out.print(pairs_table(found))
    failures, missed = failures_table(found)
    out.print(failures)
    out.print(f"As in the paper: {verdict(missed)}")
    out.print(suited_table(found))
    predictors, lines = predictors_table(found)
    out.print(predictors)
    out.print(lines_table(lines))


if __name__ == "__main__":
    main()
