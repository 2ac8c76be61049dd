"""What does sizing cost where it has nothing to give: no-op tasks, plain against sized.

One Parsl with its default logging has two HTEX of 2 workers, one plain and one sized, and
gives tasks to them in turns, one wave at a time: the speed of a machine that others use too
changes within seconds. Ratios are medians over the pairs of waves. `--memory` measures how
much 20,000 and 100,000 tasks grow the submitting process instead, with their futures kept and
with their futures dropped, plain and sized each in a process of its own: it takes minutes. With
`--nap 0.1` each task sleeps for 0.1 s, and only the rate is compared. With `--one-core` all
threads of the submitting process share a core, so that they do not hand Python's lock from one
core to another and back.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import parsl
from parsl import python_app
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider
from printing import described, machine, table, verdict
from rich.table import Table

from parsl_sizer import SizedExecutor
from parsl_sizer.cli.output import console, print_json, progress

PLAIN = "plain"
SIZED = ("runner", "inline")
"""Sized in the two isolations that cost no process per task."""
RATE = {"runner": 0.8, "inline": 0.95}
"""Of the plain no-op rate, at least."""
CPU = 1.25
"""Of the plain CPU time per task, at most."""
LATENCY = 1.4
"""Of the plain latency of a lone task, at most."""
NAPPING_RATE = 0.98
"""Of the plain rate of tasks that take some time, at least."""
MORE_MB = 10.0
GROWN_AT = (20_000, 100_000)
"""The tasks after which `--memory` measures."""
WARM_UP = 300
"""Tasks before anything is measured: workers and runners are up then."""
LATENCIES = 100


@python_app(executors=[PLAIN])
def plain_noop() -> None:
    return None


@python_app(executors=["sized"])
def sized_noop() -> None:
    return None


@python_app(executors=[PLAIN])
def plain_nap(seconds: float) -> None:
    import time

    time.sleep(seconds)


@python_app(executors=["sized"])
def sized_nap(seconds: float) -> None:
    import time

    time.sleep(seconds)


@dataclass(frozen=True)
class Figures:
    """What one wave has measured."""

    rate_per_s: float
    cpu_us: float
    """Of the submitting process, all its threads, per task."""
    latency_ms: float
    """From the call of an app to its result, one at a time; 0 if that was not measured."""


def htex(label: str) -> HighThroughputExecutor:
    return HighThroughputExecutor(
        label=label,
        address="127.0.0.1",
        max_workers_per_node=2,
        cores_per_worker=0.5,
        provider=LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),
    )


def sized(mode: str) -> SizedExecutor:
    return SizedExecutor(htex("sized"), isolation=mode, report=False)


@contextmanager
def loaded(*executors: Any) -> Iterator[None]:
    """Parsl, loaded and warm."""
    with TemporaryDirectory() as folder:
        config = Config(executors=list(executors), run_dir=folder, strategy="none")
        with parsl.load(config):
            for executor in executors:
                wait(WARM_UP, plain_noop if executor.label == PLAIN else sized_noop)
            yield


def wait(tasks: int, app: Callable[[], Any]) -> list[Any]:
    futures = [app() for _ in range(tasks)]
    for future in futures:
        future.result()
    return futures


def timed(app: Callable[[], Any], tasks: int, latencies: int) -> Figures:
    """The figures of one wave, and of so many tasks one at a time."""
    gc.collect()
    began, cpu_began = time.perf_counter(), time.process_time()
    wait(tasks, app)
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    found = []
    for _ in range(latencies):
        began = time.perf_counter()
        wait(1, app)
        found.append(time.perf_counter() - began)
    return Figures(tasks / wall_s, 1e6 * cpu_s / tasks, 1e3 * median(found) if found else 0.0)


def share_a_core() -> None:
    """Let all threads of this process be on one core; what it has started is free."""
    core = min(os.sched_getaffinity(0))
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), {core})


def pairs(
    mode: str, count: int, tasks: int, *, nap_s: float, one_core: bool
) -> list[tuple[Figures, Figures]]:
    """Waves of plain and of sized tasks in turns, every other pair the other way round."""
    made = []
    plain, ours = plain_noop, sized_noop
    if nap_s:
        plain, ours = partial(plain_nap, nap_s), partial(sized_nap, nap_s)
    with loaded(htex(PLAIN), sized(mode)), progress(f"waves, {mode}", 2 * count) as advance:
        if one_core:
            share_a_core()
        for number in range(count):
            found = {}
            apps = (plain, ours)
            for app in apps[:: -1 if number % 2 else 1]:
                found[app] = timed(app, tasks, 0 if nap_s else LATENCIES)
                advance(1)
            made.append((found[plain], found[ours]))
    return made


def growth_mb(mode: str, counts: Sequence[int], wave: int, *, keep: bool) -> list[float]:
    """Return how much this process has grown after each number of tasks, a wave at a time."""
    app = plain_noop if mode == PLAIN else sized_noop
    with loaded(htex(PLAIN) if mode == PLAIN else sized(mode)):
        before = _resident_mb()
        kept: list[Any] = []
        done, grown = 0, []
        for count in counts:
            while done < count:
                futures = wait(min(wave, count - done), app)
                done += len(futures)
                if keep:
                    kept += futures
                del futures
            grown.append(_resident_mb() - before)
        return grown


def _resident_mb() -> float:
    gc.collect()
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    [kilobytes] = [line.split()[1] for line in lines if line.startswith("RssAnon:")]
    return int(kilobytes) * 1024 / 1e6


def in_a_process(mode: str, asked: argparse.Namespace, *options: str) -> Any:
    """The same in a fresh process: what was measured before must not matter."""
    command = [sys.executable, __file__, "--one", mode, "--tasks", *map(str, asked.tasks)]
    command += ["--pairs", str(asked.pairs), "--wave", str(asked.wave)]
    command += ["--memory"] if asked.memory else []
    command += ["--one-core"] if asked.one_core else []
    command += ["--nap", str(asked.nap), *options]
    # Parsl looks for its own programs there.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, check=True, env={**os.environ, "PATH": path}
    )
    return json.loads(ended.stdout)


@dataclass(frozen=True)
class Row:
    """A figure of sized runs beside that of plain ones."""

    what: str
    plain: float
    sized: float
    unit: str
    compared: float
    """The median of the rounds' ratios, or a difference."""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_missed(self) -> bool:
        is_below = self.at_least is not None and self.compared < self.at_least
        return is_below or (self.at_most is not None and self.compared > self.at_most)


