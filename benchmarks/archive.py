"""How fast is an archive of 10^6 attempts?

It is made in a folder for temporary files (some 350 MB), by importing batches as a run that
records would. Times are those of a process that has it open already.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

from printing import Line, described, lines_table, machine

from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.base import Query
from parsl_sizer.archive.recorder import Recorder
from parsl_sizer.archive.sqlite import SqliteArchive
from parsl_sizer.archive.warm import lessons
from parsl_sizer.cli.output import console, print_json, progress
from parsl_sizer.model import Attempt, Ending, Kind, Outcome, TaskInfo, Usage
from parsl_sizer.simulator import write
from parsl_sizer.simulator.generate import generate
from parsl_sizer.strategies import Setting, recall
from parsl_sizer.strategies.catalog import family

WARM_MS, QUERY_MS, RECORD_US, ROWS_PER_S = 30.0, 500.0, 20.0, 50_000.0
PER_RUN = 5000
TIMES = 5

QUERIES = {
    "the newest": Query(),
    "a run": Query(run_id="run-7"),
    "a category": Query(category="category 3"),
    "a user": Query(user="user3"),
    "a workflow": Query(workflow="flow3.py"),
    "a command": Query(command="mem 13"),
    "an input file": Query(input="s77.fq"),
    "a host": Query(host="n3"),
    "an ending": Query(endings=(Ending.EXHAUSTED,)),
    "a task's label": Query(labels={"sample": "70"}),
    "a run's label": Query(labels={"campaign": "1"}),
    "a time": Query(since=1e9, until=1e9 + 100),
    "a range of memory": Query(memory=(1e9, 2e9)),
    "category, user, memory": Query(category="category 7", user="user2", memory=(5e9, None)),
    "no such run": Query(run_id="none"),
    "no such user": Query(user="none"),
    "no such command": Query(command="none"),
    "no such input file": Query(input="none"),
    "no such host": Query(host="none"),
    "no such ending": Query(endings=(Ending.LOST,)),
    "no such label": Query(labels={"none": "1"}),
    "no such memory": Query(memory=(1e17, None)),
}


def outcomes(first: int, count: int) -> Iterator[Outcome]:
    """Outcomes with all that a live run has."""
    random = Random(first)
    for number in range(first, first + count):
        peak = random.lognormvariate(20, 1)
        task = TaskInfo(
            number,
            f"category {number % 40}",
            submitted_at=1e9 + number,
            features={"input_size": peak / 3},
            labels={"sample": number % 1000} if number % 10 == 0 else {},
            inputs=(f"/data/s{number % 5000}.fq",) if number % 10 == 7 else (),
            command=f"bwa mem {number % 17}",
        )
        attempt = Attempt(
            task,
            1,
            {Kind.CORES: 1.0, Kind.MEMORY: 1.2 * peak, Kind.DISK: 1e9},
            "n1",
            "rung 1 of 3, expected to be enough for 90%, from 312 tasks",
            launched_at=1e9 + number,
        )
        yield Outcome(
            attempt,
            Ending.DONE if number % 50 else Ending.EXHAUSTED,
            ended_at=1e9 + number + 60,
            usage=Usage(
                {Kind.CORES: 0.9, Kind.MEMORY: peak, Kind.DISK: random.lognormvariate(18, 1)},
                5.0 + number % 100,
                4.0,
            ),
            host=f"n{number % 30}",
        )


def fill(archive: SqliteArchive, attempts: int) -> None:
    with progress("recording", attempts) as advance:
        for first in range(0, attempts, PER_RUN):
            number = first // PER_RUN
            run = Run(
                f"run-{number}",
                started_at=1e9 + first,
                user=f"user{number % 7}",
                workflow=f"flow{number % 9}.py",
                labels={"campaign": number // 10},
            )
            archive.record([Entry(run, outcome) for outcome in outcomes(first, PER_RUN)])
            advance(PER_RUN)


def slowest_ms(calls: Iterator[Callable[[], object]]) -> float:
    """Of several calls, each several times, the slowest one's median."""
    found = []
    for call in calls:
        times = []
        for _ in range(TIMES):
            began = time.perf_counter()
            call()
            times.append((time.perf_counter() - began) * 1e3)
        found.append(median(times))
    return max(found)


def queries(archive: SqliteArchive) -> list[Line]:
    lines = []
    for what, query in QUERIES.items():
        some = replace(query, last=20)
        took = slowest_ms(iter([lambda some=some: list(archive.entries(some))]))  # type: ignore[misc]
        lines.append(Line(f"history: {what}", took, QUERY_MS, "ms"))
    took = slowest_ms(iter([lambda: archive.runs()]))
    return [*lines, Line("history: all runs", took, QUERY_MS, "ms")]


def warm_start(archive: SqliteArchive, category: str) -> None:
    """All that comes before a category's first task is sized: look up, and learn."""
    recall(family("auto", Setting())(category), lessons(archive, TaskInfo(1, category)))


def recording(folder: Path) -> Line:
    """What it takes the thread that decides to have an outcome recorded."""
    recorder = Recorder(folder / "recorded.sqlite3", Run("run"), warn=print)
    made = list(outcomes(0, 50_000))
    recorder.start()
    began = time.thread_time()
    for outcome in made:
        recorder.record(outcome)
    took = time.thread_time() - began
    recorder.close()
    return Line(
        "recording an attempt, on the loop's thread", took / len(made) * 1e6, RECORD_US, "µs"
    )


def importing(folder: Path, tasks: int = 200_000) -> Line:
    """The time that `parsl-sizer import` takes for each row of a trace."""
    path = folder / "trace.csv"
    with path.open("w", encoding="utf-8") as file:
        write(generate("trimodal", tasks), file)
    command = [sys.executable, "-m", "parsl_sizer", "import", str(path), "--archive"]
    began = time.perf_counter()
    subprocess.run([*command, str(folder / "imported.sqlite3")], check=True, capture_output=True)
    took = time.perf_counter() - began
    return Line("import of our CSV, each row", took / tasks * 1e6, 1e6 / ROWS_PER_S, "µs")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attempts", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "archive.sqlite3"
        archive = SqliteArchive(path)
        fill(archive, asked.attempts)
        warm = slowest_ms(
            lambda number=number: warm_start(archive, f"category {number}")  # type: ignore[misc]
            for number in range(5)
        )
        lines = [Line("warm start of a category", warm, WARM_MS, "ms"), *queries(archive)]
        lines += [recording(folder), importing(folder)]
        archive.close()  # then all of it is in the one file
        size_mb = path.stat().st_size / 1e6
    if asked.json:
        print_json({"machine": machine(), "lines": [asdict(line) for line in lines]})
        return
    out = console()
    out.print(f"{asked.attempts:,} attempts in SQLite, {size_mb:.0f} MB: {described()}")
    out.print(lines_table(lines))


if __name__ == "__main__":
    main()
