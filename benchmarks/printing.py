"""What every benchmark prints: when and on which machine it ran, and whether a bar was reached."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from rich.box import MARKDOWN
from rich.table import Table

from parsl_sizer.report.text import number


def machine() -> dict[str, object]:
    """What figures depend on, without anything that names the machine."""
    return {
        "date": date.today().isoformat(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def described() -> str:
    """The same for people."""
    facts = machine()
    return f"{facts['date']}, {facts['cpu']}, {facts['cores']} cores, Python {facts['python']}"


def _cpu_model() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def table(names: Sequence[str], figures: Sequence[str]) -> Table:
    """An empty table with these columns and one for the verdict, as Markdown has it."""
    made = Table(box=MARKDOWN)
    for name in names:
        made.add_column(name)
    for figure in figures:
        made.add_column(figure, justify="right")
    made.add_column("")
    return made


def verdict(missed: list[str]) -> str:
    """One cell of a table: what is above its bar, if anything.

    >>> verdict([]), verdict(["learn"])
    ('ok', 'MISSED: learn')
    """
    return f"MISSED: {', '.join(missed)}" if missed else "ok"


@dataclass(frozen=True)
class Line:
    """A single figure beside its bar, if it has one."""

    what: str
    measured: float
    bar: float | None
    unit: str

    @property
    def is_missed(self) -> bool:
        return self.bar is not None and self.measured > self.bar


def lines_table(lines: Sequence[Line]) -> Table:
    made = table(["what"], ["measured", "bar"])
    for line in lines:
        # Three decimals of what is small: 1.005 is not 1 beside a bar of 1.02.
        shown = f"{line.measured:.3f}" if line.measured < 10 else number(line.measured)
        measured = f"{shown} {line.unit}"
        if line.bar is None:
            made.add_row(line.what, measured, "–")
        else:
            missed = ["above the bar"] if line.is_missed else []
            made.add_row(line.what, measured, f"≤ {number(line.bar)} {line.unit}", verdict(missed))
    return made
