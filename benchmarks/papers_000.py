"""Tables I and II of Phung et al. beside ours, cell by cell.

T. S. Phung et al., "Not All Tasks Are Created Equal: Adaptive Resource Allocation for
Heterogeneous Tasks in Dynamic Workflows", WORKS 2021: how much of the waste of whole
machines a strategy saves (waste reduction ratio), and how much of its allocations a
task uses (average task efficiency), of memory and in percent. What the paper leaves
open, in the reading with which the cells agree:

- the machine has 16 cores, 64000 MB of memory and as much disk;
- an attempt fails if any kind is exceeded, and all kinds then take their next bucket
  or double together; the user's declaration is of memory alone;
- the ten tasks of the cold start are the first ten of the workload, and a category
  that comes later gets the machine until it has a finished task;
- a bucket of k-means that is left empty starts again at the largest peak, and a kind
  that runs out in its last bucket sends all kinds to the machine;
- the last task of each trace is left out;
- Colmena's two types are known in number only, so there is no level 3.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from parsl_sizer.model import MB, Kind, Resources
from parsl_sizer.report import Metrics
from parsl_sizer.simulator.hindsight import TraceHindsight
from parsl_sizer.simulator.replay import replay
from parsl_sizer.simulator.trace import Row, read
from parsl_sizer.sizing.categories import Categories
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family

DATA = Path(os.environ.get("PARSL_SIZER_DATA", Path(__file__).parents[2] / "shared" / "data"))
NODE = Resources(cores=16, memory=64_000 * MB, disk=64_000 * MB)
TOLERANCE = 0.1
"""Percentage points; the paper prints one decimal."""

TRACES = {
    "Colmena": ("colmena", 2),
    "TopEFT": ("topeft", 3),
    "Normal": ("normal_small", 1),
    "Uniform": ("uniform_large", 1),
    "Exponential": ("exponential_small", 1),
    "Bimodal": ("bimodal_small_std", 2),
    "Trimodal": ("trimodal", 3),
}
"""The columns of the tables: the trace and its number of types."""

STRATEGIES = {
    "Whole Machine": "whole-machine",
    "Double Allocation": "doubling:together=true",
    "User Declaration": "user-declared",
    "Quantized Bucketing - lv1": "quantized-bucketing:level=1,together=true",
    "Quantized Bucketing - lv2": "quantized-bucketing:level=2,together=true,n={types}",
    "Quantized Bucketing - lv3": "quantized-bucketing:level=3,together=true",
    "K-means Bucketing - lv1": "kmeans-bucketing:level=1,together=true",
    "K-means Bucketing - lv2": "kmeans-bucketing:level=2,together=true,n={types}",
    "K-means Bucketing - lv3": "kmeans-bucketing:level=3,together=true",
}

WRR = """
0     0     0     0     0     0     0
72.9  88.1  71.4  -7    57.1  17.7  30.3
63.5  99.8  84.9  56.5  0     65.3  42.8
62.8  98.7  88.4  61.1  2.4   68.9  48.5
60.3  97.9  88.4  61.1  2.4   43.4  49.3
N/A   98.7  88.4  61.1  2.4   96.5  80.8
62.8  98.7  88.4  61.1  2.4   68.9  48.5
65.1  98.1  88.4  61.1  2.4   87.0  48.9
N/A   98.7  88.4  61.1  2.4   96.5  80.8
"""

ATE = """
15.8  0.60  12.4  39.1  15.7  31.3  30.7
51.9  4.90  33.1  41.6  27.6  37.4  43.3
33.2  69.1  48.4  59.6  15.7  56.7  43.7
34.4  85.5  56.3  62.4  16.1  59.6  46.4
41.9  45.3  56.3  62.4  16.1  43.4  57.8
N/A   91.0  56.3  62.4  16.1  93.9  71.3
34.4  85.5  56.3  62.4  16.1  59.6  46.4
43.9  45.9  56.3  62.4  16.1  84.2  57.5
N/A   91.0  56.3  62.4  16.1  93.9  71.3
"""

REASONS = {
    ("Table I", "Double Allocation", "Uniform"): "the paper prints no decimal there: -6.6 as -7",
}
"""Why a cell differs by more than the tolerance."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of a table, in percent."""

    table: str
    strategy: str
    trace: str
    paper: float
    ours: float

    @property
    def difference(self) -> float:
        return self.ours - self.paper

    @property
    def agrees(self) -> bool:
        return abs(self.difference) <= TOLERANCE

    def __str__(self) -> str:
        shown = f"{self.paper:g} / {self.ours:.1f} / {self.difference:+.2f}"
        return shown if self.agrees else f"[bold red]{shown}[/]"


