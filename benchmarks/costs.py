"""What strategies cost on real traces: replayed here, and as the reference has it.

Memory alone is sized, for the least waste. The data are those of $PARSL_SIZER_DATA.
"""

from __future__ import annotations

import csv
import multiprocessing
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean

from parsl_sizer.cli.compare import everything
from parsl_sizer.cli.output import progress
from parsl_sizer.model import MB, Kind, Resources
from parsl_sizer.report import Metrics
from parsl_sizer.simulator import Row, TraceHindsight, read
from parsl_sizer.simulator.replay import replay
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import BUILT_IN, VARIANTS, family

DATA = Path(os.environ.get("PARSL_SIZER_DATA", Path(__file__).parents[2] / "shared" / "data"))
KINDS = (Kind.MEMORY,)
NODE_MB = 64_000.0
NODE_WITH_ESTIMATES_MB = 131_072.0
"""Of the traces that come with users' estimates: those of Nextflow."""

OURS = "parsl_sizer"
DRAWING = ("greedy-bucketing", "exhaustive-bucketing")
"""What they propose depends on the seed."""
NOT_PUBLISHED = ("hindsight ladder", "reached")
"""Of the reference: the limit, and what an experiment reached."""


@dataclass(frozen=True)
class Run:
    """A strategy on a trace, under stated conditions."""

    trace: str
    spec: str
    lag: int
    ttf: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Cost:
    """What a run cost."""

    maq: float
    waste_mb_s: float
    retries_per_task: float
    impossible: int = 0

    @classmethod
    def mean(cls, costs: Sequence[Cost]) -> Cost:
        return cls(
            fmean(cost.maq for cost in costs),
            fmean(cost.waste_mb_s for cost in costs),
            fmean(cost.retries_per_task for cost in costs),
            costs[0].impossible,
        )


@lru_cache(maxsize=4)
def trace(name: str) -> tuple[list[Row], Resources]:
    """The rows of a trace, and the node that it is replayed on."""
    rows = list(read(DATA / "traces" / f"{name}.csv"))
    has_estimates = any(row.task.requested for row in rows)
    memory = (NODE_WITH_ESTIMATES_MB if has_estimates else NODE_MB) * MB
    return rows, Resources(16, memory, NODE_MB * MB)


def cost_of(run: Run) -> Cost:
    """Replay the trace."""
    rows, node = trace(run.trace)
    hindsight = TraceHindsight(lambda: rows, node)
    setting = Setting(KINDS, "waste", run.seed, hindsight)
    categories = Categories(family(run.spec, setting), kinds=KINDS, lag=run.lag, warn=_fail)
    metrics = Metrics(node)
    for task in replay(hindsight.followed(rows), categories, node, ttf=run.ttf):
        metrics.add(task.row.peak, task.row.time_s, task.outcomes, impossible=task.impossible)
    memory = metrics.kinds[Kind.MEMORY]
    return Cost(
        memory.maq or 0.0, memory.waste / MB, memory.retries / memory.tasks, memory.impossible
    )


def _fail(sentence: str) -> None:
    """A strategy that has to be mended would be judged by its replacement."""
    raise RuntimeError(sentence)


def published() -> dict[str, str]:
    """What the papers propose, with the options of their tables: name and specification."""
    theirs = [entry.name for entry in BUILT_IN if entry.paper != OURS and not entry.replay_only]
    specs = {name: VARIANTS.get(name, name) for name in everything()}
    return {name: spec for name, spec in specs.items() if spec.partition(":")[0] in theirs}


Costs = Mapping[tuple[str, str, int], Cost]
"""By trace, specification and lag."""


def reference() -> Costs:
    """The published strategies as somebody else replayed them, at a time to failure of 1."""
    path = DATA / "reference.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (row["trace"], VARIANTS.get(row["strategy"], row["strategy"]), int(row["lag"])): Cost(
                float(row["maq"]), float(row["waste_mb_s"]), float(row["retries_per_task"])
            )
            for row in csv.DictReader(file)
            if row["strategy"] not in NOT_PUBLISHED
        }


def replayed(
    traces: Iterable[str], specs: Iterable[str], lags: Iterable[int], ttf: float, seeds: int
) -> Costs:
    """Every strategy on every trace at every lag; where the seed matters, the mean of several."""
    runs = [
        Run(trace, spec, lag, ttf, seed)
        for trace in traces
        for lag in lags
        for spec in specs
        for seed in range(seeds if spec in DRAWING else 1)
    ]
    found: dict[tuple[str, str, int], list[Cost]] = {}
    processes = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=processes) as pool, progress("runs", len(runs)) as step:
        waiting = {pool.submit(cost_of, run): run for run in runs}
        for done in as_completed(waiting):
            run = waiting[done]
            found.setdefault((run.trace, run.spec, run.lag), []).append(done.result())
            step(1)
    return {key: Cost.mean(costs) for key, costs in found.items()}
