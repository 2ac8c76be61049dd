"""Blocks for stages where only the provider knows of them: on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl.executors.errors import BadStateException
from parsl.jobs.states import JobState
from parsl.providers import LocalProvider
from sizer_runs import htex, running, sized

from parsl_sizer import Scaling, stage

LIMIT_S = 200


class Local(LocalProvider):
    """Asked at once what has become of jobs."""

    status_polling_interval = 0.2


def test_each_stage_has_a_block_of_its_own_and_none_is_left(tmp_path: Path) -> None:
    provider = Local(init_blocks=3, min_blocks=1, max_blocks=2)
    how = Scaling("per-stage", look_s=0.1, again_s=0.0)
    made = sized(htex(2, provider=provider), node="cores=2,memory=2GB", scaling=how)
    with running(made, tmp_path, strategy="simple", max_idletime=0.1):
        with stage("two nodes", nodes=2):
            first = [tasks.after(s=0.1) for _ in range(4)]
        with stage("one node"):
            last = tasks.after(*first)
        assert last.result(LIMIT_S)
        states = [status.state for status in made.status_facade.values()]
        assert states.count(JobState.SCALED_IN) >= 2
        assert len(states) == 3
    assert set(made._scaling.waits.known) == {"1 x 2 cores"}


def test_tasks_are_told_why_no_block_starts(tmp_path: Path) -> None:
    provider = Local(init_blocks=1, max_blocks=1, worker_init="exit 3")
    how = Scaling("asa", look_s=0.1)
    with running(sized(htex(2, provider=provider), scaling=how), tmp_path):
        with stage("never"):
            futures = [tasks.add(1, number) for number in range(4)]
        for future in futures:
            with pytest.raises(BadStateException, match="EXIT CODE: 3"):
                future.result(LIMIT_S)
