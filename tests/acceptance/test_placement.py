"""Once tasks are known tarema is faster than schedulers that look at room only, and more even
in use than the one that looks at speed only.

All workflows of WfCommons, on one of the paper's clusters; benchmarks/tarema.py has the rest.
"""

from __future__ import annotations

import math
import os
import random
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from parsl_sizer.model import Kind, OptOut, Outcome
from parsl_sizer.placement import node_labels, policy
from parsl_sizer.simulator.machines import paper_cluster
from parsl_sizer.simulator.unequal import UnequalResult, replay_unequal
from parsl_sizer.simulator.workflows import Workflow, recorded
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Setting, catalog

NEEDS = {Kind.CORES: 2.0, Kind.MEMORY: 5e9}
MACHINES = paper_cluster("5;4;4;2")
FAMILY = catalog.family("user-estimate", Setting((Kind.MEMORY,)))


@pytest.fixture(scope="module")
def workflows(root: Path) -> list[Workflow]:
    folder = Path(os.environ.get("PARSL_SIZER_DATA", root.parent / "shared" / "data")) / "workflows"
    paths = sorted(folder.glob("*.json"))
    if not paths:
        pytest.skip(f"there are no workflows in {folder}; name their folder in PARSL_SIZER_DATA")
    return [_sized(recorded(path)) for path in paths]


def _sized(workflow: Workflow) -> Workflow:
    """Every task with the paper's 2 cores and 5 GB."""
    fixed = frozenset({OptOut.FIXED})
    rows = [
        replace(row, task=row.task._replace(requested=NEEDS, opt_outs=fixed))
        for row in workflow.rows
    ]
    return replace(workflow, rows=tuple(rows))


def second_run(workflow: Workflow, name: str) -> UnequalResult:
    groups: dict[str, list[str]] = {}
    for one in MACHINES:
        groups.setdefault(one.node.group, []).append(one.node.name)
    labels = node_labels(groups, {one.node.name: one.profile for one in MACHINES})
    before: list[Outcome] = []
    for run in range(2):
        shuffled = random.Random(run).sample(MACHINES, len(MACHINES))
        chosen = policy(name, labels)
        order = (chosen and chosen.order) or "first-come"
        result = replay_unequal(
            workflow, Categories(FAMILY), shuffled, policy=chosen, order=order, before=before
        )
        before = result.outcomes
    return result


def test_tarema_is_faster_than_standard_schedulers_and_more_even_than_the_fastest_node(
    workflows: list[Workflow],
) -> None:
    names = ("round-robin", "fair", "fill-nodes", "sjfn", "tarema")
    results = {name: [second_run(workflow, name) for workflow in workflows] for name in names}
    time_s = {
        name: math.exp(fmean(math.log(result.makespan_s) for result in some))
        for name, some in results.items()
    }
    even = {name: fmean(result.evenness for result in some) for name, some in results.items()}
    for standard in ("round-robin", "fair", "fill-nodes"):
        assert time_s["tarema"] < time_s[standard]
    assert even["tarema"] > even["sjfn"]
