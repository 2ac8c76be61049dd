"""What works on HTEX as it does without us, and what is sized there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl.app.errors import BashExitFailure
from sizer_runs import running, sized

from parsl_sizer import Kind, ResourcesExhausted, SizedExecutor, sizing_of
from parsl_sizer.model import Ending

LIMIT_S = 100


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedExecutor]:
    made = sized()
    with running(made, tmp_path_factory.mktemp("features")):
        yield made


def test_a_task_returns_its_result_and_its_story(executor: SizedExecutor) -> None:
    future = tasks.hold(100)
    assert future.result(LIMIT_S) == 100
    sizing = sizing_of(future)
    assert sizing.category == "hold"
    [attempt] = sizing.attempts
    assert attempt.ending is Ending.DONE
    assert attempt.peak[Kind.MEMORY] == pytest.approx(100e6, rel=0.1)
    assert attempt.allocation[Kind.MEMORY] <= 2e9


def test_an_exception_reaches_the_user_unchanged_and_at_once(executor: SizedExecutor) -> None:
    future = tasks.fail()
    with pytest.raises(ValueError, match="as it should"):
        future.result(LIMIT_S)
    assert [attempt.ending for attempt in sizing_of(future).attempts] == [Ending.RAISED]


def test_the_cause_of_an_exception_travels_along(executor: SizedExecutor) -> None:
    with pytest.raises(ValueError, match="outer") as caught:
        tasks.fail_with_cause().result(LIMIT_S)
    assert isinstance(caught.value.__cause__, KeyError)


def test_join_apps_work(executor: SizedExecutor) -> None:
    assert tasks.joined([1, 2, 3]).result(LIMIT_S) == [2, 4, 6]


def test_bash_apps_work(executor: SizedExecutor, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    assert tasks.echo("hello", stdout=str(out)).result(LIMIT_S) == 0
    assert out.read_text().split() == ["hello"]
    with pytest.raises(BashExitFailure):
        tasks.bash_fail().result(LIMIT_S)


def test_a_task_that_is_too_large_for_every_node_tells_all_its_attempts(
    executor: SizedExecutor,
) -> None:
    future = tasks.hold(3000, 60, parsl_resource_specification={"category": "giant"})
    with pytest.raises(ResourcesExhausted) as caught:
        future.result(LIMIT_S)
    outcomes = caught.value.outcomes
    assert outcomes[-1].attempt.allocation[Kind.MEMORY] == 2e9
    for outcome in outcomes:
        assert f"attempt {outcome.attempt.number}: memory" in str(caught.value)
    assert "Give it a larger node" in str(caught.value)
