"""``parsl-sizer whatif``: what other allocations would have cost, and which to choose."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from parsl_sizer.archive.base import Entry, Query
from parsl_sizer.archive.importers.base import Notes
from parsl_sizer.archive.importers.catalog import recognise
from parsl_sizer.model import Ending, Kind, SizerError, format_amount
from parsl_sizer.report import curve, plot
from parsl_sizer.report.text import amount, shortened
from parsl_sizer.report.whatif import (
    ALLOCATED,
    CONFIDENCE,
    REQUESTED,
    Advice,
    Finished,
    TooFew,
    advise,
    finished,
)

from .archives import opened
from .output import console, print_json, progress, say, tell, ticking

MOST_ROWS = 8
"""Of the table of first allocations."""
MOST_DRAWN = 30
"""Categories in a picture."""
AGAINST = {ALLOCATED: "what was allocated", REQUESTED: "what was requested"}


def run(arguments: Namespace) -> None:
    if arguments.png:
        plot.check()
    source, categories = _categories(arguments)
    node = arguments.node.get(Kind.MEMORY, math.inf)
    advices: dict[str, Advice] = {}
    refused: dict[str, str] = {}
    for category, tasks in sorted(categories.items()):
        try:
            advices[category] = advise(category, tasks, node=node, seed=arguments.seed)
        except TooFew as error:
            refused[category] = str(error)
    if not advices:
        raise TooFew(
            next(iter(refused.values()))
            if len(refused) == 1
            else f"None of the {len(refused)} categories of {source} has enough measured peaks."
        )
    if arguments.png:
        drawn = list(advices.items())[:MOST_DRAWN]
        curve.draw({name: (a.curve, a.ladder[0]) for name, a in drawn}, Path(arguments.png))
    if arguments.json:
        print_json(
            {
                "source": source,
                "node_memory": None if node == math.inf else node,
                "seed": arguments.seed,
                "confidence": CONFIDENCE,
                "categories": {name: asdict(advice) for name, advice in advices.items()},
                "refused": refused,
            }
        )
        return
    for number, (category, advice) in enumerate(advices.items()):
        if number:
            tell()
        _show(category, advice)
    for sentence in refused.values():
        say(sentence)
    if arguments.png:
        tell(f"Drawn in {arguments.png}.")


def _categories(arguments: Namespace) -> tuple[str, dict[str, list[Finished]]]:
    """Where the tasks are from, and what is known of them by category."""
    path = Path(arguments.what)
    if path.is_file():
        with progress(f"reading {path.name}", None) as advance:
            found = finished(ticking(recognise(path).read(path, Notes()), advance))
        wanted = arguments.category
        if wanted is not None:
            found = {name: tasks for name, tasks in found.items() if name == wanted}
        if not found:
            what = "task" if wanted is None else f"task of category {wanted!r}"
            raise SizerError(f"{path} has no {what} with a measured peak of memory and a time.")
        return str(path), found
    if arguments.category not in (None, arguments.what):
        raise SizerError(f"--category is for a file, and there is no file {arguments.what}.")
    with opened(arguments) as archive:
        found = finished(_newest_last(archive.archive.entries(_query(arguments))))
        if not found:
            raise TooFew(
                f"There is neither a file {arguments.what!r} nor, in {archive.name}, a task of "
                "such a category with a measured peak of memory; see parsl-sizer history."
            )
        return archive.name, found


def _query(arguments: Namespace) -> Query:
    endings = (Ending.DONE, Ending.EXHAUSTED)
    return Query(category=arguments.what, endings=endings, last=arguments.last)


def _newest_last(entries: Iterable[Entry]) -> list[Entry]:
    return list(entries)[::-1]


def _show(category: str, advice: Advice) -> None:
    out = console()
    out.print(_headline(category, advice), style="bold")
    out.print(_advice(advice))
    out.print(_saving(advice))
    for remark in _remarks(advice):
        out.print(remark)
    out.print()
    out.print(_table(advice))
    out.print()
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    for line in curve.chart(
        advice.curve, advice.ladder[0], is_ascii=not encoding.startswith("utf")
    ):
        out.print(line, no_wrap=True, crop=False)


def _headline(category: str, advice: Advice) -> str:
    least, largest = (format_amount(Kind.MEMORY, n) for n in (advice.least, advice.largest))
    return f"{shortened(category)}: {advice.tasks:,} tasks with peaks from {least} to {largest}"


def _advice(advice: Advice) -> str:
    pairs = zip(advice.ladder, advice.enough, strict=True)
    steps = [f"{format_amount(Kind.MEMORY, rung)} (enough for {_share(n)})" for rung, n in pairs]
    return f"Allocate {', then '.join(steps)}."


def _share(number: float) -> str:
    """A share in percent, in which nearly all is not all.

    >>> _share(0.5), _share(0.9966), _share(0.99999), _share(1.0)
    ('50%', '99.7%', 'over 99.9%', '100%')
    """
    if number >= 1.0:
        return "100%"
    return f"{number:.0%}" if number < 0.995 else f"{number:.1%}".replace("100.0%", "over 99.9%")


def _saving(advice: Advice) -> str:
    against = AGAINST.get(advice.baseline, "the largest peak for every task")
    known = advice.compared
    beginning = (
        "It" if known == advice.tasks else f"For the {known:,} tasks that can be compared it"
    )
    change = f"{abs(advice.saving):.0%} {'less' if advice.saving >= 0 else 'more'} than {against}"
    return (
        f"{beginning} would have reserved {amount(Kind.MEMORY, advice.reserved_byte_s)}, {change} "
        f"({amount(Kind.MEMORY, advice.baseline_byte_s)}), with {advice.retries_per_task:.2f} "
        f"retries per task. For new tasks like these the saving is from {advice.low:.0%} to "
        f"{advice.high:.0%}, with {CONFIDENCE:.0%} confidence."
    )


def _remarks(advice: Advice) -> list[str]:
    remarks = []
    if advice.high <= 0:
        remarks.append("So keep what you have: one ladder for all of them is no better.")
    elif advice.low <= 0:
        remarks.append("So it may save nothing.")
    if advice.sampled:
        all_of = "All" if advice.sampled == advice.tasks else f"{advice.sampled:,} of the"
        remarks.append(
            f"{all_of} peaks are the largest of some samples, so lower bounds: tasks may need "
            "more than this advice says."
        )
    if advice.too_large:
        one = advice.too_large == 1
        left, need = ("task is", "it needs") if one else ("tasks are", "they need")
        remarks.append(
            f"{advice.too_large:,} {left} left out: {need} more than the node has, or than any "
            "other used."
        )
    return remarks


def _table(advice: Advice) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", min_width=1)
    for label in ("first allocation", "reserved", "× best", "retries/task"):
        table.add_column(label, justify="right", no_wrap=True)
    best = min(reserved for _, reserved, _ in advice.curve)
    allocations = [first for first, _, _ in advice.curve]
    advised = max(bisect_right(allocations, advice.ladder[0]) - 1, 0)
    for place in _some(len(allocations), advised):
        first, reserved, retries = advice.curve[place]
        table.add_row(
            "★" if place == advised else "",
            format_amount(Kind.MEMORY, first),
            amount(Kind.MEMORY, reserved),
            f"{reserved / best:.2f}",
            f"{retries:.2f}",
        )
    return table


def _some(size: int, advised: int) -> list[int]:
    """A few places of the curve, by equal steps, with the advised one among them."""
    places = {round(number * (size - 1) / (MOST_ROWS - 1)) for number in range(MOST_ROWS)}
    return sorted(places | {advised})
