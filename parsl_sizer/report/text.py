"""Results as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from parsl_sizer.model import Kind, is_bytes, printable

from .compare import Standing
from .metrics import Metrics, Tally

NAME_WIDTH = 40
"""Categories may have names of any length; tables show so much of them."""

UNKNOWN = "–"


def shortened(name: str, width: int = NAME_WIDTH) -> str:
    """The name on one line of at most `width` characters.

    >>> shortened("a" * 50, 10), shortened("")
    ('aaaaaaaaa…', '(none)')
    """
    flat = printable(" ".join(name.split())) or "(none)"
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def amount(kind: Kind, value: float) -> str:
    """An amount times seconds, as people read it.

    >>> amount(Kind.MEMORY, 7.2e15), amount(Kind.CORES, 1800.0)
    ('2,000 GB·h', '0.5 core·h')
    """
    if is_bytes(kind):
        return f"{number(value / 1e9 / 3600)} GB·h"
    return f"{number(value / 3600)} {kind.value.removesuffix('s')}·h"


def number(value: float | None) -> str:
    """Three digits, thousands apart; large numbers in full.

    >>> number(12345.6), number(0.01234), number(None)
    ('12,346', '0.0123', '–')
    """
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"


def _ratio(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{100 * value:.1f} %"


def replay_table(metrics: Metrics) -> Table:
    """The figures of one run: a row per measure, a column per kind."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for kind in metrics.kinds:
        table.add_column(kind.value, justify="right", no_wrap=True)
    tallies = metrics.kinds.items()
    for label, attribute in _AMOUNTS:
        cells = [amount(k, getattr(t, attribute)) if t.tasks else UNKNOWN for k, t in tallies]
        table.add_row(label, *cells)
    for label, attribute, shown in _MEASURES:
        table.add_row(label, *(shown(getattr(tally, attribute)) for _, tally in tallies))
    for label, attribute in _COUNTS:
        table.add_row(label, *(f"{getattr(tally, attribute):,}" for _, tally in tallies))
    return table


_AMOUNTS = (
    ("used", "used"),
    ("allocated", "allocated"),
    ("waste", "waste"),
    ("  internal fragmentation", "fragmentation"),
    ("  failed attempts", "failed"),
)
_MEASURES = (
    ("MAQ: used / allocated", "maq", _ratio),
    ("WRR: waste saved against whole nodes", "wrr", _percent),
    ("ATE: average task efficiency", "ate", _percent),
    ("throughput against max-peak", "throughput", number),
)
_COUNTS = (("tasks", "tasks"), ("retries", "retries"), ("impossible", "impossible"))


def category_table(categories: Mapping[str, Mapping[Kind, Tally]], kind: Kind) -> Table:
    """One kind by category, the largest waste first; categories without it are left out."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("category")
    for label in ("tasks", "waste", "MAQ", "WRR", "ATE", "retries", "impossible"):
        table.add_column(label, justify="right", no_wrap=True)
    known = [(name, tallies[kind]) for name, tallies in categories.items() if kind in tallies]
    for category, tally in sorted(known, key=lambda item: -item[1].waste):
        table.add_row(
            Text(shortened(category)),
            f"{tally.tasks:,}",
            amount(kind, tally.waste) if tally.tasks else UNKNOWN,
            _ratio(tally.maq),
            _percent(tally.wrr),
            _percent(tally.ate),
            f"{tally.retries:,}",
            f"{tally.impossible:,}",
        )
    return table


def _waste(standing: Standing) -> str:
    tally = standing.tally
    return amount(standing.kind, tally.waste) if tally.tasks else UNKNOWN


def compare_table(standings: Sequence[Standing]) -> Table:
    """One row per strategy, least waste first, the best one marked."""
    kind = standings[0].kind.value if standings else "memory"
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("", min_width=1)
    table.add_column("strategy", overflow="fold", min_width=12)
    # On a narrow terminal headers and names are folded; a figure is never cut.
    widths = [max(10, *(len(_waste(standing)) for standing in standings), 0), 5, 5, 7, 7, 7]
    labels = (f"{kind} waste", "× best", "MAQ", "WRR", "ATE", "retries /task")
    for label, width in zip(labels, widths, strict=True):
        table.add_column(label, justify="right", min_width=width)
    for standing in standings:
        tally = standing.tally
        limit = " (the limit)" if standing.result.is_limit else ""
        table.add_row(
            "★" if standing.is_best else "",
            Text(shortened(standing.result.name) + limit),
            _waste(standing),
            _ratio(standing.relative_waste),
            _ratio(tally.maq),
            _percent(tally.wrr),
            _percent(tally.ate),
            _ratio(standing.retries_per_task),
            style="bold green" if standing.is_best else "dim" if limit else None,
        )
    return table
