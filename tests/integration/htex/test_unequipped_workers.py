"""Workers that have not got the package, or have another one of its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from parsl import python_app
from parsl.providers import LocalProvider
from sizer_runs import htex, running, sized

from parsl_sizer import Kind, sizing_of

LIMIT_S = 100
HIDDEN = {
    "not installed": "raise ModuleNotFoundError('No module named parsl_sizer', name='parsl_sizer')",
    "another": "",
    "damaged": "this is no Python",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_tasks_are_measured_there_too(tmp_path: Path, text: str) -> None:
    package = tmp_path / "elsewhere" / "parsl_sizer"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(text)
    provider = LocalProvider(
        init_blocks=1,
        max_blocks=1,
        worker_init=f"export PYTHONPATH={package.parent}:$PYTHONPATH",
    )
    evaluated = python_app(eval)  # what is in a file of tests needs the package there
    with running(sized(htex(provider=provider)), tmp_path):
        futures = [evaluated("len(b'x' * 100_000_000)") for _ in range(4)]
        assert [future.result(LIMIT_S) for future in futures] == [100_000_000] * 4
        for future in futures:
            [attempt] = sizing_of(future).attempts
            assert attempt.peak[Kind.MEMORY] == pytest.approx(100e6, rel=0.1)
        with pytest.raises(ModuleNotFoundError, match="nowhere"):  # the user's own
            evaluated("__import__('nowhere')").result(LIMIT_S)
