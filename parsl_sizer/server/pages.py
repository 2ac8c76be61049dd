"""The pages that are not reports: the list of runs, and what went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import quote, urlencode

from parsl_sizer.archive.base import RunLine
from parsl_sizer.report.html import POLICY
from parsl_sizer.report.markup import Column, paragraph, section, table
from parsl_sizer.report.phrases import moment
from parsl_sizer.report.style import STYLE
from parsl_sizer.report.text import UNKNOWN, shortened

NAME_WIDTH = 80
FORM = {
    "user": ("User", ""),
    "workflow": ("Workflow", "align.py"),
    "category": ("Category", "align"),
    "label": ("Label", "name=value"),
    "since": ("Ended since", "7d or a date"),
    "until": ("Ended until", "2026-03-31"),
}
"""What the form asks for, and what one might write there."""
COLUMNS = (
    Column("run", is_text=True),
    Column("began"),
    *(Column(label, is_text=True) for label in ("workflow", "user", "source")),
    *(Column(label) for label in ("categories", "attempts")),
)
FORM_STYLE = """
form { display: grid; grid-template-columns: repeat(auto-fit, minmax(135px, 1fr)); gap: 12px; }
form label { display: block; color: var(--muted); font-size: .85rem; }
form input, form button {
  font: inherit; color: var(--text); background: var(--page); width: 100%; min-height: 44px;
  border: 1px solid var(--muted); border-radius: 6px; padding: 6px 10px;
}
form input::placeholder { color: var(--muted); opacity: 1; }
#runs tbody th { min-width: 12em; }
.moment { white-space: nowrap; }
form button { align-self: end; background: var(--accent); color: var(--card); cursor: pointer; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
"""


def runs_page(
    archive: str,
    asked: Mapping[str, Sequence[str]],
    lines: Sequence[RunLine],
    *,
    shown: int,
    most: int,
) -> str:
    """The first `shown` of the runs; if there are more, how to see them."""
    search = section("search", "Search", _form(asked))
    runs = section("runs", "Runs", _runs(lines[:shown]), _more(asked, len(lines), shown, most))
    lead = paragraph(f"What is in {escape(archive)}, the newest first.")
    return _page("Runs", f"<h1>Runs</h1>{lead}", search + runs)


def error_page(status: int, sentence: str, path: str) -> str:
    """What went wrong at an address, in a sentence."""
    back = paragraph(f'<a href="{_way_back(path)}">All runs</a>')
    return _page(f"Error {status}", f"<h1>Error {status}</h1>", paragraph(escape(sentence)) + back)


def _page(title: str, head: str, body: str) -> str:
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}: parsl-sizer</title><style>{STYLE}{FORM_STYLE}</style></head>"
        f"<body><header>{head}</header><main>{body}</main>"
        "<footer><p>Made by parsl-sizer serve.</p></footer></body></html>\n"
    )


def _way_back(path: str) -> str:
    """From an address to all runs: a proxy may show them in a folder that is not known here.

    >>> _way_back("/"), _way_back("/runs/a/b"), _way_back("/some/where/else")
    ('./', '../', '../../')
    """
    # The id of a run is one part of its address, whatever it holds: in links / is %2F.
    depth = 1 if path.startswith("/runs/") else path.count("/") - 1
    return "../" * depth or "./"


def _form(asked: Mapping[str, Sequence[str]]) -> str:
    inputs = "".join(
        f'<div><label for="{name}">{label}</label><input id="{name}" name="{name}" '
        f'value="{escape(asked.get(name, [""])[0])}" placeholder="{escape(hint)}" '
        'autocomplete="off"></div>'
        for name, (label, hint) in FORM.items()
    )
    return f'<form role="search" method="get">{inputs}<button type="submit">Search</button></form>'


def _runs(lines: Sequence[RunLine]) -> str:
    if not lines:
        return paragraph("There is none like that.")
    rows = [
        (
            _link(run.run_id),
            f'<span class="moment">{escape(moment(run.started_at or None))}</span>',
            escape(shortened(run.workflow or UNKNOWN, NAME_WIDTH)),
            escape(shortened(run.user or UNKNOWN, NAME_WIDTH)),
            escape(shortened(run.source, NAME_WIDTH)),
            f"{categories:,}",
            f"{attempts:,}",
        )
        for run, attempts, categories, _ in lines
    ]
    return table("Attempts and categories are of what was searched for", COLUMNS, rows)


def _link(run_id: str) -> str:
    address = quote(run_id, safe="", errors="replace")
    return f'<a href="runs/{address}">{escape(shortened(run_id, NAME_WIDTH))}</a>'


def _more(asked: Mapping[str, Sequence[str]], found: int, shown: int, most: int) -> str:
    if found <= shown:
        return ""
    if shown >= most:
        return paragraph(f"These are the newest {shown:,}; search for those that you mean.")
    wanted = urlencode({**asked, "last": [str(min(most, 4 * shown))]}, doseq=True)
    return paragraph(f'<a href="?{escape(wanted)}">Show more</a>')
