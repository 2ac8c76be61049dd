"""How fast is a decision, how much memory does a category hold, how fast is a replay?

`propose` and `learn` are timed in thread CPU time, call by call, while a trace of one
category is replayed: after so many records, over the second half of them (refits are
amortised, so a shorter window may see none or too many). The replay at the end is that
of `parsl-sizer replay`, from a file, in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

from printing import Line, described, lines_table, machine, table, verdict
from rich.table import Table

from parsl_sizer.cli.output import Advance, console, print_json, progress, ticking
from parsl_sizer.model import Kind, Outcome, Resources, TaskInfo
from parsl_sizer.report import Metrics
from parsl_sizer.simulator import Row, read, write
from parsl_sizer.simulator.generate import generate
from parsl_sizer.simulator.replay import replay
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Proposal, Setting, Strategy
from parsl_sizer.strategies.catalog import family
from parsl_sizer.testing import footprint

NODE = Resources(16, 64e9, 64e9)
KINDS = (Kind.CORES, Kind.MEMORY, Kind.DISK)

PROPOSE_US = 20.0
LEARN_US = 40.0
SLOWEST_MS = 20.0
FOOTPRINT_KB = 1000.0
GROWTH = 1.05
"""Of the footprint from 10^5 records on: "none", but for the digits of its counters."""
REPLAY_S = 150.0
"""For 10^6 tasks."""
REPLAY_GROWTH_MB = 5.0
"""What "flat" means: the allocator's own ups and downs."""
IMPORT_MS = 50.0

JUDGED = 1_000_000
"""The bars of decisions are for so many records; with few, ladders are refitted often."""

TRACES = ("bimodal", "linear")
RUNS = 5


class Timed:
    """A strategy that notes the thread CPU time of every call, in ns."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.proposing = array("q")
        self.learning = array("q")

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        started = time.thread_time_ns()
        proposal = self.strategy.propose(task, failures, largest)
        self.proposing.append(time.thread_time_ns() - started)
        return proposal

    def learn(self, outcome: Outcome) -> None:
        started = time.thread_time_ns()
        self.strategy.learn(outcome)
        self.learning.append(time.thread_time_ns() - started)


@dataclass(frozen=True)
class Decisions:
    """What the calls cost around a number of records of one category."""

    records: int
    kinds: int
    with_input_size: bool
    propose_us: float
    learn_us: float
    propose_slowest_ms: float
    learn_slowest_ms: float
    footprint_kb: float

    @property
    def shown_kinds(self) -> str:
        kinds = "memory" if self.kinds == 1 else "three kinds"
        return f"{kinds}, input size known" if self.with_input_size else kinds

    @property
    def is_judged(self) -> bool:
        return self.records >= JUDGED

    def missed(self) -> list[str]:
        """The bars that are not reached."""
        above = {
            "propose": self.propose_us > PROPOSE_US,
            "learn": self.learn_us > LEARN_US,
            "slowest": max(self.propose_slowest_ms, self.learn_slowest_ms) > SLOWEST_MS,
            "footprint": self.footprint_kb > FOOTPRINT_KB,
        }
        return [name for name, is_above in above.items() if is_above and self.is_judged]


def timed_decisions(
    strategy: str,
    records: Iterable[int],
    kinds: tuple[Kind, ...],
    advance: Advance,
    *,
    with_input_size: bool,
) -> Iterator[Decisions]:
    """The cost of decisions at each number of records, from one run."""
    wanted = sorted(records)
    timed = Timed(family(strategy, Setting(kinds, "waste"))("work"))
    categories = Categories(lambda category: timed, kinds=kinds)
    rows = drawn(wanted[-1], with_input_size=with_input_size)
    calls: dict[int, tuple[int, int]] = {}
    halves = {count // 2 for count in wanted}
    for count, _ in enumerate(ticking(replay(rows, categories, NODE), advance), start=1):
        if count in halves:
            calls[count] = len(timed.proposing), len(timed.learning)
        if count in wanted:
            first_proposal, first_lesson = calls[count // 2]
            propose_us, propose_slowest_ms = _mean_and_slowest(timed.proposing[first_proposal:])
            learn_us, learn_slowest_ms = _mean_and_slowest(timed.learning[first_lesson:])
            yield Decisions(
                records=count,
                kinds=len(kinds),
                with_input_size=with_input_size,
                propose_us=propose_us,
                learn_us=learn_us,
                propose_slowest_ms=propose_slowest_ms,
                learn_slowest_ms=learn_slowest_ms,
                footprint_kb=footprint(timed.strategy) / 1e3,
            )


def drawn(tasks: int, *, with_input_size: bool, seed: int = 1) -> Iterator[Row]:
    """One category whose memory is linear in the size of the input, with noise; all kinds vary."""
    random = Random(seed)
    for number in range(tasks):
        size = random.lognormvariate(20, 1)
        peak = {
            Kind.CORES: float(random.randint(1, 4)),
            Kind.MEMORY: min(60e9, (1e9 + 2 * size) * random.lognormvariate(0, 0.1)),
            Kind.DISK: random.uniform(1e9, 2e9),
        }
        features = {"input_size": size} if with_input_size else {}
        yield Row(number, TaskInfo(number, "work", features=features), peak, random.uniform(10, 20))


def _mean_and_slowest(nanoseconds: Sequence[int]) -> tuple[float, float]:
    """The mean in us, and the 99.99th percentile in ms."""
    ordered = sorted(nanoseconds)
    slowest = ordered[int(0.9999 * (len(ordered) - 1))]
    return sum(ordered) / len(ordered) / 1e3, slowest / 1e6


def replayed(kind: str, tasks: int, strategy: str) -> list[Line]:
    """Replay a generated trace from a file, in a process whose peak memory is its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{kind}.csv"
        with path.open("w", encoding="utf-8") as file:
            write(generate(kind, tasks), file)
        alone = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=alone) as pool:
            seconds, growth_mb = pool.submit(_replay, path, tasks, strategy).result()
    name = f"{kind}, {tasks:,} tasks"
    return [
        Line(f"replay of {name}", seconds, REPLAY_S, "s"),
        Line(f"replay of {name}: each task", seconds / tasks * 1e6, None, "µs"),
        Line(f"replay of {name}: memory, last 90 %", growth_mb, REPLAY_GROWTH_MB, "MB"),
    ]


