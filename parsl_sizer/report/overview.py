"""A run in the terminal, as ``seff`` tells of a job."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from parsl_sizer.model import printable

from .figures import Summary, TaskLine, Use
from .phrases import cause, duration, gb_h, memory, moment, plural, share, with_unit
from .run import ENOUGH, fixed_request
from .run_summary import SHOWN
from .text import UNKNOWN, number, shortened

FEW = 3
"""Tasks that stand out, of each sort."""
COMPARED = " less", " more", "than"
"""The words for a run that we had no part in: what it did not hold was not saved by us."""


def overview(summary: Summary) -> Group:
    """The run in a few lines, its categories in a table, and what to ask for next time."""
    parts: list[RenderableType] = [_facts(summary)]
    if summary.categories:
        parts += [Text(), _categories(summary)]
    for title, lines in (
        ("The slowest tasks:", [_slow(task) for task in summary.slowest[:FEW]]),
        ("The most wasteful tasks:", [_wasteful(task) for task in summary.most_wasteful[:FEW]]),
        (f"{ENOUGH}:", _lines(summary)),
    ):
        if lines:
            parts += [Text(), Text(title), *map(Text, lines)]
    return Group(*parts)


def _facts(summary: Summary) -> Table:
    run, totals = summary.run, summary.totals
    found = Table.grid(padding=(0, 2, 0, 0))
    found.add_column(no_wrap=True, style="bold")
    found.add_column(overflow="fold")
    who = " on ".join(filter(None, (run.user, run.host)))
    about = ", ".join(filter(None, (shortened(run.workflow or ""), who)))
    name = f"{run.run_id} ({about})" if about else run.run_id
    found.add_row("Run", Text(printable(name, keep="")))
    found.add_row("Started", f"{moment(run.started_at)}, took {duration(run.took_s)}")
    failed = f"{totals.failed:,} failed" if totals.failed else "none failed"
    found.add_row("Tasks", f"{totals.tasks:,}, {failed}")
    found.add_row(
        "Attempts", f"{totals.attempts:,}, {plural(totals.retries, 'retry')}{_why(summary)}"
    )
    for kind, use in totals.kinds.items():
        if use.allocated is not None or use.used is not None:
            found.add_row(kind.capitalize(), _use(use))
    if totals.overruns:
        found.add_row("Overruns", f"{totals.overruns:,} used more than they were given")
    if totals.sampled:
        sampled = plural(totals.sampled, "attempt")
        found.add_row("Sampled", f"the peaks of {sampled} are lower bounds")
    found.add_row("Saved" if run.is_ours else "Compared", _saved(summary))
    return found


def _why(summary: Summary) -> str:
    causes = summary.totals.causes
    listed = ", ".join(f"{count:,} {cause(name)}" for name, count in causes.items())
    return f" ({listed})" if listed else ""


def _use(use: Use) -> str:
    show = with_unit(use.unit)
    return f"{show(use.allocated)} allocated, {show(use.used)} used, {share(use.efficiency)}"


def _saved(summary: Summary) -> str:
    saving = summary.saving
    if saving is None:
        return f"{UNKNOWN} (no allocations were recorded)"
    less, more, than = ("", " in addition", "against") if summary.run.is_ours else COMPARED
    word = less if saving.saved >= 0 else more
    amount = f"{gb_h(abs(saving.saved))}{word} ({share(abs(saving.share or 0.0))})"
    return f"{amount} {than} giving every task {saving.against}"


def _categories(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("category", overflow="fold", min_width=8)
    # On a narrow terminal headers and names are folded; a figure is never cut.
    labels = {"tasks": 5, "failed": 6, "retries": 7, "GB·h given": 6, "used": 6, "used of it": 5}
    for label, width in (labels | {"median peak": 7, "largest peak": 7}).items():
        table.add_column(label, justify="right", min_width=width)
    rows = [
        (Text(shortened(category.name)), category.totals, category.peaks)
        for category in summary.categories[:SHOWN]
    ]
    if summary.rest:
        rows.append((Text(f"{summary.rest.categories:,} others"), summary.rest.totals, None))
    for name, totals, peaks in rows:
        use = totals.kinds["memory"]
        table.add_row(
            name,
            *(f"{count:,}" for count in (totals.tasks, totals.failed, totals.retries)),
            number(use.allocated),
            number(use.used),
            share(use.efficiency),
            memory(peaks.quantiles["p50"] if peaks else None),
            memory(use.largest_peak),
        )
    return table


def _lines(summary: Summary) -> list[str]:
    return [
        fixed_request(category.name, category.specification, category.not_enough_for)
        for category in summary.categories[:SHOWN]
        if category.specification
    ]


def _slow(task: TaskLine) -> str:
    return f"  {_named(task)}: {duration(task.wall_s)} in {plural(task.attempts, 'attempt')}"


def _wasteful(task: TaskLine) -> str:
    peak = f" for {memory(task.peak)}" if task.peak is not None else ""
    given = f"given {memory(task.allocated)}{peak} in the end"
    return f"  {_named(task)}: {gb_h(task.wasted)}, {given}"


def _named(task: TaskLine) -> str:
    return f"{shortened(str(task.task_id))} ({shortened(task.category)})"
