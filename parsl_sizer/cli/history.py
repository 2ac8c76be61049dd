"""``parsl-sizer history``: what is in the archive."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from parsl_sizer.archive.base import SAMPLED, Entry, RunLine
from parsl_sizer.model import Ending, Kind
from parsl_sizer.report.plain import entry_json, run_json
from parsl_sizer.report.text import UNKNOWN, shortened

from .archives import amount, lasting, opened, when
from .output import console, print_json, say
from .search import query_of

STYLES = {Ending.EXHAUSTED: "yellow", Ending.RAISED: "red", Ending.LOST: "magenta"}


def run(arguments: Namespace) -> None:
    query = query_of(arguments)
    with opened(arguments) as found:
        if arguments.runs:
            lines = found.archive.runs(query)
            if arguments.json:
                print_json({"archive": found.name, "runs": [run_json(line) for line in lines]})
            elif lines:
                console().print(runs_table(lines))
            else:
                say(f"No run in {found.name} has such attempts.")
            return
        entries = list(found.archive.entries(query))
        if arguments.json:
            listed = [entry_json(entry) for entry in entries]
            print_json({"archive": found.name, "attempts": listed})
        elif entries:
            out = console()
            is_of_one_run = len({entry.run.run_id for entry in entries}) == 1
            if is_of_one_run:
                out.print(Text(f"run {entries[0].run.run_id}"))
            out.print(_attempts_table(entries, with_run=not is_of_one_run))
            if any(SAMPLED in entry.outcome.layers for entry in entries):
                out.print(Text("~ The largest of some samples: the peak may have been higher."))
        else:
            say(f"No attempt in {found.name} is like that.")


def runs_table(lines: Iterable[RunLine]) -> Table:
    """One row per run."""
    table = _table(("run", "began", "user", "workflow", "source"), ("categories", "attempts"))
    for run, attempts, categories, _ in lines:
        table.add_row(
            Text(run.run_id),
            when(run.started_at),
            Text(run.user or UNKNOWN),
            Text(shortened(run.workflow or UNKNOWN)),
            Text(run.source),
            f"{categories:,}",
            f"{attempts:,}",
        )
    return table


def _attempts_table(entries: Iterable[Entry], *, with_run: bool) -> Table:
    labels = ("ended", *(("run",) if with_run else ()), "task", "category", "ending", "host")
    table = _table(labels, ("cores", "memory", "allocated", "took"))
    for run, outcome in entries:
        attempt, peak = outcome.attempt, outcome.usage.peak
        task = attempt.task
        again = f" ({attempt.number})" if attempt.number > 1 else ""
        ending = Text(_ending(outcome.ending, outcome.exhausted), STYLES.get(outcome.ending, ""))
        sampled = "~" if SAMPLED in outcome.layers and Kind.MEMORY in peak else ""
        table.add_row(
            when(outcome.ended_at),
            *((Text(run.run_id),) if with_run else ()),
            Text(f"{shortened(str(task.task_id), 20)}{again}"),
            Text(shortened(task.category)),
            ending,
            Text(shortened(outcome.host or UNKNOWN, 30)),
            f"{peak[Kind.CORES]:.3g}" if Kind.CORES in peak else UNKNOWN,
            sampled + amount(Kind.MEMORY, peak),
            amount(Kind.MEMORY, attempt.allocation),
            lasting(outcome.usage.wall_s),
        )
    return table


def _ending(ending: Ending, exhausted: frozenset[Kind]) -> str:
    kinds = ", ".join(sorted(kind.value for kind in exhausted))
    return f"{ending.value}: {kinds}" if kinds else ending.value


def _table(labels: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in labels:
        table.add_column(name, no_wrap=name in ("run", "ended", "began"))
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table
