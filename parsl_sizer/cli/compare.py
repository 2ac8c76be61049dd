"""``parsl-sizer compare``: all strategies on a trace, side by side."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from inspect import signature
from pathlib import Path

from parsl_sizer.model import SizerError, UnknownStrategy
from parsl_sizer.report import Result, Standing, plot, standings
from parsl_sizer.report.compare import as_json
from parsl_sizer.report.text import compare_table
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies.catalog import VARIANTS, Entry, entries

from .measure import Bench, Trace, UnusableStrategy, conditions, described, measure, opened
from .output import console, print_json, progress, say


def run(arguments: Namespace) -> None:
    chosen = named(arguments.strategies) if arguments.strategies else everything()
    if arguments.png:
        plot.check()
        _check_folder(Path(arguments.png))
    with opened(arguments.trace) as trace:
        bench = Bench.of(trace, arguments)
        prepared, left_out = _prepared(bench, chosen)
        ranked = _ranked(bench, prepared)
        if arguments.png:
            title = f"{trace.name}\n{described(arguments)}"
            plot.bars(ranked, title, Path(arguments.png))
        if arguments.json:
            print_json(_as_json(arguments, ranked, left_out))
        else:
            _show(arguments, trace, ranked)


def named(texts: Iterable[str]) -> list[str]:
    """The strategies that the user listed.

    A comma separates strategies as well as the options of one; what has a value but
    no name belongs to the strategy before it.

    >>> named(["auto,percentile:p=95,window=3", "doubling"])
    ['auto', 'percentile:p=95,window=3', 'doubling']
    """
    specs: list[str] = []
    for text in texts:
        if text in VARIANTS:
            specs.append(text)
            continue
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            if specs and ":" in specs[-1] and "=" in part and ":" not in part:
                specs[-1] += f",{part}"
            else:
                specs.append(part)
    if not specs:
        raise UnknownStrategy("--strategies names no strategy; see parsl-sizer strategies.")
    return list(dict.fromkeys(specs))


def everything() -> list[str]:
    """Every strategy, and the variants of the papers' tables, none of them twice."""
    specs: dict[str, str] = {name: name for name in entries()}
    for label, spec in VARIANTS.items():
        name, _, options = spec.partition(":")
        if not options:
            continue  # another name for the same
        if name in specs and _is_default(entries()[name], options):
            del specs[name]
        specs[label] = spec
    return list(specs)


def _is_default(entry: Entry, options: str) -> bool:
    try:
        parameters = signature(entry.build).parameters
    except Exception:  # it cannot be loaded, which will be told when it is made
        return False
    given = dict(option.split("=", 1) for option in options.split(","))
    return all(
        name in parameters and _reads_as(value, parameters[name].default)
        for name, value in given.items()
    )


def _reads_as(text: str, default: object) -> bool:
    try:
        return float(text) == default
    except ValueError:
        return text.lower() == str(default).lower()


def _check_folder(path: Path) -> None:
    """A picture that cannot be written is told before the long work."""
    if path.suffix.lower() != ".png":
        raise SizerError(f"Cannot draw {path}: its name must end in .png.")
    if path.is_dir() or not path.parent.is_dir():
        raise SizerError(f"Cannot draw {path}: its folder does not exist or it is a folder.")


def _prepared(bench: Bench, chosen: list[str]) -> tuple[dict[str, Categories], dict[str, str]]:
    """All strategies, made before the first is tried, and why some could not be.

    One that the user named must be there; of all that are installed, a broken one is
    left out and told.
    """
    ready: dict[str, Categories] = {}
    left_out: dict[str, str] = {}
    for name in chosen:
        try:
            ready[name] = bench.categories(name, lag=bench.arguments.lag)
        except UnusableStrategy as error:
            if bench.arguments.strategies:
                raise
            left_out[name] = str(error)
            say(f"{error} It is left out.")
    if not ready:
        raise SizerError("None of the strategies can be made, so there is nothing to compare.")
    return ready, left_out


def _ranked(bench: Bench, prepared: dict[str, Categories]) -> list[Standing]:
    known = entries()
    total = bench.trace.lines() * len(prepared) if sys.stderr.isatty() else None
    results: list[Result] = []
    warning: str | None = None
    with progress(f"{len(prepared)} strategies", total) as advance:
        for name, categories in prepared.items():
            measured = measure(bench, categories, advance)
            warning = measured.impossible.sentence()
            is_limit = known[VARIANTS.get(name, name).partition(":")[0]].replay_only
            results.append(Result(name, measured.metrics, measured.seconds, is_limit))
    if warning:
        say(warning)
    return standings(results)


def _as_json(
    arguments: Namespace, ranked: list[Standing], left_out: dict[str, str]
) -> dict[str, object]:
    best = next((standing for standing in ranked if standing.is_best), None)
    return {
        **conditions(arguments),
        "tasks": ranked[0].result.metrics.tasks,
        "kind": ranked[0].kind.value,
        "best": best.result.name if best else None,
        "strategies": [
            {"spec": VARIANTS.get(standing.result.name, standing.result.name)} | as_json(standing)
            for standing in ranked
        ],
        "left_out": left_out,
    }


def _show(arguments: Namespace, trace: Trace, ranked: list[Standing]) -> None:
    out = console()
    tasks = ranked[0].result.metrics.tasks
    out.print(f"{trace.name}: {tasks:,} tasks, {len(ranked)} strategies")
    out.print(described(arguments))
    out.print()
    out.print(compare_table(ranked))
    best = next((standing for standing in ranked if standing.is_best), None)
    if best:
        out.print()
        out.print(f"★ least {best.kind.value} waste: {best.result.name}")
    if arguments.png:
        out.print(f"Drawn in {arguments.png}.")
