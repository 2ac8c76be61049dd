"""What programs do on HTEX, they do with ours around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from diff_case import HTEX, Case
from diff_run import PLAIN, SIZED, Runs, check, parameters
from sizer_runs import SharedHtex, htex

from parsl_sizer import SizedExecutor

SPECIAL: dict[str, dict[str, Any]] = {
    "affinity": {"available_accelerators": ["a", "b"], "cpu_affinity": "block"},
}
"""Options of HTEX for the setups that need engines of their own."""


@pytest.fixture(scope="module")
def runs(session_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Plain HTEX and ours in one run of Parsl after the other, on the same engines."""
    started: dict[str, list[SharedHtex]] = {}

    def executors(setup: str) -> list[Any]:
        special = setup if setup in SPECIAL else "default"
        if special not in started:
            started[special] = [engine(label, setup) for label in (PLAIN, SIZED)]
        plain, inside = started[special]
        return [plain, SizedExecutor(inside, report=False)]

    def engine(label: str, setup: str) -> SharedHtex:
        made = htex(label=label, kind=SharedHtex, **SPECIAL.get(setup, {}))
        assert isinstance(made, SharedHtex)
        made.home = session_folder
        return made

    made = Runs(executors, tmp_path_factory.mktemp("runs"))
    yield made
    made.end()
    for pair in started.values():
        for inner in pair:
            inner.end()


@pytest.mark.parametrize("case", parameters(HTEX))
def test_a_program_does_as_without_us(runs: Runs, case: Case, tmp_path: Path) -> None:
    check(case, runs, tmp_path)
