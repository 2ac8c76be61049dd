"""Several inner executors as one, with nothing started."""

from __future__ import annotations

import pytest
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor

from parsl_sizer import SizedExecutor
from parsl_sizer.executor.several import OF_HTEX, Together


def members() -> list[HighThroughputExecutor]:
    return [HighThroughputExecutor(label=name, address="127.0.0.1") for name in ("a", "b")]


@pytest.mark.parametrize("name", OF_HTEX)
def test_what_is_set_on_a_list_reaches_each_htex_in_it(name: str) -> None:
    first, second = members()
    made = SizedExecutor([first, second], archive=False)
    if hasattr(first, name):  # the oldest Parsl has no _check_python_mismatch
        assert getattr(made, name) == getattr(first, name)
    setattr(made, name, "said")
    assert getattr(first, name) == getattr(second, name) == getattr(made, name) == "said"


@pytest.mark.parametrize("name", OF_HTEX)
def test_what_is_for_htex_is_refused_without_one(name: str) -> None:
    other = ThreadPoolExecutor(label="queue")
    vars(other)[name] = "of something else"  # as Work Queue's launch_cmd is
    together = Together([other])
    assert not hasattr(together, name)
    with pytest.raises(
        AttributeError, match=f"None of the executors queue is HTEX and has '{name}'"
    ):
        setattr(together, name, "said")
    assert vars(other)[name] == "of something else"


def test_other_attributes_are_its_own() -> None:
    together = Together(members())
    together.run_id = "of the run"
    assert together.members[0].run_id != "of the run"
    with pytest.raises(AttributeError, match="'provider'"):
        _ = together.provider
