"""How soon does Algorithm 1 know a wait that has changed? Figure 5 of the paper, and Theorem 1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median

from printing import Line, table
from rich.table import Table

from parsl_sizer.scaling import PRINTED, Learner, Rule
from parsl_sizer.scaling.alternatives import ALTERNATIVES

CHANGES, LENGTH, SEEDS = 5, 200, 30
"""1000 iterations in which the wait changes at 0, 200, 400, 600 and 800."""
SEEDS_OF_THEOREM = 100
RULES = {
    f"{policy}, {name}": Rule(policy=policy, information=rule.information, share=rule.share)
    for name, rule in (("full information", Rule()), ("as printed", PRINTED))
    for policy in ("greedy", "default", "tuned")
}
DELTA = 0.05


def scenario(random: Random) -> list[float]:
    """Five waits of the alternatives, no two in a row alike: which ones the paper does not say."""
    waits = [random.choice(ALTERNATIVES)]
    while len(waits) < CHANGES:
        wait = random.choice(ALTERNATIVES)
        if wait != waits[-1]:
            waits.append(wait)
    return waits


def estimates(rule: Rule, waits: list[float], random: Random) -> Iterator[list[float]]:
    """What is estimated while each of the waits lasts."""
    learner = Learner(rule)
    for wait in waits:
        made = []
        for _ in range(LENGTH):
            made.append(learner.estimate(random))
            learner.observe(wait, random, estimate=made[-1])
        yield made


def reached(made: list[float], wait: float) -> float:
    """After how many iterations 8 of the last 10 estimates were right; infinite if never."""
    right = [one == wait for one in made]
    ends = (end for end in range(10, len(right) + 1) if sum(right[end - 10 : end]) >= 8)
    return next(ends, math.inf)


def convergence(seeds: int = SEEDS) -> tuple[Table, list[Line]]:
    """Measure after how many iterations each policy is right again; medians of the seeds."""
    shown = table(["policy"], [*(f"change {n + 1}" for n in range(CHANGES)), "drops", "never"])
    medians: dict[str, list[float]] = {}
    for name, rule in RULES.items():
        found = []
        for seed in range(seeds):
            waits, random = scenario(Random(seed)), Random(f"estimates {seed}")
            made = estimates(rule, waits, random)
            found.append([reached(some, wait) for some, wait in zip(made, waits, strict=True)])
        medians[name] = [median(one[change] for one in found) for change in range(CHANGES)]
        drops = [
            one[change]
            for seed, one in enumerate(found)
            for change in range(1, CHANGES)
            if scenario(Random(seed))[change] < scenario(Random(seed))[change - 1]
        ]
        medians[f"{name}, drops"] = [median(drops)]
        never = sum(math.isinf(value) for one in found for value in one)
        cells = [*medians[name], median(drops)]
        shown.add_row(
            name, *(_iterations(value) for value in cells), f"{never} of {seeds * CHANGES}"
        )
    lines = []
    for name in ("full information", "as printed"):
        tuned, default = max(medians[f"tuned, {name}"]), min(medians[f"default, {name}"])
        lines += [
            Line(f"tuned, {name}: slowest change", tuned, 50, "iterations"),
            Line(f"tuned ÷ default at its best, {name}", tuned / default, 0.99, "×"),
            Line(
                f"greedy, {name}: 200 ÷ iterations after a drop",
                LENGTH / medians[f"greedy, {name}, drops"][0],
                0.99,
                "×",
            ),
        ]
    return shown, lines


def _iterations(value: float) -> str:
    return "never" if math.isinf(value) else f"{value:.0f}"


def theorem(seeds: int = SEEDS_OF_THEOREM, iterations: int = 1000) -> Table:
    """In how many runs Theorem 1's bound is passed at some time, with a wait that stays."""
    shown = table(["form"], ["bound passed", "lost", "bound"])
    for name in ("full information", "as printed"):
        rule = Rule(policy="default", information=RULES[f"default, {name}"].information, share=0.0)
        passed, lost, last = 0, 0.0, 0.0
        for seed in range(seeds):
            random = Random(seed)
            learner, wait = Learner(rule), random.choice(ALTERNATIVES)
            losses, total, is_passed = rule.losses(wait), 0.0, False
            for count in range(1, iterations + 1):
                made = learner.estimate(random)
                total += losses[ALTERNATIVES.index(made)]
                learner.observe(wait, random, estimate=made)
                last = 4 * learner.rounds + math.log(len(losses))
                last += math.sqrt(2 * count * math.log(len(losses) / DELTA))
                is_passed |= total > last
            passed += is_passed
            lost += total / seeds
        shown.add_row(name, f"{passed} of {seeds} runs", f"{lost:.0f}", f"{last:.0f}")
    return shown


def plot(path: Path, seed: int = 3) -> None:
    """Figure 5: what is estimated for a wait that changes."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    waits = scenario(Random(seed))
    figure, axes = plt.subplots(2, 1, figsize=(10, 7), sharex=True)
    for axis, form in zip(axes, ("full information", "as printed"), strict=True):
        for policy, colour in (("default", "0.6"), ("greedy", "C3"), ("tuned", "C6")):
            made = estimates(RULES[f"{policy}, {form}"], waits, Random(f"estimates {seed}"))
            values = [one for some in made for one in some]
            axis.plot(values, color=colour, label=policy, linewidth=1, drawstyle="steps-post")
        true = [wait for wait in waits for _ in range(LENGTH)]
        axis.plot(true, "C0--", label="true wait", drawstyle="steps-post")
        axis.set_yscale("log")
        axis.set_ylabel("wait, s")
        axis.set_title(form)
    axes[-1].set_xlabel("iteration")
    axes[0].legend(loc="upper right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
