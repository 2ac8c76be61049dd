"""A strategy of one's own, measured against those that come with the package.

python examples/own_strategy.py
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from rich.console import Console

from parsl_sizer import PerKind, Predictor, Resources, Setting, TaskInfo
from parsl_sizer.report import Metrics, Result, standings
from parsl_sizer.report.text import compare_table
from parsl_sizer.simulator.generate import generate
from parsl_sizer.simulator.replay import replay
from parsl_sizer.simulator.trace import Row
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Family, catalog

NODE = Resources(cores=16, memory=64e9, disk=64e9)


class RecentMaximum(Predictor):
    """The largest of the last peaks and a tenth more; twice as much after a failure."""

    def __init__(self, last: int) -> None:
        self.peaks: deque[float] = deque(maxlen=last)

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        return 1.1 * max(self.peaks) if self.peaks else None

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float | None:
        return 2 * failed[-1]

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        self.peaks.append(peak)

    def why(self, task: TaskInfo, amount: float) -> str:
        return f"the largest of the last {len(self.peaks)} peaks and a tenth more"


def build(setting: Setting, *, last: int = 20) -> Family:
    """The largest of the last peaks and a tenth more, doubled after a failure."""
    return lambda category: PerKind.of(setting.kinds, lambda kind: RecentMaximum(last))


def replayed(name: str, family: Family, rows: Sequence[Row]) -> Result:
    """What the strategy would have cost on these rows."""
    metrics = Metrics(NODE)
    for task in replay(rows, Categories(family), NODE):
        metrics.add(task.row.peak, task.row.time_s, task.outcomes, impossible=task.impossible)
    return Result(name, metrics)


def main() -> None:
    rows = list(generate("linear", 2000, seed=1))
    setting = Setting(objective="waste")
    results = [
        replayed("recent-maximum", build(setting), rows),
        *(
            replayed(name, catalog.family(name, setting), rows)
            for name in ("whole-machine", "doubling", "percentile:p=95")
        ),
    ]
    Console().print(compare_table(standings(results)))


if __name__ == "__main__":
    main()
