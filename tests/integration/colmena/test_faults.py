"""What may go wrong under a thinker: it gets its result, or a clear error, and never waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("colmena", reason="Colmena is not installed here")

import colmena_methods as methods
from colmena_runs import Campaign, campaign
from sizer_runs import sized

NODE = "cores=2,memory=800MB"


def broken(function: Any, args: Any, kwargs: Any) -> str:
    raise RuntimeError("a hook that raises")


def broken_too(exhaustion: Any) -> None:
    raise RuntimeError("another hook that raises")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    served = [
        *(methods.simulate, methods.grown, methods.refused, methods.refused_by_numpy),
        *(methods.failing, methods.giant, methods.killed),
    ]
    folder = tmp_path_factory.mktemp("faults")
    executor = sized(node=NODE, category=broken, on_exhausted=broken_too, grow=False)
    with campaign(executor, served, folder) as made:
        yield made


def endings(result: Any) -> list[str]:
    return [attempt["ending"] for attempt in result.task_info["sizing"]["attempts"]]


@pytest.mark.parametrize("method", ["refused", "refused_by_numpy"])
def test_a_memory_error_is_tried_again_larger_within_one_task(
    server: Campaign, tmp_path: Path, method: str
) -> None:
    notes = tmp_path / "notes"
    result = server.asked(method, 80, str(notes), task_info={"category": f"{method}, tagged"})
    assert result.success
    assert result.value == 81
    assert result.retries == 0
    assert len(notes.read_text()) == 2
    sizing = result.task_info["sizing"]
    assert sizing["category"] == f"{method}, tagged"
    assert endings(result) == ["exhausted", "done"]
    first, second = (attempt["allocation"]["memory"] for attempt in sizing["attempts"])
    assert first == 100e6 < second == sizing["allocation"]["memory"]


def test_a_memory_error_far_from_the_limit_is_the_users(server: Campaign, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    result = server.asked("refused", 1, str(notes), task_info={"category": "no lack"})
    assert not result.success
    assert "MemoryError" in result.failure_info.exception
    assert len(notes.read_text()) == 1
    assert endings(result) == ["raised"]


def test_a_task_over_its_limit_is_stopped_and_completed_larger(
    server: Campaign, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    result = server.asked("grown", 300, str(notes))
    assert result.success
    assert result.value == 300
    assert len(notes.read_text()) >= 2
    sizing = result.task_info["sizing"]
    assert sizing["attempts"][0]["ending"] == "exhausted"
    assert sizing["attempts"][-1]["ending"] == "done"
    assert sizing["peak"]["memory"] >= 0.98 * 300e6
    assert sizing["allocation"]["memory"] >= 300e6


def test_what_fits_nowhere_comes_back_as_a_failure_that_says_so(
    server: Campaign, tmp_path: Path
) -> None:
    result = server.asked("giant", str(tmp_path / "notes"))
    assert not result.success
    assert "ResourcesExhausted" in result.failure_info.exception
    assert "attempt 1" in result.failure_info.traceback
    assert set(endings(result)) == {"exhausted"}


def test_another_error_comes_back_at_once_as_it_is(server: Campaign, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    result = server.asked("failing", str(notes))
    assert not result.success
    assert result.failure_info.exception == "ValueError('as it should')"
    assert len(notes.read_text()) == 1
    assert endings(result) == ["raised"]


def test_colmenas_own_retries_still_work(server: Campaign, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    result = server.asked("failing", str(notes), max_retries=2)
    assert not result.success
    assert (result.retries, len(notes.read_text())) == (2, 3)
    assert endings(result) == ["raised"]  # of the last


def test_a_killed_worker_costs_an_attempt(server: Campaign, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    result = server.asked("killed", str(notes), 1)
    assert result.success
    assert result.value == "survived"
    assert endings(result) == ["lost", "done"]


def test_a_worker_that_is_always_killed_is_a_clear_error(server: Campaign, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    result = server.asked("killed", str(notes), 100, task_info={"atoms": 3})
    assert not result.success
    assert "WorkerLost" in result.failure_info.exception
    assert endings(result) == ["lost", "lost", "lost"]
    assert result.task_info["atoms"] == 3


def test_a_hook_that_raises_is_said_once_and_harms_nobody(server: Campaign, tmp_path: Path) -> None:
    for _ in range(3):
        result = server.asked("simulate", 5)
        assert result.value == -25
        assert result.task_info["sizing"]["category"] == "simulate"
    assert server.said().count("a hook that raises") == 1
    for number in range(2):
        unknown = {"category": f"hooked {number}"}  # so that it begins with too little
        notes = str(tmp_path / f"{number}")
        assert server.asked("grown", 300, notes, task_info=unknown).success
    assert server.said().count("another hook that raises") == 1
