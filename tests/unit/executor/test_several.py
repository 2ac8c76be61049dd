"""Several inner executors as one, with nothing started."""

from __future__ import annotations

import pytest
from parsl.executors import HighThroughputExecutor, WorkQueueExecutor

from parsl_sizer import SizedExecutor
from parsl_sizer.executor.several import OF_HTEX, Together


def members() -> list[HighThroughputExecutor]:
    return [HighThroughputExecutor(label=name, address="127.0.0.1") for name in ("a", "b")]


@pytest.mark.parametrize("name", OF_HTEX)
def test_what_is_set_on_a_list_reaches_each_htex_in_it(name: str) -> None:
    first, second = members()
    queue = WorkQueueExecutor(label="queue")
    of_queue = getattr(queue, name, None)  # its launch_cmd is another
    made = SizedExecutor([queue, first, second], archive=False)
    assert getattr(made, name) == getattr(first, name)
    setattr(made, name, "said")
    assert getattr(first, name) == getattr(second, name) == getattr(made, name) == "said"
    assert getattr(queue, name, None) == of_queue


@pytest.mark.parametrize("name", OF_HTEX)
def test_what_is_for_htex_is_refused_without_one(name: str) -> None:
    together = Together([WorkQueueExecutor(label="queue")])
    assert not hasattr(together, name)
    with pytest.raises(
        AttributeError, match=f"None of the executors queue is HTEX and has '{name}'"
    ):
        setattr(together, name, "said")


def test_other_attributes_are_its_own() -> None:
    together = Together(members())
    together.run_id = "of the run"
    assert together.members[0].run_id != "of the run"
    with pytest.raises(AttributeError, match="'provider'"):
        _ = together.provider
