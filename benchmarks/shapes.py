"""What does sizing cost a workflow of another shape than many like tasks, plain against sized.

Three shapes of no-op tasks beside the plain one, `like tasks`: many categories, all new in each
wave; many threads that submit; tasks that each wait for two earlier ones. As in `overhead.py` one
Parsl has a plain and a sized HTEX and gives waves to them in turns; ratios are medians over the
pairs of waves.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import parsl
from overhead import PLAIN, WARM_UP, htex, sized
from parsl import python_app
from parsl.config import Config
from printing import described, machine, table

from parsl_sizer.cli.output import console, print_json, progress

CATEGORIES, THREADS, WIDTH = 500, 50, 100
TASKS = 2000
NUMBERS = itertools.count()

App = Callable[..., "Future[Any]"]
Shape = Callable[[str, int], Sequence["Future[Any]"]]


class Cost(NamedTuple):
    """What a wave has cost."""

    wall_s: float
    cpu_s: float
    """Of the submitting process, all its threads."""


class Row(NamedTuple):
    """A shape's ratios of sized to plain, and plain's own figures."""

    shape: str
    plain_s: float
    wall: float
    cpu: float


def app(executor: str) -> App:
    """An app of that executor; the sized one takes a category."""

    def noop(*_: object, **__: object) -> None:
        return None

    made: App = python_app(noop, executors=[executor])
    return made


def like(executor: str, tasks: int) -> Sequence[Future[Any]]:
    noop = app(executor)
    return [noop() for _ in range(tasks)]


def categories(executor: str, tasks: int) -> Sequence[Future[Any]]:
    noop = app(executor)
    if executor == PLAIN:
        return [noop() for _ in range(tasks)]
    names = [f"noop {next(NUMBERS)}" for _ in range(CATEGORIES)]
    return [
        noop(parsl_resource_specification={"category": names[number % CATEGORIES]})
        for number in range(tasks)
    ]


def threads(executor: str, tasks: int) -> Sequence[Future[Any]]:
    noop = app(executor)

    def submit(count: int) -> list[Future[Any]]:
        return [noop() for _ in range(count)]

    with ThreadPoolExecutor(THREADS) as pool:
        made = pool.map(submit, [tasks // THREADS] * THREADS)
    return [future for futures in made for future in futures]


def dependent(executor: str, tasks: int) -> Sequence[Future[Any]]:
    noop = app(executor)
    made: list[Future[Any]] = []
    while len(made) < tasks:
        made.append(noop(*made[-WIDTH : 2 - WIDTH]))
    return made


SHAPES: dict[str, Shape] = {
    "like tasks": like,
    f"{CATEGORIES} categories": categories,
    f"{THREADS} threads": threads,
    "dependent tasks": dependent,
}


def timed(shape: Shape, executor: str, tasks: int) -> Cost:
    """The cost of one wave."""
    gc.collect()
    began, cpu_began = time.perf_counter(), time.process_time()
    for future in shape(executor, tasks):
        future.result()
    return Cost(time.perf_counter() - began, time.process_time() - cpu_began)


def measured(tasks: int, pairs: int, chosen: Sequence[str]) -> list[Row]:
    """Waves of plain and of sized tasks in turns, every other pair the other way round."""
    made = []
    executors = [htex(PLAIN), sized("runner")]
    with (
        TemporaryDirectory() as folder,
        parsl.load(Config(executors=executors, run_dir=folder, strategy="none")),
        progress("waves", 2 * pairs * len(chosen)) as advance,
    ):
        for executor in executors:
            timed(like, executor.label, WARM_UP)
        for name in chosen:
            ratios, plain_s = [], []
            for wave in range(pairs):
                found = {}
                for executor in executors[:: -1 if wave % 2 else 1]:
                    label = executor.label
                    found[label] = timed(SHAPES[name], label, tasks)
                    advance(1)
                plain, ours = found[PLAIN], found["sized"]
                plain_s.append(plain.wall_s)
                ratios.append(Cost(ours.wall_s / plain.wall_s, ours.cpu_s / plain.cpu_s))
            wall, cpu = (median(column) for column in zip(*ratios, strict=True))
            made.append(Row(name, median(plain_s), wall, cpu))
    return made


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="of waves of each shape")
    parser.add_argument("--tasks", type=int, default=TASKS, help="per wave")
    parser.add_argument(
        "--shape", action="append", choices=SHAPES, help="this one; may be repeated"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def in_a_process() -> list[Row]:
    """The same in a process that finds Parsl's own programs."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, *sys.argv, "--here"]
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, check=True, env={**os.environ, "PATH": path}
    )
    return [Row(*row) for row in json.loads(ended.stdout)]


def main() -> None:
    asked = _arguments()
    if asked.here:
        with TemporaryDirectory() as folder:  # what is recorded there is not the user's
            os.environ["PARSL_SIZER_ARCHIVE"] = str(Path(folder) / "archive.sqlite3")
            print(json.dumps(measured(asked.tasks, asked.pairs, asked.shape or list(SHAPES))))
        return
    rows = in_a_process()
    if asked.json:
        made = [row._asdict() for row in rows]
        print_json({"machine": machine(), "pairs": asked.pairs, "tasks": asked.tasks, "rows": made})
        return
    shown = table(["shape"], ["plain", "sized ÷ plain", "CPU of the submit side"])
    for row in rows:
        shown.add_row(row.shape, f"{row.plain_s:.2f} s", f"{row.wall:.2f}", f"{row.cpu:.2f}", "")
    out = console()
    out.print(f"{asked.tasks:,} no-op tasks a wave, {asked.pairs} pairs of waves: {described()}")
    out.print(shown)


if __name__ == "__main__":
    main()
