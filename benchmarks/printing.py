"""What every benchmark prints: when and on which machine it ran, and whether a bar was reached."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

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


def verdict(missed: list[str]) -> str:
    """One cell of a table: what is above its bar, if anything.

    >>> verdict([]), verdict(["learn"])
    ('ok', '[bold red]MISSED: learn[/]')
    """
    return f"[bold red]MISSED: {', '.join(missed)}[/]" if missed else "ok"


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


def lines_table(title: str, lines: Sequence[Line]) -> Table:
    table = Table(title=title, title_justify="left", box=None)
    table.add_column("what")
    table.add_column("measured", justify="right")
    table.add_column("bar", justify="right")
    table.add_column("")
    for line in lines:
        measured = f"{number(line.measured)} {line.unit}".strip()
        if line.bar is None:
            table.add_row(line.what, measured, "–")
        else:
            missed = ["above the bar"] if line.is_missed else []
            table.add_row(line.what, measured, f"≤ {number(line.bar)} {line.unit}", verdict(missed))
    return table
