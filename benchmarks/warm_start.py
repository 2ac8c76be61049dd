"""Does a second run start where the first one ended?

Every trace is split at random into A and B. A is run, and recorded in an archive; of B's
first tasks it is seen what they waste if nothing is known (cold), if the archive is (warm),
and under the cheapest fixed ladder for all of A (static). What cold wastes more than static
is what there is to save; where that is more than a little, warm is to save most of it.
The traces are those of $PARSL_SIZER_DATA.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from costs import DATA, KINDS, trace
from printing import described, machine, table, verdict
from rich.table import Table

from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.sqlite import SqliteArchive
from parsl_sizer.archive.warm import lessons
from parsl_sizer.cli.output import console, print_json, progress
from parsl_sizer.model import Kind, Outcome, Resources, TaskInfo
from parsl_sizer.report import Metrics
from parsl_sizer.simulator import Row
from parsl_sizer.simulator.replay import replay
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Family, Proposal, Setting
from parsl_sizer.strategies.catalog import family
from parsl_sizer.strategies.ladder import Ladder, cheapest_ladder

FIRST = 50
"""Tasks of B that are looked at."""
WORTH = 0.05
"""Of what static wastes: with less to save nothing is judged."""
SAVED = 0.8
"""Of what there is to save, at least."""


@dataclass(frozen=True)
class Wastes:
    """What B's first tasks wasted, in byte-seconds."""

    cold: float
    warm: float
    static: float


@dataclass(frozen=True)
class Judged:
    """A trace, over all splits."""

    trace: str
    extra: float
    """What cold wastes more than static, as a share of that."""
    saved: float
    """The share of it that warm saves."""

    @property
    def is_missed(self) -> bool:
        return self.extra > WORTH and self.saved < SAVED


class Static:
    """One ladder for a category, for good."""

    def __init__(self, ladder: Ladder) -> None:
        self._ladder = ladder

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        amount: float | None = self._ladder.rungs[0]
        if failures:
            amount = self._ladder.after(failures[-1].attempt.allocation[Kind.MEMORY])
        most = largest[Kind.MEMORY]
        return Proposal({Kind.MEMORY: most if amount is None else min(amount, most)}, "static")

    def learn(self, outcome: Outcome) -> None:
        """It learns nothing."""


def static(rows: Iterable[Row], otherwise: Family) -> Family:
    """The cheapest ladder of each category of these; what is not among them is sized as usual."""
    points: dict[str, list[tuple[float, float, float]]] = {}
    for row in rows:
        if Kind.MEMORY in row.peak:
            point = row.peak[Kind.MEMORY], row.time_s, 1.0
            points.setdefault(row.task.category, []).append(point)
    ladders = {category: cheapest_ladder(sorted(found)) for category, found in points.items()}
    return lambda category: (
        Static(ladders[category]) if category in ladders else otherwise(category)
    )


def auto() -> Family:
    return family("auto", Setting(KINDS, "waste"))


def waste(rows: Iterable[Row], categories: Categories, node: Resources) -> float:
    """What these tasks waste."""
    metrics = Metrics(node)
    for task in replay(rows, categories, node):
        metrics.add(task.row.peak, task.row.time_s, task.outcomes, impossible=task.impossible)
    return metrics.kinds[Kind.MEMORY].waste


def warmed(rows: Iterable[Row], categories: Categories, archive: SqliteArchive) -> Iterator[Row]:
    """The rows; before the first one of a category what is known of that is taught."""
    met: set[str] = set()
    for row in rows:
        category = row.task.category
        if category not in met:
            met.add(category)
            categories.recall(category, lessons(archive, row.task))
        yield row


def recorded(rows: Sequence[Row], node: Resources, archive: SqliteArchive) -> None:
    """Run tasks, and record what becomes of them."""
    run, batch = Run("A"), []
    for task in replay(rows, Categories(auto(), kinds=KINDS), node):
        batch += [Entry(run, outcome) for outcome in task.outcomes]
    archive.record(batch)


def split(name: str, seed: int) -> Wastes:
    """One split of a trace."""
    rows, node = trace(name)
    shuffled = random.Random(seed).sample(rows, len(rows))
    half = len(rows) // 2
    a, b = shuffled[:half], shuffled[half:][:FIRST]
    with TemporaryDirectory() as folder:
        archive = SqliteArchive(Path(folder) / "archive.sqlite3")
        recorded(a, node, archive)
        warm = Categories(auto(), kinds=KINDS)
        found = Wastes(
            cold=waste(b, Categories(auto(), kinds=KINDS), node),
            warm=waste(warmed(b, warm, archive), warm, node),
            static=waste(b, Categories(static(a, auto()), kinds=KINDS), node),
        )
        archive.close()
    return found


def judged(name: str, seeds: int, done: Callable[[int], None]) -> Judged:
    """All splits of a trace together."""
    found = []
    for seed in range(seeds):
        found.append(split(name, seed))
        done(1)
    cold, warm, fixed = (
        fmean(getattr(one, way) for one in found) for way in ("cold", "warm", "static")
    )
    extra = cold - fixed
    return Judged(name, extra / fixed, (cold - warm) / extra if extra else 0.0)


def shown(rows: Sequence[Judged]) -> Table:
    made = table(["trace"], ["to save", f"saved ≥ {SAVED:.0%}"])
    for row in rows:
        is_judged = row.extra > WORTH
        missed = ["saved"] if row.is_missed else []
        made.add_row(
            row.trace,
            f"{row.extra:.1%}",
            f"{row.saved:.0%}" if is_judged else "-",
            verdict(missed) if is_judged else "little to save",
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", default="", help="some of them, by name")
    parser.add_argument("--seeds", type=int, default=10, help="splits of each trace")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    known = sorted(path.stem for path in (DATA / "traces").glob("*.csv"))
    names = asked.traces.split(",") if asked.traces else known
    if not names or not set(names) <= set(known):
        sys.exit(f"There is no such trace in {DATA / 'traces'}; see $PARSL_SIZER_DATA.")
    with progress("splits", len(names) * asked.seeds) as advance:
        rows = [judged(name, asked.seeds, advance) for name in names]
    if asked.json:
        print_json({"machine": machine(), "rows": [asdict(row) for row in rows]})
        return
    out = console()
    out.print(f"{asked.seeds} splits, B's first {FIRST} tasks: {described()}")
    out.print(shown(rows))


if __name__ == "__main__":
    main()
