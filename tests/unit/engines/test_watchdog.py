"""The watchdog, with a batch system that is a folder of files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from parsl_sizer.engines.watchdog import Watchdog

LISTS = 'cd {folder} && for job in *; do echo "$job $(cat "$job")"; done'
CANCELS = "cd {folder} && rm -f"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """Three jobs, two of which are ours."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    for name, mark in (("1", "ours"), ("2", "other"), ("3", "ours")):
        (folder / name).write_text(mark)
    return folder


def watchdog(jobs: Path) -> Watchdog:
    lists = ["sh", "-c", LISTS.format(folder=jobs)]
    return Watchdog(lists, ["sh", "-c", CANCELS.format(folder=jobs) + ' "$@"', "sh"], "ours")


def left(jobs: Path) -> list[str]:
    return sorted(path.name for path in jobs.iterdir())


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_who_says_goodbye_keeps_jobs(jobs: Path) -> None:
    made = watchdog(jobs)
    made.start()
    made.stop(is_clean=True)
    assert left(jobs) == ["1", "2", "3"]


def test_what_is_left_is_cancelled_and_others_jobs_are_not(jobs: Path) -> None:
    made = watchdog(jobs)
    made.start()
    made.stop(is_clean=False)
    wait_until(lambda: left(jobs) == ["2"])


def test_a_killed_parent_is_noticed_though_its_child_holds_the_pipe(jobs: Path) -> None:
    script = f"""
import os, signal, time
from pathlib import Path
from parsl_sizer.engines.watchdog import Watchdog
orphan = os.fork()
if not orphan:
    time.sleep(100)
made = Watchdog({["sh", "-c", LISTS.format(folder=jobs)]!r},
                {["sh", "-c", CANCELS.format(folder=jobs) + ' "$@"', "sh"]!r}, "ours")
made.start([orphan])
if not os.fork():  # it has the pipe
    time.sleep(5)
    os._exit(0)
Path({str(jobs.parent / "orphan")!r}).write_text(str(orphan))
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], check=False)
    orphan = int((jobs.parent / "orphan").read_text())
    wait_until(lambda: left(jobs) == ["2"])
    wait_until(lambda: not Path(f"/proc/{orphan}").exists() or _is_zombie(orphan))


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_it_needs_nothing_but_the_standard_library() -> None:
    script = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
    path = Path(__file__).resolve().parents[3] / "parsl_sizer" / "engines" / "watchdog.py"
    told = script + f"import runpy; runpy.run_path({str(path)!r})"
    subprocess.run([sys.executable, "-S", "-E", "-c", told], check=True, cwd=os.sep)
