"""Is Tarema's placement faster than others on machines that differ?

Bader et al. (IEEE Big Data 2021) ran five workflows of nf-core on two clusters of 15 machines,
seven times with each of five schedulers: alone, and two at once with 20 % and 40 % of the
machines off. This does the same in simulation with the workflows of WfCommons in
``$PARSL_SIZER_DATA``: every task has 2 cores and 5 GB, machines are as fast as the paper measured
them, their list is shuffled before each run, and what earlier runs taught is known in later ones.
How much tasks on one machine hinder each other nobody knows: a task whose neighbours keep all
cores busy takes 1 + alpha times as long, and every table has several alphas side by side.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

from printing import Line, described, lines_table, machine, table
from rich.table import Table
from tarema_runs import (
    ALPHAS,
    BEYOND,
    DATA,
    OFF,
    POLICIES,
    STANDARD,
    Run,
    everything,
    files,
    of_nextflow,
    workflows,
)

from parsl_sizer.cli.output import console, print_json
from parsl_sizer.simulator.machines import PAPER_CLUSTERS
from parsl_sizer.simulator.workflows import Workflow

PAPER = {
    ("5;5;5", "standard"): 17.87,
    ("5;5;5", "sjfn"): 4.65,
    ("5;4;4;2", "standard"): 21.47,
    ("5;4;4;2", "sjfn"): 4.45,
}
"""By how many percent less time tarema takes, one workflow at a time."""
PAPER_PAIRS = {("5;5;5", 0.0): 6.22, ("5;5;5", 0.4): 23.90}
"""The same for two workflows at once, beside sjfn, by the share of machines that are off."""


def is_pair(run: Run) -> bool:
    return " + " in run.workflow


def later(found: Sequence[Run]) -> list[Run]:
    """The runs after the first, in which tasks are known."""
    return [run for run in found if run.number > 1]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(fmean(math.log(value) for value in values))


def less_time(found: Sequence[Run], baselines: Sequence[str]) -> float:
    """By how many percent tarema's times are below those of the baselines, in geometric mean."""
    ours = geometric_mean([run.runtime_s for run in found if run.policy == "tarema"])
    theirs = geometric_mean([run.runtime_s for run in found if run.policy in baselines])
    return 100 * (1 - ours / theirs)


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} %"


def alone_table(found: Sequence[Run]) -> Table:
    """Workflows one at a time: less time than each baseline."""
    columns = [*STANDARD, "the three", "paper", "sjfn", "paper "]
    made = table(["cluster", "alpha"], columns)
    for cluster, alpha in itertools.product(PAPER_CLUSTERS, ALPHAS):
        some = [run for run in found if run.cluster == cluster and run.alpha == alpha]
        made.add_row(
            cluster,
            f"{alpha:g}",
            *(percent(less_time(some, [name])) for name in STANDARD),
            percent(less_time(some, STANDARD)),
            percent(PAPER[cluster, "standard"]),
            percent(less_time(some, ["sjfn"])),
            percent(PAPER[cluster, "sjfn"]),
        )
    return made


def workflows_table(found: Sequence[Run], paths: Sequence[Path]) -> Table:
    """Each workflow by itself, on both clusters, beside how many of its tasks can run at once."""
    columns = ["tasks", "at once", *(f"the three, {a:g}" for a in (0.0, 0.4))]
    columns += [f"sjfn, {alpha:g}" for alpha in (*ALPHAS[::3], *BEYOND)]
    made = table(["workflow"], columns)
    for name, workflow in workflows(paths).items():
        mine = [run for run in found if run.workflow == name]
        by_alpha = {a: [run for run in mine if run.alpha == a] for a in (*ALPHAS, *BEYOND)}
        made.add_row(
            name,
            str(len(workflow.rows)),
            f"{at_once(workflow):.1f}",
            *(percent(less_time(by_alpha[alpha], STANDARD)) for alpha in ALPHAS[::3]),
            *(percent(less_time(by_alpha[alpha], ["sjfn"])) for alpha in (*ALPHAS[::3], *BEYOND)),
        )
    return made


def at_once(workflow: Workflow) -> float:
    """The time of all tasks by that of the longest way through: the most that helps."""
    ends: dict[int | str, float] = {}
    for row in workflow.rows:
        before = (ends[parent] for parent in workflow.parents[row.task.task_id])
        ends[row.task.task_id] = row.time_s + max(before, default=0.0)
    return math.fsum(row.time_s for row in workflow.rows) / max(ends.values())


def beyond_table(found: Sequence[Run], nextflows: Sequence[str]) -> Table:
    """With how much interference does tarema meet sjfn?"""
    alphas = (*ALPHAS, *BEYOND)
    made = table(["cluster", "workflows", "runs"], [f"alpha {alpha:g}" for alpha in alphas])
    for cluster in PAPER_CLUSTERS:
        here = [run for run in found if run.cluster == cluster]
        theirs = [run for run in here if run.workflow in nextflows]
        for which, some in (("all", here), ("Nextflow's", theirs)):
            for when, runs in (("all", some), ("later", later(some))):
                gains = [
                    less_time([run for run in runs if run.alpha == alpha], ["sjfn"])
                    for alpha in alphas
                ]
                made.add_row(cluster, which, when, *map(percent, gains))
    return made


