"""Parsl's own retries are for failures: none is spent on finding a task's size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sizer_apps as apps
from sizer_runs import running, sized

from parsl_sizer import ResourcesExhausted, retry_handler, sizing_of
from parsl_sizer.model import Ending

LIMIT_S = 60
RETRIES = 2
DONE, EXHAUSTED = Ending.DONE, Ending.EXHAUSTED


@pytest.fixture(scope="module", autouse=True)
def sized_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("retries")
    with running(sized(grow=False), folder, retries=RETRIES, retry_handler=retry_handler):
        yield


def test_growing_spends_no_retry(tmp_path: Path) -> None:
    future = apps.grown(400, str(tmp_path / "notes"))
    assert future.result(LIMIT_S) == 400
    first, *_, last = sizing_of(future).attempts
    assert (first.ending, last.ending) == (EXHAUSTED, DONE)
    assert future.task_record["fail_count"] == 0


def test_an_exception_spends_one(tmp_path: Path) -> None:
    future = apps.grown_then_failing(400, str(tmp_path / "notes"))
    assert future.result(LIMIT_S) == 400
    assert future.task_record["fail_count"] == 1
    assert sizing_of(future).attempts[-1].ending is DONE


def test_a_task_that_always_fails_has_as_many_as_without_us(tmp_path: Path) -> None:
    future = apps.failing(str(tmp_path / "notes"))
    with pytest.raises(ValueError, match="every time"):
        future.result(LIMIT_S)
    assert future.task_record["fail_count"] == 1 + RETRIES
    assert len((tmp_path / "notes").read_text()) == 1 + RETRIES


def test_with_the_retry_handler_no_retry_climbs_the_ladder_again(tmp_path: Path) -> None:
    future = apps.giant(str(tmp_path / "notes"))
    with pytest.raises(ResourcesExhausted) as caught:
        future.result(LIMIT_S)
    assert len((tmp_path / "notes").read_text()) == len(caught.value.outcomes)
