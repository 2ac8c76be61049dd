"""What programs do on threads, they do with ours around them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from diff_case import THREADS, Case
from diff_run import PLAIN, SIZED, Runs, check, parameters
from parsl.executors import ThreadPoolExecutor

from parsl_sizer import SizedExecutor


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Plain threads and ours in one run of Parsl."""

    def executors(setup: str) -> list[object]:
        inside = ThreadPoolExecutor(label=SIZED, max_threads=2)
        plain = ThreadPoolExecutor(label=PLAIN, max_threads=2)
        return [plain, SizedExecutor(inside, report=False)]

    made = Runs(executors, tmp_path_factory.mktemp("runs"))
    yield made
    made.end()


# Parsl leaves it to the garbage collector to close the streams of a command.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("case", parameters(THREADS))
def test_a_program_does_as_without_us(runs: Runs, case: Case, tmp_path: Path) -> None:
    check(case, runs, tmp_path)
