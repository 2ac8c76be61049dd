"""The simulations of tarema.py: workflows again and again, on machines that differ."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from parsl_sizer.cli.output import progress
from parsl_sizer.model import Kind, OptOut, Outcome
from parsl_sizer.placement import node_labels, policy
from parsl_sizer.simulator.machines import PAPER_CLUSTERS, Machine, paper_cluster, without
from parsl_sizer.simulator.unequal import UnequalResult, replay_unequal, together
from parsl_sizer.simulator.workflows import Workflow, recorded
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family

DATA = Path(os.environ.get("PARSL_SIZER_DATA", Path(__file__).parents[2] / "shared" / "data"))
STANDARD = ("round-robin", "fair", "fill-nodes")
POLICIES = (*STANDARD, "sjfn", "tarema")
ALPHAS = (0.0, 0.1, 0.2, 0.4)
BEYOND = (0.8, 1.6)
"""Further ones, for tarema and sjfn alone: where do they meet?"""
OFF = (0.0, 0.2, 0.4)
NEEDS = {Kind.CORES: 2.0, Kind.MEMORY: 5e9}


@dataclass(frozen=True)
class Run:
    """One simulation and what came of it; of two workflows the sum of their times."""

    workflow: str
    cluster: str
    off: float
    alpha: float
    policy: str
    number: int
    runtime_s: float
    evenness: float


def files(names: Sequence[str] | None = None) -> list[Path]:
    """Return the files of the workflows of these names, by default of all."""
    paths = sorted((DATA / "workflows").glob("*.json"))
    return [path for path in paths if names is None or path.stem in names]


def workflows(paths: Sequence[Path]) -> dict[str, Workflow]:
    """Read workflows; each task has what the paper gave to it."""
    found = {}
    for path in paths:
        read = recorded(path)
        rows = tuple(
            replace(
                row,
                task=row.task._replace(requested=NEEDS, opt_outs=frozenset({OptOut.FIXED})),
            )
            for row in read.rows
        )
        found[read.name] = replace(read, rows=rows)
    return found


def of_nextflow(paths: Sequence[Path]) -> list[str]:
    """Return the names of those that Nextflow ran, as it did the paper's."""
    systems = {path.stem: json.loads(path.read_bytes()).get("runtimeSystem", {}) for path in paths}
    return [name for name, system in systems.items() if system.get("name") == "Nextflow"]


def repeated(
    workflow: Workflow, machines: Sequence[Machine], name: str, alpha: float, runs: int
) -> Iterator[UnequalResult]:
    """One run after the other, each knowing what happened in those before."""
    labels = _labels(machines)
    fixed = family("user-estimate", Setting((Kind.MEMORY,)))
    before: list[Outcome] = []
    for number in range(runs):
        shuffled = list(machines)
        Random(number).shuffle(shuffled)
        chosen = policy(name, labels)
        result = replay_unequal(
            workflow,
            Categories(fixed),
            shuffled,
            policy=chosen,
            order=(chosen and chosen.order) or "first-come",
            alpha=alpha,
            before=before,
        )
        before += result.outcomes
        yield result


def _labels(machines: Sequence[Machine]) -> Mapping[str, Mapping[str, int]]:
    groups: dict[str, list[str]] = {}
    for one in machines:
        groups.setdefault(one.node.group, []).append(one.node.name)
    return node_labels(groups, {one.node.name: one.profile for one in machines})


def runtime_s(result: UnequalResult, names: Sequence[str]) -> float:
    """The sum of the times of the workflows of these names."""
    if len(names) == 1:
        return result.makespan_s
    ends = dict.fromkeys(names, 0.0)
    for outcome in result.outcomes:
        name = str(outcome.attempt.task.task_id).partition("/")[0]
        ends[name] = max(ends[name], outcome.ended_at)
    return math.fsum(ends.values())


def everything(runs: int, paths: Sequence[Path]) -> list[Run]:
    """Simulate each workflow alone, and each pair of those that Nextflow ran."""
    known = workflows(paths)
    pairs = list(itertools.combinations(of_nextflow(paths), 2))
    asked: list[tuple[tuple[str, ...], float]] = [((name,), 0.0) for name in known]
    asked += [(pair, off) for pair in pairs for off in OFF]
    plan = list(itertools.product(asked, PAPER_CLUSTERS, ALPHAS, POLICIES))
    alone = asked[: len(known)]
    plan += itertools.product(alone, PAPER_CLUSTERS, BEYOND, ("sjfn", "tarema"))
    clusters = {
        (name, off): without(paper_cluster(name), off) for name in PAPER_CLUSTERS for off in OFF
    }
    found = []
    with progress("simulations", len(plan)) as advance:
        for (names, off), cluster, alpha, name in plan:
            both = [known[one] for one in names]
            workflow = both[0] if len(both) == 1 else together(*both)
            results = repeated(workflow, clusters[cluster, off], name, alpha, runs)
            for number, result in enumerate(results, start=1):
                time_s = runtime_s(result, names)
                found.append(
                    Run(workflow.name, cluster, off, alpha, name, number, time_s, result.evenness)
                )
            advance(1)
    return found
