"""What programs do on HTEX, they do with ours around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from diff_case import HTEX, Case
from diff_run import PLAIN, SETUPS, SIZED, Runs, check, parameters
from sizer_runs import SharedHtex, htex

from parsl_sizer import SizedExecutor


@pytest.fixture(scope="module")
def engines(session_folder: Path) -> Iterator[list[SharedHtex]]:
    """One HTEX for each side, which all runs use."""
    made = [htex(label=label, kind=SharedHtex) for label in (PLAIN, SIZED)]
    for engine in made:
        engine.home = session_folder
    yield made
    for engine in made:
        engine.end()


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest,
    engines: list[SharedHtex],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Runs]:
    """Plain Parsl and ours in one run, set up as the case says."""

    def executors() -> list[Any]:
        plain, inside = engines
        return [plain, SizedExecutor(inside, report=False)]

    made = Runs(executors, tmp_path_factory.mktemp(request.param))
    made.begin(**SETUPS[request.param])
    yield made
    made.end()


@pytest.mark.parametrize(("runs", "case"), parameters(HTEX), indirect=["runs"])
def test_a_program_does_as_without_us(runs: Runs, case: Case, tmp_path: Path) -> None:
    check(case, runs, tmp_path)
