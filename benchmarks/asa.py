"""What do blocks asked for ahead of time save? The tables and Figure 5 of the ASA paper.

Souza et al., "ASA - The Adaptive Scheduling Algorithm", 2024: three workflows at six scales,
as one big job, stage by stage, and with blocks asked for as early as the queue is thought to
take. The planner is the one that runs live; queue and stages are simulated, with the waits and
times of the paper's tables. What is ours is said in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean, pstdev

from asa_convergence import SEEDS as SEEDS_OF_FIGURE_5
from asa_convergence import SEEDS_OF_THEOREM, convergence, plot, theorem
from papers_004 import TABLE_1, TABLE_2, Strategy, Table1, Table2
from printing import Line, described, lines_table, table
from rich.table import Table

from parsl_sizer.cli.output import console
from parsl_sizer.scaling import Geometry, Planner, Rule, Stage, WaitEstimator
from parsl_sizer.simulator.batch import Queue, drawn, lognormal
from parsl_sizer.simulator.staged import StagedResult, StagedWorkflow, replay_staged
from parsl_sizer.simulator.staged_shapes import PATTERNS, geometries, parallel_share, shaped

SEEDS = 20
WEIGHTS = {"P": 9, "S": 1}
"""How what Table 1 does not tell of waits is divided among stages: mostly to parallel ones."""
SPREAD = {(row.workflow, row.cores): row.real_h[1] / row.real_h[0] for row in TABLE_2}
"""How much waits vary, relative to their mean, at each scale of a workflow."""
MAX_BLOCKS = 8
SUBMISSIONS = 60
FRONT_S = 100_000.0
Case = tuple[str, int]


def stage_waits(row: Table1) -> list[float]:
    """The mean wait of each stage: the first parallel one waits as the big job does.

    All together wait as long as Table 1 says of the strategy with a block for each stage.
    """
    pattern = PATTERNS[row.workflow]
    first = pattern.index("P")
    waited = min(row.big_job.waited_s, row.per_stage.waited_s)
    weights = [0 if at == first else WEIGHTS[kind] for at, kind in enumerate(pattern)]
    rest = (row.per_stage.waited_s - waited) / sum(weights)
    return [waited if at == first else rest * weight for at, weight in enumerate(weights)]


def table_1_queue(row: Table1, policy: str, run: str) -> Queue:
    """One that lets the n-th block of a geometry wait as the n-th stage that needs it.

    In the same run it is equally lucky under every policy.
    """
    shape, pattern = geometries(row.cores), PATTERNS[row.workflow]
    means: defaultdict[Geometry, list[float]] = defaultdict(list)
    for kind, mean in zip(pattern, stage_waits(row), strict=True):
        means[shape[kind]].append(mean)
    if policy == "big-job":
        means[shape["P"]] = [row.big_job.waited_s]
    asked: defaultdict[Geometry, int] = defaultdict(int)

    def wait(geometry: Geometry, _: float) -> float:
        mean = means[geometry][min(asked[geometry], len(means[geometry]) - 1)]
        asked[geometry] += 1
        random = Random(f"{run}, {row.workflow}, {geometry}, {asked[geometry]}")
        return lognormal(random, mean, mean * SPREAD[row.workflow, row.cores])

    return wait


def simulated(
    policy: str,
    *,
    rounds: int = 1,
    known: float = 1.0,
    accrues: bool = True,
    rule: Rule | None = None,
    seeds: int = SEEDS,
) -> dict[Case, list[StagedResult]]:
    """The last of so many rounds of all 18 cases, which share what is learned; for each seed."""
    found: defaultdict[Case, list[StagedResult]] = defaultdict(list)
    for seed in range(seeds):
        random = Random(f"{policy} {seed}")
        waits = WaitEstimator(rule or Rule())
        for round_ in range(rounds):
            for row in sorted(TABLE_1, key=lambda row: row.cores):
                execution_s = row.big_job.makespan_s - row.big_job.waited_s
                share = parallel_share(row.cores, row.per_stage.core_h, row.big_job.core_h)
                workflow = shaped(row.workflow, row.cores, execution_s, share, known=known)
                planner = Planner(policy, waits, random, max_blocks=MAX_BLOCKS)
                queue = table_1_queue(row, policy, f"{seed}, {round_}")
                results = replay_staged([(workflow, planner)], queue, accrues=accrues)
                if round_ == rounds - 1:
                    found[row.workflow, row.cores] += results
    return found


def mean(results: list[StagedResult]) -> Strategy:
    return Strategy(
        fmean(one.waited_s for one in results),
        fmean(one.makespan_s for one in results),
        fmean(one.core_s for one in results) / 3600,
    )


def table_1(everything: dict[str, dict[Case, list[StagedResult]]]) -> Table:
    policies = ("big-job", "per-stage", "asa")
    columns = [f"{policy}: {whose}" for policy in policies for whose in ("paper", "ours")]
    shown = table(["workflow", "cores"], [*columns, "asa-naive: ours"])
    for row in TABLE_1:
        cells = []
        for policy, printed in zip(policies, row[2:], strict=True):
            cells += [_cell(printed), _cell(mean(everything[policy][row.workflow, row.cores]))]
        cells.append(_cell(mean(everything["asa-naive"][row.workflow, row.cores])))
        shown.add_row(row.workflow, str(row.cores), *cells)
    return shown


def _cell(found: Strategy) -> str:
    return f"{found.waited_s:.0f} / {found.makespan_s:.0f} / {found.core_h:.0f}"


def ratios(
    found: dict[Case, list[StagedResult]], everything: dict[str, dict[Case, list[StagedResult]]]
) -> tuple[float, float]:
    """Makespan over that of the big job, core-hours over those of per-stage: mean of 18 cases."""
    makespans = [mean(found[c])[1] / mean(everything["big-job"][c])[1] for c in found]
    core_hours = [mean(found[c])[2] / mean(everything["per-stage"][c])[2] for c in found]
    return fmean(makespans), fmean(core_hours)


def averages(seeds: int) -> tuple[Table, Table, list[Line]]:
    run = partial(simulated, seeds=seeds)
    everything = {name: run(name) for name in ("big-job", "per-stage", "asa", "asa-naive")}
    variants = {
        "per-stage": everything["per-stage"],
        "asa, nothing known before": everything["asa"],
        "asa, third round": run("asa", rounds=3),
        "asa, stages 20 % longer than expected": run("asa", known=1 / 1.2),
        "asa, stages 20 % shorter than expected": run("asa", known=1 / 0.8),
        "asa, waits begin after the block in front": run("asa", accrues=False),
        "asa, Algorithm 1 as printed": run("asa", rule=Rule(information="sampled", share=0)),
        "asa, absolute loss": run("asa", rule=Rule(loss="absolute")),
        "asa-naive, nothing known before": everything["asa-naive"],
        "asa-naive, third round": run("asa-naive", rounds=3),
    }
    shown = table(
        ["policy"], ["makespan ÷ big-job", "core-hours ÷ per-stage", "misses", "worst miss ÷ bound"]
    )
    worst = 0.0
    for name, found in variants.items():
        makespan, core_hours = ratios(found, everything)
        misses = [miss for some in found.values() for one in some for miss in one.misses]
        high = max((miss.core_s / miss.bound_core_s for miss in misses), default=0.0)
        worst = max(worst, round(high, 9))  # a virtual clock has 16 digits too
        shown.add_row(name, f"{makespan:.3f}", f"{core_hours:.3f}", str(len(misses)), f"{high:.3f}")
    makespan, core_hours = ratios(everything["asa"], everything)
    paper = [row.asa.makespan_s / row.big_job.makespan_s for row in TABLE_1]
    lines = [
        Line("asa: makespan ÷ big-job, mean of 18 cases", makespan, 1.06, "×"),
        Line("the same in the paper's Table 1", fmean(paper), None, "×"),
        Line("asa: core-hours ÷ per-stage, mean of 18 cases", core_hours, 1.02, "×"),
        Line(
            "the same in the paper's Table 1",
            fmean(row.asa.core_h / row.per_stage.core_h for row in TABLE_1),
            None,
            "×",
        ),
        Line("worst miss ÷ its bound", worst, 1.0, "×"),
    ]
    return table_1(everything), shown, lines


class Recording(WaitEstimator):
    """Remembers what was estimated and what came."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[float, float]] = []

    def observe(
        self,
        geometry: Geometry,
        wait_s: float,
        random: Random,
        *,
        estimate: float | None = None,
        at_most: bool = False,
    ) -> None:
        if estimate is not None and geometry.queue != "front":
            self.pairs.append((wait_s, estimate))
        super().observe(geometry, wait_s, random, estimate=estimate, at_most=at_most)