def _replay(path: Path, tasks: int, strategy: str) -> tuple[float, float]:
    """The seconds it took, and the growth of memory after a tenth of the tasks in MB."""
    started = time.perf_counter()
    categories = Categories(family(strategy, Setting(KINDS, "waste")), kinds=KINDS)
    metrics = Metrics(NODE)
    early_mb = 0.0
    for count, task in enumerate(replay(read(path), categories, NODE), start=1):
        metrics.add(task.row.peak, task.row.time_s, task.outcomes, impossible=task.impossible)
        if count == tasks // 10:
            early_mb = _peak_memory_mb()
    return time.perf_counter() - started, _peak_memory_mb() - early_mb


def _peak_memory_mb() -> float:
    """The largest resident set so far.

    Not `ru_maxrss`: that begins with the size of the process that started this one.
    """
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    [peak] = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(peak) * 1024 / 1e6


def imported() -> Line:
    """What `import parsl_sizer` adds to a bare interpreter, best of `RUNS`."""
    # Taken in turns, so that a busy moment of the machine is in neither or both.
    runs = [(_run_ms("pass"), _run_ms("import parsl_sizer")) for _ in range(RUNS)]
    bare, loaded = (min(times) for times in zip(*runs, strict=True))
    return Line("import parsl_sizer", loaded - bare, IMPORT_MS, "ms")


def _run_ms(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - started) * 1e3


def growth(measured: Sequence[Decisions]) -> list[Line]:
    """How the footprints of a long run grew in it, from 10^5 records on."""
    late = [one for one in measured if one.records >= 100_000]
    return [
        Line(
            f"footprint, {one.shown_kinds}, from {one.records:,} to {other.records:,} records",
            other.footprint_kb / one.footprint_kb,
            GROWTH,
            "×",
        )
        for one, other in pairwise(late)
        if one.records < other.records
    ]


def decisions_table(measured: Sequence[Decisions]) -> Table:
    figures = [
        "records",
        f"propose ≤ {PROPOSE_US:.0f} µs",
        f"learn ≤ {LEARN_US:.0f} µs",
        f"propose 99.99 % ≤ {SLOWEST_MS:.0f} ms",
        f"learn 99.99 % ≤ {SLOWEST_MS:.0f} ms",
        f"footprint ≤ {FOOTPRINT_KB:.0f} kB",
    ]
    made = table(["sized"], figures)
    for one in measured:
        made.add_row(
            one.shown_kinds,
            f"{one.records:,}",
            f"{one.propose_us:.1f} µs",
            f"{one.learn_us:.1f} µs",
            f"{one.propose_slowest_ms:.2f} ms",
            f"{one.learn_slowest_ms:.2f} ms",
            f"{one.footprint_kb:.0f} kB",
            verdict(one.missed()) if one.is_judged else "–",
        )
    return made


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", default="1000,100000,1000000", help="numbers of records")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--replay", type=int, default=1_000_000, help="tasks to replay, 0 for none")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.records = [int(text) for text in arguments.records.split(",")]
    if min(arguments.records) < 2 or 0 < arguments.replay < 10:
        parser.error("there must be at least 2 records, and 10 tasks to replay")
    return arguments


def main() -> None:
    asked = _arguments()
    lines = [imported()]
    measured: list[Decisions] = []
    with progress("decisions", 4 * max(asked.records)) as advance:
        for kinds in (KINDS, (Kind.MEMORY,)):
            for is_known in (False, True):
                measured += timed_decisions(
                    asked.strategy, asked.records, kinds, advance, with_input_size=is_known
                )
    lines += growth(measured)
    traces = TRACES if asked.replay else ()
    with progress("replays", len(traces)) as advance:
        for kind in traces:
            lines += replayed(kind, asked.replay, asked.strategy)
            advance(1)
    if asked.json:
        print_json(
            {
                "machine": machine(),
                "strategy": asked.strategy,
                "decisions": [asdict(one) | {"missed": one.missed()} for one in measured],
                "others": [asdict(line) | {"missed": line.is_missed} for line in lines],
            }
        )
        return
    out = console()
    out.print(f"{asked.strategy}: {described()}")
    out.print(decisions_table(measured))
    out.print(lines_table(lines))


if __name__ == "__main__":
    main()
