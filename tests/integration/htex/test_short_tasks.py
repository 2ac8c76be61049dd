"""Tasks that are over in a moment run as on plain HTEX: each for itself, whatever others do."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl import python_app
from sizer_runs import htex, running, sized

from parsl_sizer import SizedExecutor, sizing_of
from parsl_sizer.model import Ending

LIMIT_S = 100
MEETING_S = 30
MANY = 1100
"""A category of so many tasks, all of them short, is known to be one of short tasks."""
PAIRS = 25


@python_app
def brief(own=None, partner=None, deed="return"):
    """Leave a note in a file of its own, and be over in a moment unless there is more to do."""
    if own is not None:
        with Path(own).open("a") as notes:
            notes.write("x")
    if partner is not None:
        tasks.wait_for(partner, MEETING_S)
    if deed == "kill the worker once" and Path(own).read_text() == "x":
        os.kill(tasks.pid_of("worker"), signal.SIGKILL)
        tasks.linger()
    return own


@pytest.fixture(scope="module", params=["runner", "inline"])
def executor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SizedExecutor]:
    """One that has run more than a thousand short tasks of this category."""
    made = sized(htex(4), isolation=request.param, node="cores=4,memory=4GB")
    with running(made, tmp_path_factory.mktemp("short")):
        for future in [brief() for _ in range(MANY)]:
            future.result(LIMIT_S)
        yield made


@pytest.mark.usefixtures("executor")
def test_pairs_of_tasks_that_wait_for_each_other_meet(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{pair} {half}") for pair in range(PAIRS) for half in "ab"]
    futures = [
        brief(own, paths[number + 1 if number % 2 == 0 else number - 1])
        for number, own in enumerate(paths)
    ]
    assert [future.result(LIMIT_S) for future in futures] == paths


@pytest.mark.usefixtures("executor")
def test_a_task_that_crashes_its_worker_runs_no_other_twice(tmp_path: Path) -> None:
    crashing, count = 50, 100
    paths = [tmp_path / str(number) for number in range(count)]
    futures = [
        brief(str(path), None, "kill the worker once" if number == crashing else "return")
        for number, path in enumerate(paths)
    ]
    assert [future.result(LIMIT_S) for future in futures] == list(map(str, paths))
    runs = [len(path.read_text()) for path in paths]
    endings = [[made.ending for made in sizing_of(future).attempts] for future in futures]
    assert (runs.pop(crashing), endings.pop(crashing)) == (2, [Ending.LOST, Ending.DONE])
    assert runs == [1] * (count - 1)
    assert endings == [[Ending.DONE]] * (count - 1)