def submitted(row: Table2, waits: Recording, random: Random) -> list[StagedResult]:
    """60 stages whose turn comes a minute apart, each after one that is known to end then."""
    geometry, front = geometries(row.cores)["P"], Geometry(queue="front")
    hours, spread = row.real_h
    queue = drawn(random, {geometry: (hours * 3600, spread * 3600), front: (0.0, 0.0)})
    workflows = []
    for number in range(SUBMISSIONS):
        times = FRONT_S + 60.0 * number, 60.0
        stages = Stage("front", front, expected_s=times[0]), Stage("block", geometry)
        planner = Planner("asa-naive", waits, random, max_blocks=2)
        workflows.append((StagedWorkflow(row.workflow, stages, times), planner))
    return replay_staged(workflows, queue)


def table_2() -> Table:
    columns = ["real wait, h", "estimate, h", "perceived, h", "hit, %", "miss, %", "a miss, core-h"]
    shown = table(["workflow", "cores", "whose"], columns)
    kept: dict[int, Recording] = {}
    for row in TABLE_2:
        waits = kept.setdefault(row.cores, Recording())
        waits.pairs.clear()
        found = submitted(row, waits, Random(f"{row.workflow} {row.cores}"))
        misses = [miss for one in found for miss in one.misses]
        missed = 100 * sum(bool(one.misses) for one in found) / SUBMISSIONS
        figures = [
            [real / 3600 for real, _ in waits.pairs],
            [estimate / 3600 for _, estimate in waits.pairs],
            [one.waits_s[1] / 3600 for one in found],
        ]
        cells = [f"{fmean(some):.1f}±{pstdev(some):.1f}" for some in figures]
        costs = [miss.core_s / 3600 for miss in misses] or [0.0]
        cells += [f"{100 - missed:.0f}", f"{missed:.0f}", f"{fmean(costs):.1f}±{pstdev(costs):.1f}"]
        printed = [f"{one[0]:g}±{one[1]:g}" for one in (row.real_h, row.asa_h, row.perceived_h)]
        printed += [f"{row.hit:g}", f"{row.miss:g}", f"{row.overhead_h[0]:g}±{row.overhead_h[1]:g}"]
        shown.add_row(row.workflow, str(row.cores), "paper", *printed)
        shown.add_row("", "", "ours", *cells)
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plot", type=Path, help="where to draw Figure 5")
    parser.add_argument("--only", choices=("convergence", "tables"), help="one half of it")
    parser.add_argument(
        "--seeds",
        type=int,
        help=f"of every simulation (default: {SEEDS} for the tables, {SEEDS_OF_FIGURE_5} for "
        f"Figure 5, {SEEDS_OF_THEOREM} for Theorem 1)",
    )
    asked = parser.parse_args()
    out = console()
    out.print(f"ASA: {described()}")
    lines: list[Line] = []
    if asked.plot:
        plot(asked.plot)
    if asked.only != "tables":
        seeds = asked.seeds or SEEDS_OF_FIGURE_5
        shown, lines = convergence(seeds)
        out.print(
            f"Figure 5: iterations until 8 of 10 estimates are right, median of {seeds} seeds"
        )
        out.print(shown)
        out.print("Theorem 1: what the default policy lost in 1000 iterations, and its bound")
        out.print(theorem(asked.seeds or SEEDS_OF_THEOREM))
    if asked.only != "convergence":
        first, second, more = averages(asked.seeds or SEEDS)
        lines += more
        out.print("Table 1: waited, s / makespan, s / core-hours")
        out.print(first)
        out.print(second)
        out.print("Table 2: 60 submissions of each geometry, without dependencies")
        out.print(table_2())
    out.print(lines_table(lines))


if __name__ == "__main__":
    main()
