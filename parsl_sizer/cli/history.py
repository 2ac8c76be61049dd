"""``parsl-sizer history``: what is in the archive."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count
from types import MappingProxyType

from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from parsl_sizer.archive.base import SAMPLED, Entry, RunLine
from parsl_sizer.model import Ending, Kind, printable
from parsl_sizer.report.fitting import FirstThatFits
from parsl_sizer.report.plain import entry_json, run_json
from parsl_sizer.report.text import UNKNOWN, shortened

from .archives import amount, lasting, of_the_run, opened, when
from .output import console, print_json, say
from .search import query_of

STYLES = {Ending.EXHAUSTED: "yellow", Ending.RAISED: "red", Ending.LOST: "magenta"}
NUMBERS = ("categories", "attempts", "cores", "memory", "allocated", "took")
WIDTHS = {"run": 24, "end": 8, "task": 7, "ending": 10, "user": 12, "source": 8}
"""Of labels on a narrow terminal: what is longer is folded, what is left is the category's."""
NO_TITLES: Mapping[str, str] = MappingProxyType({})

Row = Mapping[str, "str | Text"]
"""What can be told of a run or an attempt; a layout shows some of it."""


def run(arguments: Namespace) -> None:
    query = query_of(arguments)
    with opened(arguments) as found:
        query = of_the_run(query, found)
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
            if len({entry.run.run_id for entry in entries}) == 1:
                out.print(_name(f"run {entries[0].run.run_id}"))
            out.print(attempts_table(entries))
            if any(SAMPLED in entry.outcome.layers for entry in entries):
                out.print("~ The largest of some samples: the peak may have been higher.")
        else:
            say(f"No attempt in {found.name} is like that.")


def runs_table(lines: Sequence[RunLine]) -> FirstThatFits:
    """One row per run."""
    rows: list[Row] = [
        {
            "run": _name(run.run_id),
            "began": when(run.started_at),
            "date": when(run.started_at, "%Y-%m-%d"),
            "user": _name(run.user or UNKNOWN),
            "workflow": Text(shortened(run.workflow or UNKNOWN)),
            "source": _name(run.source),
            "categories": f"{categories:,}",
            "attempts": f"{attempts:,}",
        }
        for run, attempts, categories, _ in lines
    ]
    about = ("user", "workflow", "source")
    return FirstThatFits(
        lambda: _table(rows, ("run", "began", *about, "categories", "attempts")),
        lambda: _table(rows, ("run", "date", *about, "attempts"), {"date": "began"}),
        lambda: _narrow(rows, ("run", "date", *about, "attempts"), {"date": "began"}),
    )


def attempts_table(entries: Sequence[Entry]) -> FirstThatFits:
    """One row per attempt; which run it is of, if there are several."""
    ends = ends_of({entry.run.run_id for entry in entries})
    rows = [_cells(entry, ends) for entry in entries]
    run, end = (("run",), ("end",)) if len(ends) > 1 else ((), ())
    labels, sizes = ("task", "category", "ending"), ("memory", "allocated", "took")
    short = {"minute": "ended", "end": "run"}
    return FirstThatFits(
        lambda: _table(rows, ("ended", *run, *labels, "host", "cores", *sizes)),
        lambda: _table(rows, ("ended", *run, *labels, "cores", *sizes)),
        lambda: _table(rows, ("minute", *end, *labels, "cores", *sizes), short),
        lambda: _table(rows, ("minute", *end, *labels, *sizes), short),
        lambda: _narrow(rows, ("minute", *end, *labels, *sizes), short),
    )


def _cells(entry: Entry, ends: Mapping[str, str]) -> Row:
    run, outcome = entry
    attempt, peak = outcome.attempt, outcome.usage.peak
    task = attempt.task
    again = f" ({attempt.number})" if attempt.number > 1 else ""
    sampled = "~" if SAMPLED in outcome.layers and Kind.MEMORY in peak else ""
    return {
        "ended": when(outcome.ended_at),
        "minute": when(outcome.ended_at, "%m-%d %H:%M"),
        "run": _name(run.run_id),
        "end": _name(ends[run.run_id]),
        "task": Text(f"{shortened(str(task.task_id), 20)}{again}"),
        "category": Text(shortened(task.category)),
        "ending": Text(_ending(outcome.ending, outcome.exhausted), STYLES.get(outcome.ending, "")),
        "host": Text(shortened(outcome.host or UNKNOWN, 30)),
        "cores": f"{peak[Kind.CORES]:.3g}" if Kind.CORES in peak else UNKNOWN,
        "memory": sampled + amount(Kind.MEMORY, peak),
        "allocated": amount(Kind.MEMORY, attempt.allocation),
        "took": lasting(outcome.usage.wall_s),
    }


def _name(name: str) -> Text:
    """A name in full, on one line."""
    return Text(printable(name, keep=""))


def ends_of(run_ids: Collection[str]) -> dict[str, str]:
    """The last parts of ids, as few of them as tell these runs apart.

    >>> ends_of(["20261116-182631-908fe036", "20261116-182606-0142a277"]).values()
    dict_values(['908fe036', '0142a277'])
    """

    def last(parts: int) -> dict[str, str]:
        return {run_id: "-".join(run_id.split("-")[-parts:]) for run_id in run_ids}

    return next(ends for ends in map(last, count(1)) if len(set(ends.values())) == len(ends))


def _ending(ending: Ending, exhausted: frozenset[Kind]) -> str:
    kinds = ", ".join(sorted(kind.value for kind in exhausted))
    return f"{ending.value}: {kinds}" if kinds else ending.value


def _table(
    rows: Iterable[Row], names: Sequence[str], titles: Mapping[str, str] = NO_TITLES
) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        justify: JustifyMethod = "right" if name in NUMBERS else "left"
        table.add_column(titles.get(name, name), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(row[name] for name in names))
    return table


def _narrow(rows: Iterable[Row], names: Sequence[str], titles: Mapping[str, str]) -> Table:
    """With labels that are folded, so that 80 columns are enough."""
    table = _table(rows, names, titles)
    table.padding = (0, 1, 0, 0)
    for name, column in zip(names, table.columns, strict=True):
        column.max_width = WIDTHS.get(name)
    return table
