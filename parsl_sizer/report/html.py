"""The page of a run: one file that needs nothing else, no network and no script.

Every figure carries its exact value and its path in the JSON of the same summary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from parsl_sizer.archive.base import LIVE

from .figures import Category, Summary, as_json
from .markup import Column, Document, definitions, escape, fold, paragraph, section, table
from .phrases import cause, duration, gb_h, memory, moment, share, with_unit
from .pictures import Point, course, efficiency, peaks, what_if
from .run import ENOUGH
from .run_summary import SHOWN
from .style import STYLE
from .text import UNKNOWN, number, shortened
from .whatif import FEWEST, too_few

count = "{:,}".format
NO_CURVES: Mapping[str, Sequence[Point]] = {}
NAME_WIDTH = 160
NOTHING_THERE = "<p>There is none.</p>"
SECTIONS = {
    "saved": "What was saved",
    "categories": "By category",
    "peaks": "Peaks and allocations",
    "course": "Allocation against use over time",
    "retries": "Retries and their causes",
    "slowest": "The slowest tasks",
    "wasteful": "The most wasteful tasks",
    "what-if": "What if",
}
ALLOCATED = "What was allocated"
"""The title instead of what was saved, for a run that we had no part in."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def render(summary: Summary, curves: Mapping[str, Sequence[Point]] = NO_CURVES) -> str:
    """The page; `curves` say by category what other first allocations would have cost."""
    document = Document(as_json(summary))
    contents = {
        "saved": _saved(document, is_ours=summary.run.is_ours),
        "categories": _categories(document),
        "peaks": _peaks(document),
        "course": course(document, "course"),
        "retries": _retries(document),
        "slowest": _tasks(document, "slowest", "Time in all their attempts"),
        "wasteful": _tasks(document, "most_wasteful", "Memory allocated and not used, over time"),
        "what-if": _what_if(summary, curves),
    }
    titles = SECTIONS if summary.run.is_ours else SECTIONS | {"saved": ALLOCATED}
    name = summary.run.workflow or summary.run.run_id
    links = "".join(
        f'<li><a href="#{name_}">{escape(title)}</a></li>' for name_, title in titles.items()
    )
    body = "".join(section(at, titles[at], content) for at, content in contents.items())
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(shortened(name))}: what its tasks used</title><style>{STYLE}</style>"
        f"</head><body><header><h1>{escape(shortened(name, NAME_WIDTH))}</h1>{_facts(document)}"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header><main>{body}</main>'
        "<footer><p>Made by parsl-sizer report. 1 GB is 1000 MB; a GB·h is a gigabyte held for "
        "an hour.</p></footer></body></html>\n"
    )


def _facts(document: Document) -> str:
    run = document.values["run"]
    pairs = [
        ("Run", escape(run["run_id"])),
        ("Started", document.figure("run.started_at", moment)),
        ("Took", document.figure("run.took_s", duration)),
        ("By", escape(" on ".join(filter(None, (run["user"], run["host"]))) or UNKNOWN)),
        ("Recorded", "as it ran" if run["source"] == LIVE else f"by {escape(run['source'])}"),
    ]
    for title, values in (("With", run["versions"]), ("Labels", run["labels"])):
        if values:
            listed = ", ".join(f"{name} {value}" for name, value in values.items())
            pairs.append((title, escape(listed)))
    return definitions("facts", pairs)


