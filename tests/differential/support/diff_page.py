"""Write docs/guides/differences.md from the table of cases."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
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


def page(cases: Sequence[Case] = CASES) -> str:
    """Return the text of the page."""
    return "".join(
        [
            TOP,
            BETTER,
            *rows(case for case in cases if case.kind == "better"),
            DIFFERENT,
            *rows(case for case in cases if case.kind == "different"),
        ]
    )


def rows(cases: Iterator[Case]) -> Iterator[str]:
    """Yield a row for each title; cases without one belong to that of another case."""
    told = set()
    for case in cases:
        row = (case.title, case.plain, case.ours, where(case), case.option)
        if case.title and row not in told:
            told.add(row)
            yield f"| {' | '.join(row)} |\n".replace("|  |", "| |")


def where(case: Case) -> str:
    """Return the engines of a case, as they are called."""
    return ", ".join(NAMES[engine] for engine in case.engines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
