"""A table as wide as the terminal allows."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table

ENDLESS = 10_000
"""Columns in which every table has the width that it likes."""

Layout = Callable[[], Table]


class FirstThatFits:
    """The first of some layouts that is no wider than the terminal, else the last one, folded.

    rich crops what it has no room for, without a word.
    """

    def __init__(self, *layouts: Layout) -> None:
        self._layouts = layouts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        *wider, narrowest = self._layouts
        for layout in wider:
            table = layout()
            liked = Measurement.get(console, options.update(width=ENDLESS), table).maximum
            if liked <= options.max_width:
                yield table
                return
        yield narrowest()
