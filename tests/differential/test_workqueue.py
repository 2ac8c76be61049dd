"""What programs do on Work Queue, they do with ours around it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from diff_case import WORK_QUEUE, Case
from diff_run import PLAIN, SIZED, Runs, check, parameters
from parsl.executors import WorkQueueExecutor
from parsl.providers import LocalProvider
from sizer_workers import Crew, Size

from parsl_sizer import SizedExecutor

pytest.importorskip("ndcctools.work_queue", reason="Work Queue is not installed here")

if shutil.which("work_queue_worker") is None:
    pytest.skip("work_queue_worker is not installed here", allow_module_level=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Plain Work Queue and ours in one run of Parsl, each with a worker."""
    folder = tmp_path_factory.mktemp("runs")
    engines = [
        WorkQueueExecutor(
            label=label,
            address="127.0.0.1",
            port=0,
            provider=LocalProvider(init_blocks=0, min_blocks=0, max_blocks=0),
        )
        for label in (PLAIN, SIZED)
    ]

    def executors(setup: str) -> list[object]:
        return [engines[0], SizedExecutor(engines[1], report=False)]

    made = Runs(executors, folder)
    made.use("default")
    with ExitStack() as stack:
        for engine in engines:
            crew = Crew("work_queue_worker", engine._chosen_port, folder / engine.label)
            stack.enter_context(crew).add(Size(2, 2000, 2000))
        yield made
    made.end()


@pytest.mark.parametrize("case", parameters(WORK_QUEUE))
def test_a_program_does_as_without_us(runs: Runs, case: Case, tmp_path: Path) -> None:
    check(case, runs, tmp_path)
