"""The ranking of predictors of Witt et al. by memory allocation quality, beside ours.

C. Witt, D. Wagner and U. Leser, "Feedback-Based Resource Allocation for Batch
Scheduling of Scientific Workflows", HPCS 2019. The workflows are generated after its
Table II: 1000 tasks, as many abstract tasks as the five Pegasus workflows have, peaks
that depend on the input's size in half of them, a pool of 1952 GB. Left out is what is
not sizing: tasks run one after the other, in random order, where the paper simulates
the graphs under ten schedulers. Its figures 3 and 5 to 7 are plots without numbers, so
what the text says of them is compared. Before a predictor is ready it uses the
estimates Power 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from parsl_sizer.model import Kind, Resources
from parsl_sizer.report import Metrics
from parsl_sizer.simulator.generate import generate
from parsl_sizer.simulator.replay import replay
from parsl_sizer.simulator.trace import Row
from parsl_sizer.sizing.categories import Categories
from parsl_sizer.strategies import Setting
from parsl_sizer.strategies.catalog import family

NODE = Resources(cores=128, memory=1952e9)
TTFS = (0.1, 0.5, 0.9)
TASKS = 1000
ABSTRACT_TASKS = {"Cybershake": 5, "Genome": 8, "Ligo": 4, "Montage": 9, "Sipht": 13}
WORKFLOWS = 4
"""Of each type; the paper has 100."""

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
"""The strategy of each predictor, and how users estimate."""


SCATTERED = ("PC 50", "Power 2", "LR mean-")
"""The predictors of Fig. 3."""


class Standing(NamedTuple):
    """How a predictor did at one time to failure: in each workflow, and among all."""

    maqs: Sequence[float]
    best: int
    worst: int

    @property
    def mean(self) -> float:
        return fmean(self.maqs)


Standings = Mapping[float, Mapping[str, Standing]]


def main(of_each_type: int = WORKFLOWS) -> None:
    """Print the ranking at each time to failure, and what the paper says of it."""
    console = Console()
    types = ABSTRACT_TASKS.values()
    workflows = [(number, seed) for number in types for seed in range(of_each_type)]
    standings = {ttf: _standing(workflows, ttf) for ttf in TTFS}
    console.print(_table(standings, len(workflows)))
    for said, found in _compared(standings):
        console.print(f"Paper: {said}", f"Ours:  {found}", sep="\n")


def _standing(workflows: Sequence[tuple[int, int]], ttf: float) -> dict[str, Standing]:
    maqs = {
        name: [_maq(spec, _workflow(*workflow, estimate), ttf) for workflow in workflows]
        for name, (spec, estimate) in PREDICTORS.items()
    }
    best, worst = _extremes(maqs, max), _extremes(maqs, min)
    return {name: Standing(found, best[name], worst[name]) for name, found in maqs.items()}


def _extremes(maqs: Mapping[str, Sequence[float]], extreme: Callable[..., str]) -> Counter[str]:
    """In how many workflows each predictor is the best (or the worst)."""
    each = zip(*maqs.values(), strict=True)
    by_workflow = [dict(zip(maqs, found, strict=True)) for found in each]
    return Counter(extreme(found, key=found.__getitem__) for found in by_workflow)


def _maq(spec: str, rows: Sequence[Row], ttf: float) -> float:
    metrics = Metrics(NODE)
    sized = Categories(family(spec, Setting((Kind.MEMORY,), "waste")))
    for done in replay(rows, sized, NODE, ttf=ttf):
        metrics.add(done.row.peak, done.row.time_s, done.outcomes, impossible=done.impossible)
    maq = metrics.kinds[Kind.MEMORY].maq
    assert maq is not None
    return maq


@cache
def _workflow(categories: int, seed: int, estimate: str) -> tuple[Row, ...]:
    rows = generate("linear", TASKS, seed, categories=categories, estimate=estimate, scale=1.0)
    return tuple(rows)


def _table(standings: Standings, workflows: int) -> Table:
    title = f"Memory allocation quality, mean of {workflows} workflows (best in / worst in)"
    table = Table("", *(f"time to failure {ttf}" for ttf in standings), title=title)
    for name in PREDICTORS:
        cells = [
            f"{_ranked(found).index(name) + 1}. {found[name].mean:.3f} "
            f"({found[name].best} / {found[name].worst})"
            for found in standings.values()
        ]
        table.add_row(name, *cells)
    return table


def _ranked(found: Mapping[str, Standing]) -> list[str]:
    return sorted(found, key=lambda name: -found[name].mean)


def _compared(standings: Standings) -> Iterator[tuple[str, str]]:
    """What the text of section VI says, and the same of ours."""

    def at_each(told: Callable[[Mapping[str, Standing]], object]) -> str:
        return "; ".join(f"at {ttf} {told(found)}" for ttf, found in standings.items()) + "."

    def scattered(found: Mapping[str, Standing]) -> str:
        return ", ".join(f"{name} {found[name].mean:.3f}" for name in SCATTERED)

    def worst(found: Mapping[str, Standing]) -> str:
        return ", ".join(f"{name} in {found[name].worst}" for name in found if found[name].worst)

    yield (
        "PC 50 has most of the worst cases, Power 2 is better, LR mean- best (Fig. 3).",
        at_each(scattered),
    )
    yield (
        "The largest quality of all is 87.1 %.",
        at_each(lambda found: f"{max(max(each.maqs) for each in found.values()):.1%}"),
    )
    yield (
        "Moderately conservative predictors, LR mean- or PC 95, do best with LFF (Fig. 5).",
        at_each(lambda found: " > ".join(_ranked(found)[:3])),
    )
    yield (
        "The worst combinations mainly have PC 50 (Fig. 7).",
        at_each(worst),
    )
    yield (
        "FIFO, the best where tasks fail early, owes that to PC 50 (Fig. 5).",
        at_each(lambda found: f"best in {found['PC 50'].best} workflows")
        + " PC 50 fails half of its tasks and doubles them, so its quality is about"
        " 2 / (3 + time to failure) where peaks vary little, as in Table II, in whatever order.",
    )


if __name__ == "__main__":
    main()
