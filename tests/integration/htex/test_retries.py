"""Parsl's own retries and memos beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sizer_tasks as tasks
from sizer_runs import running, sized

from parsl_sizer import ResourcesExhausted, SizedExecutor, sizing_of

LIMIT_S = 100


@pytest.fixture(scope="module")
def retried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedExecutor]:
    made = sized(node="cores=2,memory=400MB", grow=False)
    folder = tmp_path_factory.mktemp("retried")
    with running(made, folder, retries=2):
        yield made


def test_parsls_retries_are_not_spent_on_size(retried: SizedExecutor, tmp_path: Path) -> None:
    small = {"memory": 100}
    notes = str(tmp_path / "notes")
    future = tasks.note_and_hold(notes, 300, 1.0, parsl_resource_specification=small)
    assert future.result(LIMIT_S) == 300
    attempts = sizing_of(future).attempts
    assert len(attempts) > 1
    assert future.task_record["fail_count"] == 0


def test_a_task_that_fits_no_node_is_not_run_again_by_parsls_retries(
    retried: SizedExecutor, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    future = tasks.note_and_hold(
        str(notes), 600, 60.0, parsl_resource_specification={"memory": 100}
    )
    with pytest.raises(ResourcesExhausted) as caught:
        future.result(LIMIT_S)
    assert len(notes.read_text()) == len(caught.value.outcomes)
    assert len(sizing_of(future).attempts) == len(caught.value.outcomes)
    assert future.task_record["fail_count"] == 3


def test_a_fixed_request_that_was_too_small_is_retried(
    retried: SizedExecutor, tmp_path: Path
) -> None:
    """A `retry_handler` may have made it larger."""
    notes = tmp_path / "notes"
    little = {"memory": 100, "fixed": True}
    future = tasks.note_and_hold(str(notes), 300, 60.0, parsl_resource_specification=little)
    with pytest.raises(ResourcesExhausted):
        future.result(LIMIT_S)
    assert len(notes.read_text()) == 3


def test_a_task_that_raises_such_an_error_itself_is_retried(
    retried: SizedExecutor, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    future = tasks.note_and_exhaust(str(notes))
    with pytest.raises(ResourcesExhausted):
        future.result(LIMIT_S)
    assert len(notes.read_text()) == 3


def test_other_errors_are_retried(retried: SizedExecutor, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    future = tasks.note_and_fail(str(notes))
    with pytest.raises(ValueError, match="noted"):
        future.result(LIMIT_S)
    assert len(notes.read_text()) == 3


def test_sizing_of_tells_what_can_be_told(retried: SizedExecutor, tmp_path: Path) -> None:
    go, begun = tmp_path / "go", tmp_path / "begun"
    runs = tasks.hold_until(str(go), 1, str(begun))
    tasks.wait_for(begun)
    assert sizing_of(runs) is None  # nothing has ended yet
    go.touch()
    runs.result(LIMIT_S)
    assert "done" in str(sizing_of(runs))
    failed = tasks.fail()
    assert isinstance(failed.exception(LIMIT_S), ValueError)
    assert "raised" in str(sizing_of(failed))
    first = tasks.memoised(7)
    assert first.result(LIMIT_S) == 7
    again = tasks.memoised(7)
    assert again.result(LIMIT_S) == 7
    assert sizing_of(first) is not None
    assert sizing_of(again) is None  # it never ran
