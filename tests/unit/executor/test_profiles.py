"""The search for all nodes of an executor, whatever comes back from them."""

from __future__ import annotations

import math
from collections.abc import Collection
from concurrent.futures import Future
from typing import Any

import pytest

from parsl_sizer.engines import Engine
from parsl_sizer.executor.profiles import FAILURES, Quest
from parsl_sizer.model import Node, NodeProfile


class Inner:
    """An inner executor whose nodes are not started by anybody."""

    provider = None


class Places(Engine):
    """An engine whose places come and go as the test says, with two workers each."""

    name = "places"
    isolations = ("inline",)

    def __init__(self) -> None:
        super().__init__(Inner())
        self.here: list[str] = []

    def nodes(self) -> list[Node]:
        return []

    def calls_to_reach(self, heard: Collection[str]) -> int:
        return 2 * len(self.here) if set(self.here) - set(heard) else 0


class Bench:
    """A quest, and the calls that it makes."""

    def __init__(self, nodes: int | None = None) -> None:
        self.engine = Places()
        self.calls: list[Future[Any]] = []
        self.seen: list[NodeProfile] = []
        self.quest = Quest("htex", self.engine, self.submit, (1.0, {}), nodes, self.seen.append)

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls.append(Future())
        return self.calls[-1]

    def answer(self, place: str, **told: Any) -> None:
        """The oldest call comes back from a place."""
        report = {"ending": "returned", "host": f"host of {place}", "node": {"cores": 4}}
        waiting = next(call for call in self.calls if not call.done())
        waiting.set_result({**report, "result": {"place": place, **told}})

    @property
    def waiting(self) -> int:
        return sum(not call.done() for call in self.calls)


def measured(**features: float) -> dict[str, Any]:
    return {"features": {"cpu_single": 1.0, **features}, "methods": {}}


def test_as_many_calls_are_made_as_there_are_workers_until_all_have_answered() -> None:
    bench = Bench(nodes=2)
    bench.engine.here = ["a", "b"]
    bench.quest.go_on()
    assert bench.waiting == 4
    bench.answer("a", **measured())
    bench.answer("a")
    bench.quest.go_on()
    assert bench.waiting == 4  # b may have got none of the first
    for place in ("a", "b", "b", "a"):
        bench.answer(place, **(measured() if place == "b" else {}))
    bench.quest.go_on()
    assert bench.quest.is_over
    assert bench.waiting == 0
    assert set(bench.quest.found) == {"host of a", "host of b"}
    assert bench.quest.missing(10.0) is None


def test_before_any_node_is_known_one_call_waits_for_it() -> None:
    bench = Bench()
    bench.quest.go_on()
    bench.quest.go_on()
    assert bench.waiting == 1
    bench.answer("a", **measured())
    bench.engine.here = ["a"]
    bench.quest.go_on()
    assert bench.quest.is_over


def test_a_node_that_comes_late_is_profiled_too() -> None:
    bench = Bench(nodes=2)
    bench.engine.here = ["a"]
    bench.quest.go_on()
    for told in (measured(), {}):
        bench.answer("a", **told)
    bench.quest.go_on()
    assert not bench.quest.is_over
    assert bench.quest.missing(5.0) == "1 of 2 nodes of htex have answered: no answer in 5 s."
    bench.engine.here.append("b")
    bench.quest.go_on()
    assert bench.waiting == 4


def test_an_executor_on_which_calls_fail_is_given_up() -> None:
    bench = Bench()
    bench.engine.here = ["a"]
    for _ in range(FAILURES + 1):
        bench.quest.go_on()
        waiting = next(call for call in bench.calls if not call.done())
        waiting.set_exception(RuntimeError("the node is on fire"))
    bench.quest.go_on()
    assert bench.quest.is_over
    assert bench.quest.found == {}
    assert "0 of 1 nodes of htex have answered" in (bench.quest.missing(5.0) or "")
    assert "the node is on fire" in (bench.quest.missing(5.0) or "")


@pytest.mark.parametrize("nonsense", [None, [], {"ending": "returned", "result": 7}, {"a": 1}])
def test_an_answer_that_is_none_counts_as_a_failure(nonsense: object) -> None:
    bench = Bench()
    bench.quest.go_on()
    bench.calls[0].set_result(nonsense)
    bench.quest.go_on()
    assert bench.quest.found == {}
    assert not bench.quest.is_over


def test_features_that_cannot_be_are_left_out() -> None:
    bench = Bench()
    bench.quest.go_on()
    bench.answer("a", **measured(io_read=math.nan, io_write=-1.0, memory_bandwidth=1e300))
    bench.quest.go_on()
    [profile] = bench.seen
    assert profile.features == {"cores": 4.0, "cpu_single": 1.0}
