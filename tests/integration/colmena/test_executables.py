"""Methods that run a program: three tasks each, of which the one in the middle is large."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("colmena", reason="Colmena is not installed here")

import colmena_methods as methods
from colmena_runs import Campaign, campaign, recorded
from sizer_runs import htex, sized

from parsl_sizer.executor.recognisers import colmena
from parsl_sizer.model import Ending

SIZES = (20, 60, 40, 30)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    folder = tmp_path_factory.mktemp("executables")
    executor = sized(node="cores=2,memory=800MB", grow=False)
    with campaign(executor, [methods.Relax()], folder) as made:
        yield made


def test_every_step_is_known_by_the_tags_of_its_request(tmp_path: Path) -> None:
    """On two executors: Parsl picks one anew for every step."""
    archives = [tmp_path / "one.sqlite3", tmp_path / "two.sqlite3"]
    executors = [
        sized(htex(label=archive.stem), node="cores=2,memory=800MB", archive=archive)
        for archive in archives
    ]
    with campaign(executors, [methods.Relax()], tmp_path) as made:
        for mb in SIZES:
            made.ask("relax", mb, task_info={"category": f"relax {mb % 40}", "atoms": mb})
        for mb in SIZES:
            made.ask("relax", mb)
        results = [made.answer() for _ in range(2 * len(SIZES))]
    assert [result.failure_info for result in results if not result.success] == []
    assert sorted(result.value for result in results) == sorted(2 * SIZES)
    found = [
        (outcome.attempt.task.category, outcome.attempt.task.features.get("atoms"))
        for archive in archives
        if archive.exists()
        for outcome in recorded(archive)
        if outcome.ending is Ending.DONE
    ]
    steps = ("preprocess", "execute", "postprocess")
    expected = [(f"relax {mb % 40}_{step}", mb) for mb in SIZES for step in steps]
    expected += [(f"relax_{step}", None) for _ in SIZES for step in steps]
    assert sorted(found, key=str) == sorted(expected, key=str)
    for result in results:
        sizing = result.task_info["sizing"]
        assert sizing["category"] == f"{result.task_info.get('category', 'relax')}_execute"
        assert sizing["peak"]["memory"] >= 0.98 * result.value * 1e6


def test_a_program_over_its_limit_is_stopped_and_run_again(server: Campaign) -> None:
    for _ in range(4):  # so that it is known, and little
        assert server.asked("relax", 10).value == 10
    result = server.asked("relax", 600)
    assert result.success, result.failure_info
    assert result.value == 600
    endings = [attempt["ending"] for attempt in result.task_info["sizing"]["attempts"]]
    assert endings[0] == "exhausted"
    assert endings[-1] == "done"
    assert result.task_info["sizing"]["category"] == "relax_execute"


def test_a_program_that_fits_nowhere_is_a_failure_with_its_story(server: Campaign) -> None:
    result = server.asked("relax", 1500, task_info={"category": "vast"})
    assert not result.success
    sizing = result.task_info["sizing"]
    assert sizing["category"] == "vast_execute"
    assert {attempt["ending"] for attempt in sizing["attempts"]} == {"exhausted"}


def test_what_fails_before_the_program_runs_is_the_users(server: Campaign) -> None:
    result = server.asked("relax", None)
    assert not result.success
    assert "nothing to relax" in result.failure_info.exception
    assert result.task_info["sizing"]["category"] == "relax_preprocess"


def test_nothing_is_remembered_in_the_process_that_asks() -> None:
    assert not colmena._RUNS