def pairs_table(found: Sequence[Run]) -> Table:
    """Two workflows at once."""
    made = table(["cluster", "machines off", "alpha"], ["the three", "sjfn", "paper"])
    for cluster, off, alpha in itertools.product(PAPER_CLUSTERS, OFF, ALPHAS):
        some = [
            run for run in found if run.cluster == cluster and run.off == off and run.alpha == alpha
        ]
        made.add_row(
            cluster,
            f"{off:.0%}",
            f"{alpha:g}",
            percent(less_time(some, STANDARD)),
            percent(less_time(some, ["sjfn"])),
            percent(PAPER_PAIRS.get((cluster, off))),
        )
    return made


def evenness_table(found: Sequence[Run]) -> Table:
    """How evenly machines are used, on average over everything."""
    made = table(["cluster", "workflows at once"], list(POLICIES))
    for cluster, two in itertools.product(PAPER_CLUSTERS, (False, True)):
        some = [run for run in found if run.cluster == cluster and is_pair(run) == two]
        some = [run for run in some if run.alpha in ALPHAS]
        means = [fmean(run.evenness for run in some if run.policy == name) for name in POLICIES]
        made.add_row(cluster, "2" if two else "1", *(f"{mean:.2f}" for mean in means))
    return made


def bars(found: Sequence[Run]) -> list[Line]:
    """What the paper found, as ratios that are at most 1."""
    lines = []
    for alpha in ALPHAS:
        some = [run for run in found if run.alpha == alpha and not is_pair(run)]
        for name in (*STANDARD, "sjfn"):
            ratio = 1 - less_time(some, [name]) / 100
            lines.append(Line(f"tarema's time ÷ that of {name}, alpha {alpha:g}", ratio, 1.0, "×"))
        ratio = 1 - less_time(later(some), ["sjfn"]) / 100
        lines.append(Line("  without the first runs", ratio, 1.0, "×"))
    some = [run for run in found if run.alpha in ALPHAS]
    even = {name: fmean(r.evenness for r in some if r.policy == name) for name in POLICIES}
    lines.append(Line("evenness of sjfn ÷ that of tarema", even["sjfn"] / even["tarema"], 1.0, "×"))
    return lines


def plot(found: Sequence[Run], path: Path) -> None:
    """Less time than the baselines by alpha, for both clusters."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(PAPER_CLUSTERS), figsize=(10, 4), sharey=True)
    for axis, cluster in zip(axes, PAPER_CLUSTERS, strict=True):
        here = [run for run in found if run.cluster == cluster and not is_pair(run)]
        for name in (*STANDARD, "sjfn"):
            values = [less_time([r for r in here if r.alpha == alpha], [name]) for alpha in ALPHAS]
            axis.plot(ALPHAS, values, "o-", label=name)
        for which, style in (("standard", "--"), ("sjfn", ":")):
            axis.axhline(PAPER[cluster, which], color="grey", linestyle=style)
        axis.axhline(0, color="black", linewidth=0.5)
        axis.set_title(f"cluster {cluster}; grey: the paper (-- standard, : sjfn)")
        axis.set_xlabel("interference alpha")
    axes[0].set_ylabel("less time with tarema, %")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=7, help="of each workflow, 2 or more")
    parser.add_argument(
        "--workflows", help="names; two or more of Nextflow's among them (default: all)"
    )
    parser.add_argument("--plot", type=Path, help="where to draw the gain by alpha")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    out = console()
    if asked.runs < 2:
        parser.error("in the first run nothing is known: --runs must be 2 or more")
    if not (DATA / "workflows").is_dir():
        out.print(f"There are no workflows in {DATA}; name their folder in PARSL_SIZER_DATA.")
        return
    names = asked.workflows.split(",") if asked.workflows else None
    paths = files(names)
    if unknown := set(names or ()) - {path.stem for path in paths}:
        parser.error(f"there is no workflow {min(unknown)!r} in {DATA}")
    nextflows = of_nextflow(paths)
    if len(nextflows) < 2:
        parser.error("two workflows of Nextflow are needed, as some are run in pairs")
    found = everything(asked.runs, paths)
    if asked.plot:
        plot(found, asked.plot)
    if asked.json:
        print_json({"machine": machine(), "runs": [asdict(run) for run in found]})
        return
    out.print(described())
    alone = [run for run in found if not is_pair(run)]
    out.print("One workflow at a time, all runs: less time with tarema than with")
    out.print(alone_table(alone))
    out.print("The same without the first runs, in which tasks are not known")
    out.print(alone_table(later(alone)))
    out.print("The same by workflow, on both clusters, at some alphas")
    out.print(workflows_table(later(alone), paths))
    out.print("Less time than with sjfn, one workflow at a time, beyond the alphas above")
    out.print(beyond_table(alone, nextflows))
    out.print("Two of Nextflow's at once, all runs: less time, summed, with tarema than with")
    out.print(pairs_table([run for run in found if is_pair(run)]))
    out.print("Evenness of use (Jain's index of the allocated time per core)")
    out.print(evenness_table(found))
    out.print(lines_table(bars(found)))


if __name__ == "__main__":
    main()
