"""Figs. 10 and 11 of Tovar et al., and their rows of Fig. 12, beside ours.

B. Tovar et al., "A Job Sizing Strategy for High-Throughput Scientific Workflows",
IEEE TPDS 2018. The first allocations are those of the strategies `min-waste` (equation
2) and `max-throughput` (equation 3) after the whole trace, in bins of 50 MB. What the
paper leaves open, in the reading with which all cells of Figs. 10 and 11 agree:

- a task that fails is retried with the largest peak of the whole workflow;
- waste is the share of allocation x time that was not used;
- throughput with categories is the mean of equation 3 over the categories by their
  number of tasks, relative to the largest peak for every task;
- tasks of BWA without a run time are left out.

In Fig. 12 the column without categories is equation 3 over the whole trace in the same
reading. How the paper weighs categories in the columns "online + cats." and "oracle" it
does not say, and those of BWA's memory are above what Fig. 11 has; ours are shown in the
reading of Figs. 10 and 11, offline and replayed online through the live code.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from parsl_sizer.model import MB, Kind, Resources
from parsl_sizer.simulator.replay import replay
from parsl_sizer.simulator.trace import Row, read
from parsl_sizer.sizing.categories import Categories
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family
from parsl_sizer.strategies.first_allocation import FirstAllocation
from parsl_sizer.strategies.max_throughput import MaxThroughput
from parsl_sizer.strategies.min_waste import MinWaste

DATA = Path(os.environ.get("PARSL_SIZER_DATA", Path(__file__).parents[2] / "shared" / "data"))
BIN = 50 * MB
ALL = "(all)"


class Column(NamedTuple):
    """A column of Fig. 10 or 11: first allocations (MB), then with and without categories."""

    first: Mapping[str, float]
    waste: tuple[float, float]
    throughput: tuple[float, float]
    retries: tuple[str, str]


@dataclass(frozen=True)
class Figure:
    """What the paper prints of a workflow."""

    title: str
    trace: str
    counts: Mapping[str, int]
    columns: Mapping[str, Column]
    summary: Mapping[Kind, tuple[float, float, float]]
    """Fig. 12: online without categories, with them, oracle."""


FIGURES = (
    Figure(
        "Fig. 10: CMS-simulation, memory",
        "cms_simulation",
        {"ttW_mAODv2": 10161, "merge": 1587, "ttZ_mAODv2": 18882, ALL: 30630},
        {
            "max. peak": Column(
                {"ttW_mAODv2": 2000, "merge": 900, "ttZ_mAODv2": 2000, ALL: 2000},
                (14.1, 15.9),
                (1.09, 1.00),
                ("0%", "0%"),
            ),
            "min. waste": Column(
                {"ttW_mAODv2": 1900, "merge": 850, "ttZ_mAODv2": 1900, ALL: 1900},
                (14.5, 16.1),
                (1.09, 1.00),
                ("3.9%", "3.8%"),
            ),
            "max. th.": Column(
                {"ttW_mAODv2": 2000, "merge": 850, "ttZ_mAODv2": 2000, ALL: 2000},
                (14.0, 15.9),
                (1.10, 1.00),
                ("<1%", "0%"),
            ),
        },
        {
            Kind.CORES: (1.94, 1.95, 1.99),
            Kind.MEMORY: (1.00, 1.12, 1.42),
            Kind.DISK: (8.89, 9.09, 32.33),
        },
    ),
    Figure(
        "Fig. 11: BWA-makeflow, memory",
        "bwa",
        {"Join": 18, "Split": 18, "Analysis": 7398, ALL: 7434},
        {
            "max. peak": Column(
                {"Join": 4, "Split": 1304, "Analysis": 321, ALL: 1304},
                (21.0, 78.9),
                (4.38, 1.00),
                ("0%", "0%"),
            ),
            "min. waste": Column(
                {"Join": 4, "Split": 50, "Analysis": 300, ALL: 300},
                (16.2, 20.6),
                (4.56, 4.15),
                ("1.4%", "1.4%"),
            ),
            "max. th.": Column(
                {"Join": 4, "Split": 50, "Analysis": 300, ALL: 300},
                (16.2, 20.6),
                (4.56, 4.15),
                ("1.4%", "1.4%"),
            ),
        },
        {
            Kind.CORES: (1.97, 2.03, 2.05),
            Kind.MEMORY: (4.15, 6.15, 7.32),
            Kind.DISK: (51.30, 55.88, 60.96),
        },
    ),
)


class Effect(NamedTuple):
    """What a choice of first allocations comes to."""

    waste: float
    throughput: float
    retries: float


class Part(NamedTuple):
    """A category's tasks, how many finish at once in the largest peak's room, and for how long."""

    tasks: int
    finished: float
    held_s: float


def main() -> None:
    """Print the figures, those whose trace is there."""
    console = Console()
    for figure in FIGURES:
        path = DATA / "traces" / f"{figure.trace}.csv"
        if not path.exists():
            console.print(f"{figure.title}: skipped, as there is no {path}.")
            continue
        rows = [row for row in read(path) if row.time_s > 0]
        console.print(memory_table(figure, rows))
        console.print(summary_table(figure, rows))


def memory_table(figure: Figure, rows: Sequence[Row]) -> Table:
    """Fig. 10 or 11, each cell the paper's and then ours."""
    groups = by_category(rows)
    table = Table("", "tasks", *figure.columns, title=f"{figure.title} (paper | ours)")
    ours = {
        name: {
            category: first_allocation(name, Kind.MEMORY, group)
            for category, group in groups.items()
        }
        for name in figure.columns
    }
    for category, count in figure.counts.items():
        cells = [
            f"{column.first[category]:.0f} | {ours[name][category] / MB:.0f}"
            for name, column in figure.columns.items()
        ]
        table.add_row(f"{category} (MB)", f"{count} | {len(groups[category])}", *cells)
    choices = [category for category in groups if category != ALL], [ALL]
    for index, label in enumerate(("with cats.", "w/o cats.")):
        effects = {
            name: effect({c: ours[name][c] for c in choices[index]}, groups, Kind.MEMORY)
            for name in figure.columns
        }
        waste, throughput, retries = [], [], []
        for name, column in figure.columns.items():
            found = effects[name]
            waste.append(f"{column.waste[index]:.1f}% | {100 * found.waste:.1f}%")
            throughput.append(f"{column.throughput[index]:.2f} | {found.throughput:.2f}")
            retries.append(f"{column.retries[index]} | {100 * found.retries:.1f}%")
        table.add_row(f"waste, {label}", "", *waste)
        table.add_row(f"throughput, {label}", "", *throughput)
        table.add_row(f"retries, {label}", "", *retries)
    return table


