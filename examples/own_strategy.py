"""A strategy of one's own: replayed beside those of the package, then sizing real tasks.

python examples/own_strategy.py
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from tempfile import TemporaryDirectory

import parsl
from parsl import python_app
from parsl.config import Config
from rich.console import Console

from parsl_sizer import (
    PerKind,
    Predictor,
    Resources,
    Setting,
    SizedExecutor,
    TaskInfo,
    sizing_of,
)
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


def compare() -> None:
    """A table of what the strategy would have cost, beside others."""
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


@python_app
def hold(megabytes: int) -> int:
    import time

    held = bytearray(b"x") * (megabytes * 1_000_000)
    time.sleep(0.5)
    return len(held)


def run() -> None:
    """Real tasks, sized by it: an executor takes what makes one strategy per category."""
    strategy = build(Setting(), last=5)
    # Tasks do not grow here, so that the strategy is asked what comes next.
    executor = SizedExecutor(strategy=strategy, node="memory=1GB", grow=False)
    with TemporaryDirectory() as folder, parsl.load(Config(executors=[executor], run_dir=folder)):
        for megabytes in (60, 80, 70, 200):  # one after the other, so each learns from those before
            future = hold(megabytes)
            future.result()
            print(sizing_of(future))


def main() -> None:
    compare()
    run()


if __name__ == "__main__":
    main()