def _saved(document: Document, *, is_ours: bool) -> str:
    saving = document.values["saving"]
    kinds = document.values["totals"]["kinds"]
    tiles = []
    if saving:
        less, more = (
            ("Saved", "Spent in addition") if is_ours else ("Less than that", "More than that")
        )
        word = less if saving["saved"] >= 0 else more
        amount = document.figure("saving.saved", lambda value: gb_h(abs(value)))
        of = document.figure("saving.share", lambda value: share(abs(value)))
        tiles.append((word, f"{amount}<small>{of} of the comparison</small>"))
    for kind, use in kinds.items():
        if use["allocated"] is None:
            continue
        path = f"totals.kinds.{kind}"
        allocated = document.figure(f"{path}.allocated", with_unit(use["unit"]))
        part = document.figure(f"{path}.efficiency", efficiency)
        tiles.append((f"{kind} allocated".capitalize(), f"{allocated}<small>{part}</small>"))
    for name, beside, what in (("tasks", "failed", "failed"), ("attempts", "retries", "retries")):
        main = document.figure(f"totals.{name}", count)
        second = document.figure(f"totals.{beside}", count)
        tiles.append((name.capitalize(), f"{main}<small>{second} {what}</small>"))
    return _comparison(document) + definitions("tiles", tiles) + _remarks(document)


def _comparison(document: Document) -> str:
    saving = document.values["saving"]
    if not saving:
        return paragraph("No allocations were recorded, so that there is nothing to compare with.")
    return paragraph(
        "Giving every task ",
        escape(saving["against"]),
        ", would have held ",
        document.figure("saving.whole", gb_h),
        " of memory. This run held ",
        document.figure("saving.allocated", gb_h),
        ", its retries included.",
    )


def _remarks(document: Document) -> str:
    remarks = []
    if document.at("totals.overruns"):
        overruns = document.figure("totals.overruns", count)
        remarks.append(paragraph(f"Attempts that used more than they were given: {overruns}."))
    if document.at("totals.sampled"):
        sampled = document.figure("totals.sampled", count)
        text = "Attempts whose peaks are the largest of some samples, so lower bounds: "
        remarks.append(paragraph(f"{text}{sampled}."))
    return "".join(remarks)


COLUMNS = (
    *(Column(label) for label in ("tasks", "failed", "retries", "overruns")),
    *(Column(label) for label in ("GB·h allocated", "GB·h used", "efficiency")),
    *(Column(label) for label in ("core·h allocated", "core·h used")),
)


def _categories(document: Document) -> str:
    rows = [
        [_name(category["name"]), *_row(document, f"categories.{at}.totals")]
        for at, category in enumerate(document.values["categories"][:SHOWN])
    ]
    if not rows:
        return NOTHING_THERE
    if document.values["rest"]:
        label = f"{document.figure('rest.categories', count)} others, summed"
        rows.append([label, *_row(document, "rest.totals")])
    columns = [Column("category", is_text=True), *COLUMNS]
    caption = "Sums over the attempts of each category, the most memory first"
    return table(caption, columns, rows, last=["All", *_row(document, "totals")])


def _row(document: Document, path: str) -> list[str]:
    counts = ("tasks", "failed", "retries", "overruns")
    shown = [document.figure(f"{path}.{name}", count) for name in counts]
    for kind, names in (
        ("memory", ("allocated", "used", "efficiency")),
        ("cores", ("allocated", "used")),
    ):
        for name in names:
            show = share if name == "efficiency" else number
            shown.append(document.figure(f"{path}.kinds.{kind}.{name}", show))
    return shown


def _peaks(document: Document) -> str:
    categories = document.values["categories"]
    parts = [_category(document, at) for at in range(min(len(categories), SHOWN))]
    if document.values["rest"]:
        left = document.figure("rest.categories", count)
        tasks = document.figure("rest.totals.tasks", count)
        held = document.figure("rest.totals.kinds.memory.allocated", gb_h)
        parts.append(
            paragraph(f"{left} smaller categories are not drawn: {tasks} tasks that held {held}.")
        )
    return "".join(parts) or NOTHING_THERE


def _category(document: Document, at: int) -> str:
    place = f"categories.{at}"
    category = document.at(place)
    tasks = document.figure(f"{place}.totals.tasks", count)
    wasted = document.figure(f"{place}.totals.kinds.memory.wasted", gb_h)
    final = document.figure(f"{place}.ladder.final", memory)
    line, left_out = category["specification"], category["not_enough_for"]
    remark = f" ({left_out})" if left_out else ""
    fixed = (
        f"<p>{ENOUGH}{remark}:</p>"
        f"<pre><code>parsl_resource_specification={escape(line)}</code></pre>"
        if line
        else ""
    )
    return (
        f"<article><h3>{_name(category['name'])}</h3>"
        f'<p class="muted">Tasks: {tasks}. Memory allocated and not used: {wasted}. '
        f"First allocation at the end: {final}.</p>{peaks(document, place)}{fixed}"
        f"{fold('Allocation against use over time', course(document, f'{place}.course'))}</article>"
    )


