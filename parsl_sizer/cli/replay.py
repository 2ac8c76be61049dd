"""``parsl-sizer replay``: what one strategy would have cost on a trace."""

from __future__ import annotations

import sys
from argparse import Namespace

from rich.table import Table

from parsl_sizer.report import summary
from parsl_sizer.report.metrics import KINDS
from parsl_sizer.report.text import UNKNOWN, category_table, number, replay_table
from parsl_sizer.simulator.cluster import ClusterResult, replay_cluster

from .measure import Bench, Measured, Trace, conditions, described, measure, opened
from .output import Advance, console, print_json, progress, say


def run(arguments: Namespace) -> None:
    with opened(arguments.trace) as trace:
        bench = Bench.of(trace, arguments)
        categories = bench.categories(arguments.strategy, lag=arguments.lag)
        total = trace.lines() if sys.stderr.isatty() else None
        with progress(arguments.strategy, total) as advance:
            measured = measure(bench, categories, advance, per_category=arguments.per_category)
        cluster = None
        if arguments.nodes:
            with progress(f"{arguments.nodes} nodes", total) as advance:
                cluster = _on_cluster(trace, arguments, advance)
        warning = measured.impossible.sentence()
        if warning:
            say(warning)
        if arguments.json:
            figures = _as_json(arguments, measured)
            if cluster:
                figures["cluster"] = _cluster_json(cluster)
            print_json(figures)
        else:
            _show(arguments, trace, measured, cluster)


def _on_cluster(trace: Trace, arguments: Namespace, advance: Advance) -> ClusterResult:
    # Tasks may wait in the queue to the end: what hindsight knows of them is kept.
    bench = Bench.of(trace, arguments, keep=None)
    return replay_cluster(
        bench.rows(),
        bench.categories(arguments.strategy, lag=0),
        arguments.node,
        nodes=arguments.nodes,
        ttf=arguments.ttf,
        settled=lambda task: advance(1),
    )


def _as_json(arguments: Namespace, measured: Measured) -> dict[str, object]:
    asked = conditions(arguments)
    return {
        "trace": asked.pop("trace"),
        "strategy": arguments.strategy,
        **asked,
        "seconds": measured.seconds,
        **summary(measured.metrics),
    }


def _cluster_json(cluster: ClusterResult) -> dict[str, object]:
    return {
        "nodes": cluster.nodes,
        "makespan_s": cluster.makespan_s,
        "tasks_per_hour": cluster.tasks_per_hour,
        "utilisation": {kind.value: cluster.utilisation.get(kind) for kind in KINDS},
        "occupancy": {kind.value: cluster.occupancy.get(kind) for kind in KINDS},
        "done": cluster.done,
        "attempts": cluster.attempts,
        "exhausted": cluster.exhausted + cluster.impossible,
        "impossible": cluster.impossible,
    }


def _show(
    arguments: Namespace, trace: Trace, measured: Measured, cluster: ClusterResult | None
) -> None:
    metrics, out = measured.metrics, console()
    out.print(f"{trace.name}: {metrics.tasks:,} tasks sized by {arguments.strategy}")
    out.print(described(arguments))
    out.print()
    out.print(replay_table(metrics))
    if metrics.categories:
        kind = next((kind for kind in KINDS if metrics.kinds[kind].tasks), KINDS[0])
        out.print()
        out.print(f"{kind.value} by category")
        out.print(category_table(metrics.categories, kind))
    if cluster:
        out.print()
        out.print(_on_nodes(cluster))
        out.print(_cluster_table(cluster))


def _on_nodes(cluster: ClusterResult) -> str:
    nodes = "1 node" if cluster.nodes == 1 else f"{cluster.nodes:,} nodes"
    return (
        f"on {nodes}: {cluster.done:,} tasks done with {cluster.attempts:,} attempts in "
        f"{number(cluster.makespan_s / 3600)} h, {number(cluster.tasks_per_hour)} an hour"
    )


def _cluster_table(cluster: ClusterResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for kind in KINDS:
        table.add_column(kind.value, justify="right")
    for label, shares in (
        ("utilisation: used of the cluster", cluster.utilisation),
        ("occupancy: allocated of the cluster", cluster.occupancy),
    ):
        cells = (f"{100 * shares[kind]:.1f} %" if kind in shares else UNKNOWN for kind in KINDS)
        table.add_row(label, *cells)
    return table
