"""A task that needs more memory than it was given has what is free on its node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sizer_tasks as tasks
from sizer_runs import htex, running, sized, wait_until

from parsl_sizer import Kind, ResourcesExhausted, SizedExecutor, sizing_of
from parsl_sizer.model import Ending
from parsl_sizer.monitor import node_ledger
from parsl_sizer.monitor.claims import Ledger

LIMIT_S = 100
MEMORY = Kind.MEMORY


def held(executor: SizedExecutor) -> list[float]:
    """What tasks hold now, by the ledger of this host."""
    table = ledger(executor).table()
    return [claim.get("memory", 0.0) for claim in table.held.values()]


def ledger(executor: SizedExecutor) -> Ledger:
    return Ledger(node_ledger.folder(executor._ledger))


def asking(mb: float, **more: Any) -> dict[str, Any]:
    return {"memory": mb, **more}


@pytest.mark.parametrize("isolation", ["runner", "fork"])
def test_it_grows_and_is_done_at_its_first_attempt(tmp_path: Path, isolation: str) -> None:
    with running(sized(isolation=isolation), tmp_path):
        future = tasks.hold(600, 1, parsl_resource_specification=asking(200))
        assert future.result(LIMIT_S) == 600
        [only] = sizing_of(future).attempts
        assert only.ending is Ending.DONE
        assert 600e6 < only.allocation[MEMORY] < 700e6
        assert "given 200 MB at first, it grew" in only.why


@pytest.mark.parametrize("isolation", ["runner", "fork", "inline"])
def test_what_lasts_is_in_the_ledger_until_its_end(tmp_path: Path, isolation: str) -> None:
    made, until = sized(htex(1), isolation=isolation), tmp_path / "until"
    with running(made, tmp_path):
        future = tasks.hold_until(str(until), 10, parsl_resource_specification=asking(200))
        wait_until(lambda: sum(held(made)) >= 200e6, "it is held")
        until.touch()
        assert future.result(LIMIT_S) == 10
        assert held(made) == []


def test_what_states_exactly_what_it_needs_is_stopped(tmp_path: Path) -> None:
    with running(sized(), tmp_path):
        spec = asking(200, fixed=True)
        with pytest.raises(ResourcesExhausted):
            tasks.hold(600, 60, parsl_resource_specification=spec).result(LIMIT_S)


def test_without_growing_it_is_stopped_and_has_more(tmp_path: Path) -> None:
    with running(sized(grow=False), tmp_path):
        future = tasks.hold(600, 1, parsl_resource_specification=asking(200))
        assert future.result(LIMIT_S) == 600
        first, *others = sizing_of(future).attempts
        assert first.ending is Ending.EXHAUSTED
        assert others[-1].allocation[MEMORY] > 600e6


def test_as_many_grow_as_there_is_room_for_and_the_others_wait(tmp_path: Path) -> None:
    """Three of 300 MB fit into 1000 MB; what they were given would let all five begin."""
    until = tmp_path / "until"
    made = sized(htex(5), node="cores=5,memory=1000MB")
    spec = asking(100, category="growing")
    with running(made, tmp_path):
        first = [
            tasks.hold_until(str(until), 300, parsl_resource_specification=spec) for _ in range(3)
        ]
        wait_until(lambda: sum(amount > 300e6 for amount in held(made)) == 3, "three have grown")
        others = [
            tasks.hold_until(str(until), 300, parsl_resource_specification=spec) for _ in range(2)
        ]
        wait_until(lambda: len(ledger(made).living()) == 5, "two wait")
        assert len(held(made)) == 3
        assert sum(held(made)) <= 1000e6
        until.touch()
        assert [future.result(LIMIT_S) for future in first + others] == [300] * 5
        attempts = [sizing_of(future).attempts for future in first + others]
        assert all(made[-1].ending is Ending.DONE for made in attempts)
        wait_until(lambda: not held(made), "nothing is held any more")


def test_one_for_which_nothing_is_left_is_stopped_and_runs_later(tmp_path: Path) -> None:
    until, begun = tmp_path / "until", tmp_path / "begun"
    made = sized(htex(), node="cores=2,memory=1000MB")
    with running(made, tmp_path):
        spec = asking(600, fixed=True, category="neighbour")
        neighbour = tasks.hold_until(str(until), 500, str(begun), parsl_resource_specification=spec)
        tasks.wait_for(begun)
        future = tasks.hold(700, 1, parsl_resource_specification=asking(200))
        wait_until(lambda: len(held(made)) == 2, "the first attempt")
        wait_until(lambda: len(held(made)) == 1, "the end of the first attempt")
        until.touch()
        assert future.result(LIMIT_S) == 700
        assert neighbour.result(LIMIT_S) == 500
        first, *others = sizing_of(future).attempts
        assert first.ending is Ending.EXHAUSTED
        assert first.allocation[MEMORY] <= 400e6
        assert others[-1].ending is Ending.DONE