def _retries(document: Document) -> str:
    totals = document.values["totals"]
    if not totals["causes"]:
        return paragraph("Every attempt finished: there were no retries.")
    lead = paragraph(
        "Of ",
        document.figure("totals.attempts", count),
        " attempts ",
        document.figure("totals.endings.done", count),
        " finished, ",
        document.figure("totals.retries", count),
        " followed an earlier one that did not.",
    )
    names = list(totals["causes"])
    rows = [
        [_name(category["name"]), *_causes(document, f"categories.{at}.totals.causes", names)]
        for at, category in enumerate(document.values["categories"][:SHOWN])
        if category["totals"]["causes"]
    ]
    if document.values["rest"]:
        rows.append(["All others, summed", *_causes(document, "rest.totals.causes", names)])
    columns = [Column("category", is_text=True), *(Column(cause(name)) for name in names)]
    last = ["All", *_causes(document, "totals.causes", names)]
    caption = "Attempts that did not finish; one that ran out of two kinds is in both columns"
    return lead + table(caption, columns, rows, last=last)


def _causes(document: Document, path: str, names: Sequence[str]) -> list[str]:
    known = document.at(path)
    return [document.figure(f"{path}.{name}", count) if name in known else "0" for name in names]


def _tasks(document: Document, path: str, caption: str) -> str:
    rows = []
    for at, task in enumerate(document.at(path)):
        place = f"{path}.{at}"
        rows.append(
            (
                escape(shortened(str(task["task_id"]), NAME_WIDTH)),
                _name(task["category"]),
                document.figure(f"{place}.wall_s", duration),
                document.figure(f"{place}.attempts", count),
                escape(task["ending"]),
                document.figure(f"{place}.allocated", memory),
                document.figure(f"{place}.peak", memory),
                document.figure(f"{place}.wasted", gb_h),
            )
        )
    if not rows:
        return NOTHING_THERE
    texts = [Column("task", is_text=True), Column("category", is_text=True)]
    counts = [Column("time"), Column("attempts"), Column("ended")]
    last = [Column("last allocation"), Column("peak"), Column("wasted")]
    return table(caption, [*texts, *counts, *last], rows)


def _what_if(summary: Summary, curves: Mapping[str, Sequence[Point]]) -> str:
    """The category that wasted most, of those with a curve."""
    most = most_wasteful([found for found in summary.categories if curves.get(found.name)])
    if most is None:
        return paragraph(escape(_why_not(most_wasteful(summary.categories))))
    lead = paragraph(
        "What tasks of ",
        f"<strong>{_name(most.name)}</strong>",
        ", the category with the most waste, would have reserved and how often they would have "
        "been retried with another first allocation:",
    )
    return lead + what_if("what-if-chart", shortened(most.name), curves[most.name])


def _why_not(category: Category | None) -> str:
    measured = category.peaks.measured if category and category.peaks else 0
    if category is None or measured >= FEWEST:
        return "For this run no other first allocations were tried."
    return too_few(shortened(category.name, NAME_WIDTH), measured)


def most_wasteful(categories: Sequence[Category]) -> Category | None:
    """The category that wasted most memory; None if there is none."""
    wasted = [category.totals.kinds["memory"].wasted or 0.0 for category in categories]
    return categories[wasted.index(max(wasted))] if wasted else None


def _name(name: str) -> str:
    """A name as markup that may be broken where its parts meet."""
    return re.sub(r"(?<=[:_/.])(?=\w)", "<wbr>", escape(shortened(name, NAME_WIDTH)))
