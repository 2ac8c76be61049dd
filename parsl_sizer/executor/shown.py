"""What people see of a run: a line while it lasts, on a terminal, and a table at its end."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from typing import ClassVar

from rich.console import Console
from rich.live import Live
from rich.text import Text

from parsl_sizer.model import Ending, Kind, Resources, format_amount, printable
from parsl_sizer.report.console import LiteralConsole
from parsl_sizer.report.run import RunCost, run_table
from parsl_sizer.simulator import Row
from parsl_sizer.simulator.replay import replay
from parsl_sizer.sizing import Categories, Settle

from .driver import Driver

WIDTH = 160
"""Of what is not shown on a terminal."""


class Costs:
    """What the tasks of a run have cost; of an observed one, what they would have cost."""

    def __init__(self, hypothetical: Categories | None = None) -> None:
        self._hypothetical = hypothetical
        self.run = RunCost()
        self.groups: Counter[str] = Counter()
        """How many tasks ended in each of several groups."""

    def add(self, settle: Settle, node: Resources | None) -> None:
        """A task is over."""
        if node is None:
            return
        if self._hypothetical is None:
            self.run.add(settle.outcomes, node, is_split=settle.is_split)
        elif settle.ending is Ending.DONE:
            task, usage = settle.task, settle.outcomes[-1].usage
            peak = dict(usage.peak)
            peak.pop(Kind.CORES, None)  # cores never stop a task
            row = Row(0, task, peak, usage.wall_s)
            for replayed in replay([row], self._hypothetical, node):
                if replayed.outcomes:
                    *before, last = replayed.outcomes
                    self.run.add([*before, last._replace(usage=usage)], node)


def show(costs: Costs, label: str, *, observed: bool = False) -> None:
    """Print what a run cost, on standard error: standard output is the user's."""
    if not costs.run.categories:
        return
    what = "would have been given" if observed else "were given"
    console = LiteralConsole(stderr=True, width=_width())
    console.print(f"\nparsl_sizer: what tasks on {label} {what}", style="bold")
    console.print(run_table(costs.run))
    if costs.groups:
        shares = ", ".join(f"{group} {count:,}" for group, count in costs.groups.most_common())
        console.print(f"Tasks by group: {shares}")


class LiveLine:
    """How far the run is, in one line at the bottom of a terminal for each executor."""

    _shown: ClassVar[list[LiveLine]] = []
    _live: ClassVar[Live | None] = None
    _changing: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, driver: Driver, label: str) -> None:
        self._driver = driver
        self._label = label

    def start(self) -> None:
        """Show the line until `stop`; nothing but on a terminal that nobody types at."""
        if not sys.stderr.isatty() or hasattr(sys, "ps1") or sys.flags.interactive:
            return
        with self._changing:
            self._shown.append(self)
            if LiveLine._live is None:
                LiveLine._live = Live(
                    get_renderable=_lines,
                    # It shows the user's own output too, which is not ours to escape.
                    console=Console(stderr=True, highlight=False, markup=False, emoji=False),
                    refresh_per_second=2,
                    transient=True,
                    # Else what belongs into a file would be shown.
                    redirect_stdout=sys.stdout.isatty(),
                )
                LiveLine._live.start()

    def stop(self) -> None:
        """Take the line away."""
        with self._changing:
            if self in self._shown:
                self._shown.remove(self)
            if LiveLine._live is not None and not self._shown:
                live, LiveLine._live = LiveLine._live, None
                with contextlib.suppress(OSError):  # the terminal is gone
                    live.stop()

    def line(self) -> Text:
        """What is shown."""
        driver = self._driver
        running, waiting = driver.running, len(driver) - driver.running
        room = driver.room()
        held = format_amount(Kind.MEMORY, driver.held)
        memory = f", {held} of {format_amount(Kind.MEMORY, room)} given out" if room else ""
        return Text(
            f"{printable(self._label, keep='')}: {driver.settled:,} over, {running:,} running, "
            f"{waiting:,} waiting, {driver.retries:,} retries{memory}",
            style="dim",
        )


def _lines() -> Text:
    return Text("\n").join(shown.line() for shown in list(LiveLine._shown))


def _width() -> int | None:
    return None if sys.stderr.isatty() else WIDTH
