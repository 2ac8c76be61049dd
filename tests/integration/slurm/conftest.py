"""One Slurm for all tests here; each finds an empty queue, and leaves none of its jobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sizer_runs import nothing_left
from sizer_slurm import Slurm, why_not
from sizer_slurm import slurm as started


@pytest.fixture(scope="session")
def one_slurm() -> Iterator[Slurm]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with nothing_left(), started() as made:
        yield made


@pytest.fixture
def slurm(one_slurm: Slurm) -> Iterator[Slurm]:
    yield one_slurm
    one_slurm.cancel_all()
