"""Short tasks that are sent several at a time: each has its own answer, whatever others do."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl import python_app
from sizer_runs import htex, running, sized, wait_until

from parsl_sizer import SizedExecutor, sizing_of
from parsl_sizer.executor import bundles
from parsl_sizer.executor.bundles import ENOUGH, SIZE
from parsl_sizer.model import Ending

LIMIT_S = 100
WORKERS = 2
PROVEN, MOMENT_S = 20, 1.0
"""Here calls are soon trusted, and short also if the machine is busy."""
MANY = 200
"""More than enough to keep the engine busy, so that calls go together."""


@python_app
def brief(number, deed="return", path=None, parsl_resource_specification=None):
    """Over in a moment, but for some."""
    if deed == "raise":
        raise ValueError(number)
    if deed == "hold":
        data = tasks.held(300)
        tasks.time.sleep(1)
        return number + len(data) * 0
    if deed == "kill":
        with Path(path).open("a") as notes:
            notes.write("x")
        if len(Path(path).read_text()) <= 2:  # among others, and alone
            os.kill(tasks.pid_of("worker"), signal.SIGKILL)
            tasks.linger()
    if deed == "wait":
        tasks.wait_for(path)
        tasks.time.sleep(1.1 * MOMENT_S)
    return number


@pytest.fixture(scope="module", params=["runner", "inline"])
def executor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SizedExecutor]:
    made = sized(htex(), isolation=request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundles, "PROVEN", PROVEN)
        patch.setattr(bundles, "MOMENT_S", MOMENT_S)
        patch.setattr(bundles, "LONG", 1)
        with running(made, tmp_path_factory.mktemp("bundles")):
            yield made


@pytest.fixture
def proven(executor: SizedExecutor) -> SizedExecutor:
    """Tasks have shown that they are short."""
    for future in [brief(number) for number in range(PROVEN)]:
        future.result(LIMIT_S)
    return executor


def calls(executor: SizedExecutor) -> int:
    """How many calls the engine was given so far."""
    return int(executor.inner._task_counter)


def test_short_tasks_go_together_and_each_has_its_own_story(proven: SizedExecutor) -> None:
    before = calls(proven)
    futures = [brief(number) for number in range(MANY)]
    assert [future.result(LIMIT_S) for future in futures] == list(range(MANY))
    assert calls(proven) - before < MANY / 2
    for future in futures:
        [attempt] = sizing_of(future).attempts
        assert attempt.ending is Ending.DONE
        assert attempt.wall_s >= 0


def test_nobody_goes_with_others_while_a_worker_has_nothing_to_do(proven: SizedExecutor) -> None:
    before = calls(proven)
    for future in [brief(number) for number in range(WORKERS)]:
        future.result(LIMIT_S)
    assert calls(proven) - before == WORKERS


def test_few_tasks_do_not_wait_for_company(proven: SizedExecutor) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundles, "WAIT_S", 10 * LIMIT_S)
        futures = [brief(number) for number in range(ENOUGH * WORKERS)]
        assert [future.result(LIMIT_S) for future in futures] == list(range(len(futures)))


def test_tasks_that_are_to_be_alone_are(proven: SizedExecutor) -> None:
    before = calls(proven)
    spec = {"alone": True, "category": "brief"}
    futures = [brief(n, parsl_resource_specification=spec) for n in range(MANY)]
    assert [future.result(LIMIT_S) for future in futures] == list(range(MANY))
    assert calls(proven) - before == MANY


def test_an_error_is_its_own_tasks_only(proven: SizedExecutor) -> None:
    futures = [brief(n, "raise" if n % 10 == 5 else "return") for n in range(MANY)]
    for number, future in enumerate(futures):
        if number % 10 == 5:
            with pytest.raises(ValueError, match=str(number)):
                future.result(LIMIT_S)
        else:
            assert future.result(LIMIT_S) == number


def test_a_worker_that_is_killed_is_charged_to_who_killed_it(
    proven: SizedExecutor, tmp_path: Path
) -> None:
    deeds = ["kill" if n == MANY // 2 else "return" for n in range(MANY)]
    futures = [brief(n, deed, str(tmp_path / "notes")) for n, deed in enumerate(deeds)]
    assert [future.result(LIMIT_S) for future in futures] == list(range(MANY))
    endings = [[made.ending for made in sizing_of(future).attempts] for future in futures]
    assert endings.pop(MANY // 2) == [Ending.LOST, Ending.DONE]
    assert all(others == [Ending.DONE] for others in endings)


def test_only_those_sent_with_a_long_one_have_to_wait_for_it(
    proven: SizedExecutor, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    deeds = ["wait" if n == MANY // 2 else "return" for n in range(MANY)]
    futures = [brief(n, deed, str(go)) for n, deed in enumerate(deeds)]
    wait_until(
        lambda: sum(future.done() for future in futures) >= MANY - SIZE, "an end of the others"
    )
    assert not futures[MANY // 2].done()
    go.touch()
    assert [future.result(LIMIT_S) for future in futures] == list(range(MANY))
    assert all(len(sizing_of(future).attempts) == 1 for future in futures)
    before, some = calls(proven), PROVEN - SIZE  # those sent again have counted already
    for future in [brief(number) for number in range(some)]:  # they are not trusted any more
        future.result(LIMIT_S)
    assert calls(proven) - before == some


def test_what_is_too_large_is_stopped_alone_and_has_more(
    executor: SizedExecutor, request: pytest.FixtureRequest
) -> None:
    if executor.isolation == "inline":
        pytest.skip("inline tasks are never stopped")
    proven = request.getfixturevalue("proven")
    assert proven is executor
    futures = [brief(n, "hold" if n == MANY // 2 else "return") for n in range(MANY)]
    assert [future.result(LIMIT_S) for future in futures] == list(range(MANY))
    endings = [attempt.ending for attempt in sizing_of(futures[MANY // 2]).attempts]
    assert endings[0] is Ending.EXHAUSTED
    assert endings[-1] is Ending.DONE
    others = [future for future in futures if future is not futures[MANY // 2]]
    assert all(len(sizing_of(future).attempts) == 1 for future in others)
