"""Memoisation: what has been done is not done again, and a task's sizes do not matter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sizer_apps as apps
from sizer_runs import running, sized

from parsl_sizer import sizing_of
from parsl_sizer.model import Ending

LIMIT_S = 60


def noted(path: Path) -> int:
    return len(path.read_text()) if path.exists() else 0


@pytest.fixture(scope="module", autouse=True)
def sized_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with running(sized(grow=False), tmp_path_factory.mktemp("memo")):
        yield


def test_a_result_is_remembered(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    first = apps.square(3, str(notes))
    assert first.result(LIMIT_S) == 9
    again = apps.square(3, str(notes))
    assert again.result(LIMIT_S) == 9
    assert apps.square(4, str(notes)).result(LIMIT_S) == 16
    assert noted(notes) == 2
    assert sizing_of(first) is not None
    assert sizing_of(again) is None


def test_a_bash_app_is_remembered(tmp_path: Path) -> None:
    notes, out = tmp_path / "notes", str(tmp_path / "out")
    assert apps.shell_noted(str(notes), stdout=out).result(LIMIT_S) == 0
    assert apps.shell_noted(str(notes), stdout=out).result(LIMIT_S) == 0
    assert noted(notes) == 1


def test_a_result_that_took_several_sizes_is_remembered_once(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    first = apps.grown(400, str(notes))
    assert first.result(LIMIT_S) == 400
    endings = [attempt.ending for attempt in sizing_of(first).attempts]
    assert (endings[0], endings[-1]) == (Ending.EXHAUSTED, Ending.DONE)
    assert apps.grown(400, str(notes)).result(LIMIT_S) == 400
    assert noted(notes) == len(endings)
