"""The pieces of a page: figures that say where they come from, tables, folds.

Whatever is text is escaped here; functions that return markup are given markup only where
they say so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from html import escape as escape_html
from typing import Any, NamedTuple

from parsl_sizer.model import printable

Shown = Callable[[Any], str]


def escape(text: str) -> str:
    """Return the text as markup that shows it, control characters included."""
    return escape_html(printable(text))


class Document:
    """The JSON of a summary. Figures are looked up in it, so that page and JSON agree."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def at(self, path: str) -> Any:
        """The value at a path like ``categories.0.totals.tasks``."""
        value: Any = self.values
        for part in path.split("."):
            value = value[int(part)] if isinstance(value, list) else value[part]
        return value

    def figure(self, path: str, shown: Shown) -> str:
        """The value at a path as people read it, as markup that carries the exact one.

        >>> Document({"tasks": 1200}).figure("tasks", "{:,}".format)
        '<span data-figure="tasks" data-value="1200">1,200</span>'
        """
        value = self.at(path)
        exact = escape(json.dumps(value))
        return (
            f'<span data-figure="{escape(path)}" data-value="{exact}">{escape(shown(value))}</span>'
        )


class Column(NamedTuple):
    """The head of a column; texts are on the left, numbers on the right."""

    label: str
    is_text: bool = False


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    *,
    last: Sequence[str] | None = None,
) -> str:
    """A table of markup, each row headed by its first cell; `last` is a row of sums.

    Roles are said aloud, as on a narrow screen its rows are laid out as cards.
    """
    heads = "".join(
        f'<th role="columnheader" scope="col"{_kind(column)}>{escape(column.label)}</th>'
        for column in columns
    )
    body = "".join(_row(columns, cells, "") for cells in rows)
    if last is not None:
        body += _row(columns, last, ' class="sum"')
    return (
        f'<table class="cards" role="table"><caption>{escape(caption)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table>'
    )


def _row(columns: Sequence[Column], cells: Sequence[str], style: str) -> str:
    first, *others = cells
    found = "".join(
        f'<td role="cell" data-label="{escape(column.label)}"{_kind(column)}>{cell}</td>'
        for column, cell in zip(columns[1:], others, strict=True)
    )
    return f'<tr role="row"{style}><th role="rowheader" scope="row">{first}</th>{found}</tr>'


def _kind(column: Column) -> str:
    return ' class="text"' if column.is_text else ""


def fold(summary: str, *content: str) -> str:
    """What is shown when asked for; the content is markup."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(content)}</details>"


def section(name: str, title: str, *content: str) -> str:
    """A part of the page; the content is markup."""
    return (
        f'<section id="{escape(name)}" aria-labelledby="{escape(name)}-heading">'
        f'<h2 id="{escape(name)}-heading">{escape(title)}</h2>{"".join(content)}</section>'
    )


def paragraph(*content: str) -> str:
    """A paragraph of markup."""
    return f"<p>{''.join(content)}</p>"


def definitions(style: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Names and what they stand for, the latter as markup."""
    found = "".join(f"<div><dt>{escape(name)}</dt><dd>{what}</dd></div>" for name, what in pairs)
    return f'<dl class="{style}">{found}</dl>'


KEYS = {
    "first": '<line class="mark first" x1="0" x2="26" y1="6" y2="6"/>',
    "later": '<line class="mark later" x1="0" x2="26" y1="6" y2="6"/>',
    "line": '<line class="mark first" x1="0" x2="26" y1="6" y2="6"/>',
    "bar": '<rect class="bar" width="26" height="12"/>',
    "area": '<rect class="area" width="26" height="12"/>',
}


def key(style: str, label: str) -> str:
    """A sample of a line or an area, and what it means."""
    return (
        f'<span class="key"><svg width="26" height="12" aria-hidden="true">{KEYS[style]}</svg>'
        f" {escape(label)}</span> "
    )


def chart(picture: str, *keys: str) -> str:
    """A chart with its key below."""
    return f"<figure>{picture}<figcaption>{''.join(keys)}</figcaption></figure>"
