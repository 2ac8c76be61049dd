"""No row that was committed is lost, however its writer ends."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from parsl_sizer.archive.base import Query
from parsl_sizer.archive.open import open_archive

KILLS, WRITERS, TOGETHER_S = 200, 2, 10.0

WRITER = """
import sys, time
from pathlib import Path
from parsl_sizer.archive import Entry, Run
from parsl_sizer.archive.open import open_archive
from parsl_sizer.model import Attempt, Ending, Outcome, TaskInfo

path, name, until = Path(sys.argv[1]), sys.argv[2], time.time() + float(sys.argv[3])
archive, run, number = open_archive(path), Run(name), 0
while time.time() < until:
    batch = range(number, number + 20)
    number += 20
    outcomes = [Outcome(Attempt(TaskInfo(n, "c"), 1, {}), Ending.DONE, float(n)) for n in batch]
    archive.record([Entry(run, outcome) for outcome in outcomes])
    print(number, flush=True)  # all below it is committed
"""


def writer(path: Path, name: str, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def committed(process: subprocess.Popen[str]) -> int:
    output = process.communicate()[0]
    whole = output[: output.rfind("\n") + 1].split()
    return int(whole[-1]) if whole else 0


def count_in(path: Path, run_id: str) -> int:
    archive = open_archive(path, read_only=True)
    found = sum(line.attempts for line in archive.runs(Query(run_id=run_id)))
    archive.close()
    return found


def test_killed_writers_lose_nothing_that_they_committed(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite3"
    open_archive(path).close()
    draw = random.Random(1)
    promised: dict[str, int] = {}
    for number in range(0, KILLS, WRITERS):
        names = [f"run-{number + place}" for place in range(WRITERS)]
        processes = [writer(path, name, 60.0) for name in names]
        assert processes[0].stdout is not None
        processes[0].stdout.readline()  # it is at work
        time.sleep(draw.uniform(0.0, 0.05))
        for process in processes:
            process.kill()
        promised |= {
            name: committed(process) for name, process in zip(names, processes, strict=True)
        }
    assert len(promised) == KILLS
    assert sum(1 for count in promised.values() if count) > KILLS / 4
    archive = open_archive(path, read_only=True)
    found = {line.run.run_id: line.attempts for line in archive.runs()}
    archive.close()
    for name, count in promised.items():
        assert found.get(name, 0) >= count, name
        assert found.get(name, 0) % 20 == 0, name  # all of a batch, or nothing


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite3"
    processes = {name: writer(path, name, TOGETHER_S) for name in ("one", "other")}
    counts = {name: committed(process) for name, process in processes.items()}
    assert [process.returncode for process in processes.values()] == [0, 0]
    assert counts == {name: count_in(path, name) for name in processes}
    assert all(counts.values())
