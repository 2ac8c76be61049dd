"""How much does `auto` waste, beside every published strategy, on real traces?

The best published strategy is chosen per trace and lag in hindsight; of its figures,
ours and the reference's, the smaller waste counts. `--fidelity` compares our published
strategies with the reference instead. The traces are those of $PARSL_SIZER_DATA.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import geometric_mean

from costs import DATA, DRAWING, Cost, Costs, published, reference, replayed, trace
from printing import Line, described, lines_table, machine, table, verdict
from rich.table import Table

from parsl_sizer.cli.output import console, print_json, say
from parsl_sizer.strategies.catalog import VARIANTS

AUTO = "auto"
RATIO = 1.02
RATIO_LATE = 1.05
"""When lessons come late."""
MEAN = 0.80
MEAN_WITH_SIZES = 0.58
RETRIES = 0.5
RETRIES_OF_BEST = 1.5
MAQ = 0.01
MAQ_DRAWN = 0.02


@dataclass(frozen=True)
class Judged:
    """`auto` beside the best published strategy on a trace."""

    trace: str
    has_sizes: bool
    lag: int
    auto: Cost
    best: str
    best_from: str
    best_cost: Cost

    @property
    def ratio(self) -> float:
        return self.auto.waste_mb_s / self.best_cost.waste_mb_s

    @property
    def ratio_bar(self) -> float:
        return RATIO_LATE if self.lag else RATIO

    @property
    def retries_bar(self) -> float:
        return max(RETRIES, RETRIES_OF_BEST * self.best_cost.retries_per_task)

    def missed(self) -> list[str]:
        """The bars that are not reached."""
        above = {
            "waste": self.ratio > self.ratio_bar,
            "retries": self.auto.retries_per_task > self.retries_bar,
        }
        return [name for name, is_above in above.items() if is_above]


def judged(name: str, lag: int, ours: Costs, sources: Mapping[str, Costs]) -> Judged:
    """`auto` of `ours` beside the published strategy with the least waste in any source."""
    candidates = [
        (spec, source, cost)
        for source, costs in sources.items()
        for (on, spec, at), cost in costs.items()
        if (on, at) == (name, lag) and spec != AUTO
    ]
    if not candidates:
        sys.exit(f"The reference has nothing on {name} at lag {lag}; try --published run.")
    spec, source, cost = min(candidates, key=lambda found: found[2].waste_mb_s)
    has_sizes = any(row.task.features for row in trace(name)[0])
    auto = ours[name, AUTO, lag]
    return Judged(name, has_sizes, lag, auto, _shown(spec), source, cost)


def _shown(spec: str) -> str:
    return next((name for name, known in VARIANTS.items() if known == spec), spec)


def overall(rows: Sequence[Judged], *, are_judged: bool) -> list[Line]:
    """The largest ratio, and the geometric means: of all, and of traces with input sizes."""
    lines = [Line("largest ratio", max(row.ratio for row in rows), rows[0].ratio_bar, "×")]
    sized = [row for row in rows if row.has_sizes]
    for what, bar, chosen in (
        (f"geometric mean of {len(rows)} traces", MEAN, rows),
        (f"geometric mean of the {len(sized)} with input sizes", MEAN_WITH_SIZES, sized),
    ):
        if chosen:
            mean = geometric_mean(row.ratio for row in chosen)
            lines.append(Line(what, mean, bar if are_judged else None, "×"))
    return lines


def quality_table(rows: Sequence[Judged]) -> Table:
    figures = ["its waste", "auto's", "ratio", "bar", "retries", "bar"]
    made = table(["trace", "best published", "figure"], figures)
    for row in rows:
        made.add_row(
            row.trace,
            row.best,
            row.best_from,
            f"{row.best_cost.waste_mb_s:.4g}",
            f"{row.auto.waste_mb_s:.4g}",
            f"{row.ratio:.3f}",
            f"{row.ratio_bar:.2f}",
            f"{row.auto.retries_per_task:.3f}",
            f"{row.retries_bar:.3f}",
            verdict(row.missed()),
        )
    return made


@dataclass(frozen=True)
class Agreement:
    """A published strategy's quality on a trace: ours and the reference's."""

    strategy: str
    trace: str
    lag: int
    ours: float
    reference: float
    bar: float

    @property
    def difference(self) -> float:
        return self.ours - self.reference

    @property
    def is_missed(self) -> bool:
        # The reference has four digits: what rounds to the bar is not above it.
        return round(abs(self.difference), 4) > self.bar


def agreements(ours: Costs, theirs: Costs) -> list[Agreement]:
    """Every figure that both have, by strategy."""
    found = []
    for key in sorted(ours.keys() & theirs.keys()):
        name, spec, lag = key
        bar = MAQ_DRAWN if spec in DRAWING else MAQ
        found.append(Agreement(_shown(spec), name, lag, ours[key].maq, theirs[key].maq, bar))
    return sorted(found, key=lambda one: one.strategy)


def agreement_table(found: Sequence[Agreement]) -> Table:
    figures = ["lag", "ours", "reference", "difference", "bar"]
    made = table(["strategy", "trace"], figures)
    for one in found:
        made.add_row(
            one.strategy,
            one.trace,
            str(one.lag),
            f"{one.ours:.4f}",
            f"{one.reference:.4f}",
            f"{one.difference:+.4f}",
            f"{one.bar:.2f}",
            verdict(["MAQ"] if one.is_missed else []),
        )
    return made


def fidelity_table(found: Sequence[Agreement]) -> Table:
    """The same in short: where each strategy is farthest from the reference."""
    made = table(["strategy", "farthest on"], ["figures", "difference", "bar"])
    for strategy in dict.fromkeys(one.strategy for one in found):
        own = [one for one in found if one.strategy == strategy]
        worst = max(own, key=lambda one: abs(one.difference))
        missed = sum(one.is_missed for one in own)
        made.add_row(
            strategy,
            f"{worst.trace}, lag {worst.lag}",
            str(len(own)),
            f"{worst.difference:+.4f}",
            f"{worst.bar:.2f}",
            verdict([f"{missed} times"] if missed else []),
        )
    return made


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lag", default="0,32", help="tasks by which lessons come late")
    parser.add_argument("--ttf", type=float, default=1.0, help="time to failure")
    parser.add_argument("--traces", help="names, by default all")
    parser.add_argument("--published", choices=("run", "reference", "both"), default="both")
    parser.add_argument("--seeds", type=int, default=5, help="for the strategies that draw")
    parser.add_argument("--fidelity", action="store_true", help="compare with the reference")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    asked.lag = [int(text) for text in asked.lag.split(",")]
    known = sorted(path.stem for path in (DATA / "traces").glob("*.csv"))
    asked.traces = asked.traces.split(",") if asked.traces and known else known
    unknown = [name for name in asked.traces if name not in known]
    if unknown:
        parser.error(f"there is no trace {unknown[0]!r}; there are {', '.join(known)}")
    if asked.ttf != 1.0 and (asked.fidelity or asked.published == "reference"):
        parser.error("the reference has only figures of --ttf 1")
    return asked


def main() -> None:
    asked = _arguments()
    if not asked.traces:
        say("There are no traces here, so nothing is measured: set PARSL_SIZER_DATA.")
    elif asked.fidelity:
        fidelity(asked)
    else:
        quality(asked)


def fidelity(asked: argparse.Namespace) -> None:
    """Replay what is published, and print it beside the reference."""
    theirs = reference()
    ours = replayed(asked.traces, published().values(), asked.lag, asked.ttf, asked.seeds)
    found = agreements(ours, theirs)
    if asked.json:
        rows = [
            asdict(one) | {"difference": one.difference, "missed": one.is_missed} for one in found
        ]
        print_json({"machine": machine(), "seeds": asked.seeds, "fidelity": rows})
        return
    out = console()
    out.print(described())
    out.print(agreement_table(found))
    out.print(fidelity_table(found))
    wanted = [key for key in theirs if key[0] in asked.traces and key[2] in asked.lag]
    missed = sum(one.is_missed for one in found)
    out.print(
        f"Of {len(wanted)} figures of the reference {len(found)} are replayed here, "
        f"{missed} with a difference above the bar."
    )


def quality(asked: argparse.Namespace) -> None:
    """Replay `auto` and its rivals, and print how they compare."""
    specs = [] if asked.published == "reference" else list(published().values())
    ours = replayed(asked.traces, [AUTO, *specs], asked.lag, asked.ttf, asked.seeds)
    sources = {"ours": ours}
    if asked.published != "run" and asked.ttf == 1.0:
        sources["reference"] = reference()
    tables = {lag: [judged(name, lag, ours, sources) for name in asked.traces] for lag in asked.lag}
    for row in tables[asked.lag[0]]:
        if row.auto.impossible:
            say(f"{row.trace}: {row.auto.impossible} tasks exceed the node and are left out.")
    lines = {lag: overall(rows, are_judged=asked.ttf == 1.0) for lag, rows in tables.items()}
    if asked.json:
        print_json(_as_json(asked, tables, lines))
        return
    out = console()
    out.print(f"{described()}; {len(specs)} published strategies replayed")
    for lag, rows in tables.items():
        out.print(f"\nLag {lag}, time to failure {asked.ttf:g}; waste in MB·s, retries per task:")
        out.print(quality_table(rows))
        out.print(lines_table(lines[lag]))


def _as_json(
    asked: argparse.Namespace,
    tables: Mapping[int, Sequence[Judged]],
    lines: Mapping[int, Sequence[Line]],
) -> dict[str, object]:
    return {
        "machine": machine(),
        "ttf": asked.ttf,
        "seeds": asked.seeds,
        "traces": [
            asdict(row) | {"ratio": row.ratio, "missed": row.missed()}
            for rows in tables.values()
            for row in rows
        ],
        "overall": {
            lag: [asdict(line) | {"missed": line.is_missed} for line in own]
            for lag, own in lines.items()
        },
    }


if __name__ == "__main__":
    main()