def main() -> None:
    """Print both tables, as far as the traces are there, and what they come to."""
    console = Console()
    cells: list[Cell] = []
    for column, (name, types) in TRACES.items():
        path = DATA / "traces" / f"{name}.csv"
        if path.exists():
            cells += _column(column, list(read(path))[:-1], types)
        else:
            console.print(f"{column} is left out, as there is no {path}.")
    if not cells:
        return
    for title, what in ("Table I", "waste reduction ratio"), ("Table II", "average efficiency"):
        here = [cell for cell in cells if cell.table == title]
        console.print(_table(f"{title}: {what}, memory, % (paper / ours / difference)", here))
    _conclude(console, cells)


def _column(column: str, rows: Sequence[Row], types: int) -> Iterator[Cell]:
    place = list(TRACES).index(column)
    for (strategy, spec), *printed in zip(
        STRATEGIES.items(), _cells(WRR), _cells(ATE), strict=True
    ):
        paper = [line[place] for line in printed]
        if "N/A" in paper:
            continue
        wrr, ate = _measured(spec.format(types=types), rows)
        yield Cell("Table I", strategy, column, float(paper[0]), wrr)
        yield Cell("Table II", strategy, column, float(paper[1]), ate)


def _cells(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


def _measured(spec: str, rows: Sequence[Row]) -> tuple[float, float]:
    """Waste reduction ratio and average task efficiency of memory, in percent."""
    hindsight = TraceHindsight(lambda: rows, NODE)
    setting = Setting(objective="waste", hindsight=hindsight)
    metrics = Metrics(NODE, together=True)
    for done in replay(rows, Categories(family(spec, setting)), NODE, together=True):
        metrics.add(done.row.peak, done.row.time_s, done.outcomes, impossible=done.impossible)
    memory = metrics.kinds[Kind.MEMORY]
    assert memory.wrr is not None
    assert memory.ate is not None
    return 100 * memory.wrr, 100 * memory.ate


def _table(title: str, cells: Sequence[Cell]) -> Table:
    columns = list(dict.fromkeys(cell.trace for cell in cells))
    found: Mapping[tuple[str, str], Cell] = {(c.strategy, c.trace): c for c in cells}
    table = Table("", *columns, title=title)
    for strategy in STRATEGIES:
        row = [found.get((strategy, column)) for column in columns]
        table.add_row(strategy, *("N/A" if cell is None else str(cell) for cell in row))
    return table


def _conclude(console: Console, cells: Sequence[Cell]) -> None:
    differing = [cell for cell in cells if not cell.agrees]
    largest = max((abs(cell.difference) for cell in cells if cell.agrees), default=0.0)
    console.print(
        f"{len(cells) - len(differing)} of {len(cells)} cells agree to {TOLERANCE} points "
        f"(the largest difference among them is {largest:.2f})."
    )
    for cell in differing:
        why = REASONS.get((cell.table, cell.strategy, cell.trace), "we do not know why")
        console.print(f"{cell.table}, {cell.strategy}, {cell.trace}: {cell}; {why}.")


if __name__ == "__main__":
    main()
