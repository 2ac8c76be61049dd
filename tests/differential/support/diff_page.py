"""Write docs/guides/differences.md from the table of cases."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "guides" / "differences.md"
COMMAND = "python tests/differential/support/diff_page.py"

if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from diff_case import NAMES, Case  # noqa: E402 - found from here
from diff_table import CASES  # noqa: E402

TOP = """\
# Differences from plain Parsl

A program does the same with `SizedExecutor` around an executor as without it: values,
exceptions and their tracebacks, output, files, memoisation, retries. `make differential` runs
more than 100 programs both ways and compares all that can be observed of them. What follows is all
that is not the same.
"""
BETTER = """
## Better

Here plain Parsl loses a worker or leaves futures pending, or one task disturbs the next.

| a task that | with the plain executor | sized | on | as before with |
|---|---|---|---|---|
"""
DIFFERENT = """
## Different

| a task that | with the plain executor | sized | on | as before with |
|---|---|---|---|---|
"""
REFUSED = """
## Refused

| a program that | with the plain executor | sized | on | instead |
|---|---|---|---|---|
"""


def page(cases: Sequence[Case] = CASES) -> str:
    """Return the text of the page."""
    return "".join(
        [
            TOP,
            BETTER,
            *rows(case for case in cases if case.kind == "better"),
            DIFFERENT,
            *rows(case for case in cases if case.kind == "different"),
            REFUSED,
            *rows(case for case in cases if case.kind == "refused"),
        ]
    )


def rows(cases: Iterable[Case]) -> Iterator[str]:
    """Yield a row for each title with all its engines; cases without one belong to another case."""
    told: dict[tuple[str, ...], set[str]] = {}
    for case in cases:
        if case.title:
            row = (case.title, case.plain, case.ours, case.option)
            told.setdefault(row, set()).update(case.engines)
    for (title, plain, ours, option), engines in told.items():
        where = ", ".join(name for engine, name in NAMES.items() if engine in engines)
        yield f"| {title} | {plain} | {ours} | {where} | {option} |\n".replace("|  |", "| |")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
