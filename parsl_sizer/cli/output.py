"""What all commands print with: JSON for programs, tables and progress for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from parsl_sizer.model import printable
from parsl_sizer.report.plain import json_text

if TYPE_CHECKING:
    from parsl_sizer.report.console import LiteralConsole

WIDTH = 400
"""Of what is not shown on a terminal: one line there is one line."""


def print_json(value: object) -> None:
    """Print a value as JSON, in which NaN and infinity do not exist."""
    print(json_text(value))


def console() -> LiteralConsole:
    """Where tables go. They keep their width in files and pipes."""
    from parsl_sizer.report.console import LiteralConsole

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return LiteralConsole(width=None if known else WIDTH)


def say(sentence: str) -> None:
    """A remark on standard error: results alone go to standard output."""
    print(f"parsl-sizer: {printable(sentence, keep='')}", file=sys.stderr)


def tell(sentence: str = "") -> None:
    """Print a sentence that is a result."""
    print(printable(sentence), flush=True)


Advance = Callable[[int], None]
T = TypeVar("T")

STEP = 500
"""Items between two updates of the progress bar."""


@contextmanager
def progress(description: str, total: int | None) -> Iterator[Advance]:
    """A bar on standard error while the work goes on, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda steps: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    from parsl_sizer.report.console import LiteralConsole

    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(*columns, console=LiteralConsole(stderr=True), transient=True) as bar:
        work = bar.add_task(description, total=total)
        yield lambda steps: bar.advance(work, steps)


def ticking(items: Iterable[T], advance: Advance) -> Iterator[T]:
    """The same items, with the bar moved as they pass."""
    for count, item in enumerate(items, start=1):
        yield item
        if not count % STEP:
            advance(STEP)