def summary_table(figure: Figure, rows: Sequence[Row]) -> Table:
    """The workflow's rows of Fig. 12: throughput relative to the largest peak for all."""
    table = Table(
        "",
        "online, no cats.: paper | ours offline, online",
        "online + cats.: paper | ours offline, online",
        "oracle: paper | ours",
        title=f"Fig. 12: {figure.trace}, max-throughput (cores_avg is not in the trace)",
    )
    pooled = [replace(row, task=row.task._replace(category=ALL)) for row in rows]
    for kind, paper in figure.summary.items():
        groups = by_category(rows)
        first = {
            category: first_allocation("max. th.", kind, group)
            for category, group in groups.items()
        }
        without = effect({ALL: first.pop(ALL)}, groups, kind).throughput
        within = effect(first, groups, kind).throughput
        table.add_row(
            kind.value,
            f"{paper[0]:.2f} | {without:.2f}, {online_throughput(pooled, kind):.2f}",
            f"{paper[1]:.2f} | {within:.2f}, {online_throughput(rows, kind):.2f}",
            f"{paper[2]:.2f} | {oracle_throughput(rows, kind):.2f}",
        )
    return table


def by_category(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each category, and all of them."""
    groups: dict[str, list[Row]] = {ALL: list(rows)}
    for row in groups[ALL]:
        groups.setdefault(row.task.category, []).append(row)
    return groups


def first_allocation(column: str, kind: Kind, rows: Sequence[Row]) -> float:
    """What the column's strategy allocates first once it has seen all the rows."""
    if column == "max. peak":
        return max(row.peak[kind] for row in rows)
    width = 0.0 if kind is Kind.CORES else BIN
    strategy: FirstAllocation = (
        MinWaste(equation=2, bin_width=width)
        if column == "min. waste"
        else MaxThroughput(bin_width=width)
    )
    for row in rows:
        strategy.observe(row.task, row.peak[kind], row.time_s)
    first = strategy.predict(rows[0].task, np.inf)
    assert first is not None
    return first


def effect(first: Mapping[str, float], groups: Mapping[str, Sequence[Row]], kind: Kind) -> Effect:
    """What the first allocations of these categories would have come to (section 4.1)."""
    largest = max(row.peak[kind] for row in groups[ALL])
    used = allocated = retried = 0.0
    parts = []
    for category, amount in first.items():
        peaks = np.array([row.peak[kind] for row in groups[category]])
        times = np.array([row.time_s for row in groups[category]])
        fails = peaks > amount
        used += float(peaks @ times)
        allocated += float(times.sum() * amount + times[fails].sum() * largest)
        retried += float(fails.sum())
        finished = largest / amount * (~fails).sum() + fails.sum()
        parts.append(Part(len(peaks), float(finished), float(times.sum() + times[fails].sum())))
    throughput = relative_throughput(parts, groups[ALL])
    return Effect(1 - used / allocated, throughput, retried / len(groups[ALL]))


def relative_throughput(parts: Iterable[Part], rows: Sequence[Row]) -> float:
    """Equation 3 over the categories by their number of tasks; 1 is the largest peak for all."""
    rate = sum(part.tasks * part.finished / part.held_s for part in parts)
    return rate / len(rows) * sum(row.time_s for row in rows) / len(rows)


def oracle_throughput(rows: Sequence[Row], kind: Kind) -> float:
    """That of allocating each task exactly its peak."""
    largest = max(row.peak[kind] for row in rows)
    groups = by_category(rows)
    groups.pop(ALL)
    parts = [
        Part(
            len(group),
            sum(largest / row.peak[kind] for row in group),
            sum(row.time_s for row in group),
        )
        for group in groups.values()
    ]
    return relative_throughput(parts, rows)


def online_throughput(rows: Sequence[Row], kind: Kind) -> float:
    """That of the rows replayed in order through the six online steps.

    The largest node has just room for the largest peak.
    """
    largest = max(row.peak[kind] for row in rows)
    build = family("max-throughput:online=true,bin=50", Setting((kind,), "waste"))
    only = (replace(row, peak={kind: row.peak[kind]}) for row in rows)
    parts: dict[str, Part] = {}
    for done in replay(only, Categories(build), Resources().updated({kind: largest})):
        category = done.row.task.category
        tasks, finished, held_s = parts.get(category, Part(0, 0.0, 0.0))
        parts[category] = Part(
            tasks + 1,
            finished + largest / done.outcomes[-1].attempt.allocation[kind],
            held_s + sum(outcome.usage.wall_s for outcome in done.outcomes),
        )
    return relative_throughput(parts.values(), rows)


if __name__ == "__main__":
    main()
