"""No row that was committed is lost, however its writer ends."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from parsl_sizer.archive.base import Query
from parsl_sizer.archive.open import open_archive
from parsl_sizer.testing.archive_laws import entries

WRITERS = 2
KILLS, KILLS_LONG = 40, 200
TOGETHER_S, TOGETHER_LONG_S = 2.0, 60.0
ROUNDS, ROUNDS_LONG = 30, 1000
OUTCOMES = 20

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


def test_killed_writers_lose_nothing_that_they_committed(tmp_path: Path, is_long: bool) -> None:
    path = tmp_path / "archive.sqlite3"
    open_archive(path).close()
    draw = random.Random(1)
    promised: dict[str, int] = {}
    kills = KILLS_LONG if is_long else KILLS
    for number in range(0, kills, WRITERS):
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
    assert len(promised) == kills
    print(f"{kills} writers were killed, which had committed {sum(promised.values()):,} rows.")
    assert sum(1 for count in promised.values() if count) > kills / 4
    archive = open_archive(path, read_only=True)
    found = {line.run.run_id: line.attempts for line in archive.runs()}
    archive.close()
    for name, count in promised.items():
        assert found.get(name, 0) >= count, name
        assert found.get(name, 0) % 20 == 0, name  # all of a batch, or nothing


def test_two_writers_at_once_lose_nothing(tmp_path: Path, is_long: bool) -> None:
    path = tmp_path / "archive.sqlite3"
    seconds = TOGETHER_LONG_S if is_long else TOGETHER_S
    processes = {name: writer(path, name, seconds) for name in ("one", "other")}
    counts = {name: committed(process) for name, process in processes.items()}
    assert [process.returncode for process in processes.values()] == [0, 0]
    assert counts == {name: count_in(path, name) for name in processes}
    assert all(counts.values())
    print(f"In {seconds:g} s two writers recorded {counts}.")


RECORDER = """
import sys
from pathlib import Path
from parsl_sizer.archive import Run
from parsl_sizer.archive.recorder import Recorder
from parsl_sizer.model import Attempt, Ending, Outcome, TaskInfo

print("ready", flush=True)
for line in sys.stdin:
    path, said = Path(line.strip()), []
    made = Recorder(path, Run(sys.argv[1]), warn=said.append, every_s=0.0)
    for number in range(int(sys.argv[2])):
        made.record(Outcome(Attempt(TaskInfo(number, "c"), 1, {}), Ending.DONE, float(number)))
    made.start()
    made.close()
    print(len(said), *said, flush=True)
"""


@pytest.fixture
def two_recorders() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that record a run into the archive that they are told of."""
    with ExitStack() as stack:
        made = []
        for name in ("one", "other"):
            command = [sys.executable, "-c", RECORDER, name, str(OUTCOMES)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            process = stack.enter_context(subprocess.Popen(command, text=True, **pipes))  # type: ignore[call-overload]
            stack.callback(process.kill)
            made.append(process)
        for process in made:
            assert process.stdout.readline() == "ready\n"
        yield made


def no_database(path: Path) -> None:
    path.write_bytes(b"this is no database " * 500)


def damaged_inside(path: Path) -> None:
    archive = open_archive(path)
    archive.record(entries(3000))
    archive.close()
    content = bytearray(path.read_bytes())
    content[8192:] = b"\x55" * (len(content) - 8192)
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [no_database, damaged_inside])
def test_of_two_who_find_a_damaged_archive_one_sets_it_aside(
    tmp_path: Path,
    two_recorders: list[subprocess.Popen[str]],
    damage: Callable[[Path], None],
    is_long: bool,
) -> None:
    damaged = tmp_path / "damaged"
    damage(damaged)
    wanted = {"one": OUTCOMES, "other": OUTCOMES}
    rounds = ROUNDS_LONG if is_long else ROUNDS
    for number in range(rounds):
        path = tmp_path / str(number) / "archive.sqlite3"
        path.parent.mkdir()
        shutil.copy(damaged, path)
        for process in two_recorders:
            assert process.stdin is not None
            process.stdin.write(f"{path}\n")
            process.stdin.flush()
        answers = [process.stdout.readline() for process in two_recorders if process.stdout]
        assert {name: count_in(path, name) for name in wanted} == wanted, (number, answers)
        aside = [file for file in path.parent.glob("*.damaged-*") if file.suffix[-4] != "-"]
        assert [file.stat().st_size for file in aside] == [damaged.stat().st_size], answers
        assert sorted(answer.split()[0] for answer in answers) == ["0", "1"], answers
    print(f"{rounds} times one of two set it aside.")