def rows(mode: str, found: Sequence[tuple[Figures, Figures]], nap_s: float) -> list[Row]:
    """The medians over the pairs."""

    def row(what: str, unit: str, figure: Callable[[Figures], float], **bar: float) -> Row:
        plain = [figure(before) for before, _ in found]
        sized = [figure(after) for _, after in found]
        ratio = median(after / before for before, after in zip(plain, sized, strict=True))
        return Row(f"{what}, {mode}", median(plain), median(sized), unit, ratio, **bar)

    if nap_s:
        what = f"rate of tasks of {nap_s:g} s"
        return [row(what, "/s", lambda one: one.rate_per_s, at_least=NAPPING_RATE)]
    return [
        row("no-op rate", "/s", lambda one: one.rate_per_s, at_least=RATE[mode]),
        row("CPU per task, submit side", "µs", lambda one: one.cpu_us, at_most=CPU),
        row("latency of a task", "ms", lambda one: one.latency_ms, at_most=LATENCY),
    ]


def rows_table(made: Sequence[Row], compared: str) -> Table:
    shown = table(["what"], ["plain", "sized", compared, "bar"])
    for row in made:
        bar = "–"
        if row.at_least is not None:
            bar = f"≥ {row.at_least:g}"
        elif row.at_most is not None:
            bar = f"≤ {row.at_most:g}"
        shown.add_row(
            row.what,
            f"{row.plain:.4g} {row.unit}",
            f"{row.sized:.4g} {row.unit}",
            f"{row.compared:.3g}",
            bar,
            "–" if bar == "–" else verdict(["beyond the bar"] if row.is_missed else []),
        )
    return shown


def compared_pairs(asked: argparse.Namespace) -> list[Row]:
    made = []
    for mode in SIZED:
        found = in_a_process(mode, asked)
        waves = [(Figures(**plain), Figures(**sized)) for plain, sized in found]
        made += rows(mode, waves, asked.nap)
    return made


def compared_growth(asked: argparse.Namespace) -> list[Row]:
    made = []
    with progress("processes", 4) as advance:
        for kept, options in (("kept", ()), ("dropped", ("--drop",))):
            found = {}
            for mode in (PLAIN, SIZED[0]):
                found[mode] = in_a_process(mode, asked, *options)
                advance(1)
            for count, plain, sized in zip(asked.tasks, *found.values(), strict=True):
                what = f"growth over {count:,} tasks, futures {kept}, {SIZED[0]}"
                made.append(Row(what, plain, sized, "MB", sized - plain, at_most=MORE_MB))
    return made


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10, help="of waves")
    parser.add_argument(
        "--tasks",
        type=int,
        nargs="+",
        help="per wave: 2,000, 200 with --nap; in all with --memory: 20,000 and 100,000",
    )
    parser.add_argument("--memory", action="store_true", help="measure memory, and nothing else")
    parser.add_argument("--nap", type=float, default=0.0, help="seconds that each task sleeps")
    parser.add_argument("--one-core", action="store_true", help="for the submitting process")
    parser.add_argument("--wave", type=int, default=1000, help="tasks at a time, with --memory")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", choices=(PLAIN, *SIZED), help=argparse.SUPPRESS)
    parser.add_argument("--drop", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    usual = GROWN_AT if asked.memory else (200 if asked.nap else 2000,)
    asked.tasks = sorted(asked.tasks or usual)
    if len(asked.tasks) > 1 and not asked.memory:
        parser.error("more than one number of tasks goes with --memory")
    return asked


def measure(asked: argparse.Namespace) -> None:
    """Print what one mode costs, for the process that compares."""
    if asked.memory:
        print(json.dumps(growth_mb(asked.one, asked.tasks, asked.wave, keep=not asked.drop)))
    else:
        [tasks] = asked.tasks
        found = pairs(asked.one, asked.pairs, tasks, nap_s=asked.nap, one_core=asked.one_core)
        print(json.dumps([[asdict(plain), asdict(sized)] for plain, sized in found]))


def main() -> None:
    asked = _arguments()
    if asked.one:
        with TemporaryDirectory() as folder:  # what is recorded there is not the user's
            os.environ["PARSL_SIZER_ARCHIVE"] = str(Path(folder) / "archive.sqlite3")
            measure(asked)
        return
    made = compared_growth(asked) if asked.memory else compared_pairs(asked)
    if asked.json:
        shown = [asdict(row) | {"missed": row.is_missed} for row in made]
        print_json(
            {"machine": machine(), "pairs": asked.pairs, "tasks": asked.tasks, "rows": shown}
        )
        return
    out = console()
    counted = "" if asked.memory else f" a wave, {asked.pairs} pairs of waves"
    which = f"tasks of {asked.nap:g} s" if asked.nap else "no-op tasks"
    counts = " and ".join(f"{count:,}" for count in asked.tasks)
    out.print(f"{counts} {which}{counted}: {described()}")
    out.print(rows_table(made, "more, MB" if asked.memory else "ratio"))


if __name__ == "__main__":
    main()
