"""Several engines as one, without any that runs."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from parsl.executors import ThreadPoolExecutor

from parsl_sizer.engines import CannotWrap, Engine
from parsl_sizer.engines.several import Several
from parsl_sizer.engines.threads import Threads
from parsl_sizer.model import Attempt, Node, OptOut, Resources, TaskInfo
from parsl_sizer.sizing import Categories, Sizer


class Inner(SimpleNamespace):
    """As much of an executor as an engine looks at."""

    def __init__(self, blocks: int = 2) -> None:
        super().__init__(
            provider=SimpleNamespace(max_blocks=blocks, nodes_per_block=1),
            label="part",
            bad_state_is_set=False,
            executor_exception=None,
        )

    def set_bad_state_and_fail_all(self, why: Exception) -> None:
        self.bad_state_is_set, self.executor_exception = True, why

    def submit(self, function: Any, specification: Any, *args: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(self)
        return done


class Part(Engine):
    """An engine with the nodes that it is given."""

    name = "part"
    isolations: tuple[str, ...] = ("runner", "fork")
    takes = frozenset({"priority"})

    def __init__(self, *names: str, memory: float = 4e9, blocks: int = 2) -> None:
        super().__init__(Inner(blocks))
        self.found: Any = [Node(name, Resources(cores=2, memory=memory)) for name in names]
        self.is_dead = False

    def nodes(self) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def has_died(self) -> bool:
        return self.is_dead


@pytest.fixture
def parts() -> dict[str, Part]:
    return {"big": Part("a", "b", memory=16e9), "standard": Part("a")}


def on(node: str) -> Attempt:
    return Attempt(TaskInfo(1, "align"), 1, {}, node)


def test_nodes_of_all_groups_are_told_apart_by_name(parts: dict[str, Part]) -> None:
    several = Several(parts)
    nodes = several.nodes()
    assert [(node.name, node.group) for node in nodes] == [
        ("big/a", "big"),
        ("big/b", "big"),
        ("standard/a", "standard"),
    ]
    for node in nodes:
        assert several.of(on(node.name)) is parts[node.group]


def test_a_node_of_a_group_that_gets_another_name_keeps_its_group(
    parts: dict[str, Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    several = Several(parts)
    monkeypatch.setattr(parts["big"], "renamed", lambda name: f"{name} job 7")
    assert several.renamed("big/a") == "big/a job 7"
    assert several.renamed("standard/a") == "standard/a"
    assert several.renamed("of nobody") == "of nobody"


def test_a_group_that_cannot_say_keeps_its_nodes_and_does_not_hide_others(
    parts: dict[str, Part],
) -> None:
    several = Several(parts)
    several.nodes()
    parts["big"].found = RuntimeError("no answer")
    parts["standard"].found = None
    assert len(several.nodes()) == 3


def test_a_group_that_died_is_given_up_and_the_others_go_on(
    parts: dict[str, Part], caplog: pytest.LogCaptureFixture
) -> None:
    several = Several(parts)
    nodes = several.nodes()
    assert not several.hand_on()
    parts["big"].is_dead = True
    assert [node.group for node in several.still_here(nodes)] == ["standard"]
    assert several.hand_on()
    assert several.hand_on()
    [told] = caplog.messages
    assert "Tasks of big are run by the other groups" in told
    assert parts["big"].inner.bad_state_is_set
    assert several.has_failed(on("big/a"))
    assert not several.has_failed(on("standard/a"))
    assert several.why_failed() is None
    assert [node.group for node in several.nodes()] == ["standard"]
    assert [room.memory for room in several.expected()] == [4e9]
    parts["standard"].inner.set_bad_state_and_fail_all(RuntimeError("no blocks"))
    assert several.why_failed() is not None


def test_what_a_group_without_nodes_was_given_is_run_by_others_after_a_while(
    parts: dict[str, Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    several_module = sys.modules[Several.__module__]
    several = Several(parts)
    several.nodes()
    parts["big"].found = []
    several.nodes()
    assert not several.hand_on()
    monkeypatch.setattr(several_module, "DESERTED_S", -1.0)
    assert several.hand_on()
    assert several.has_failed(on("big/a"))
    once = on("big/a")
    once = once._replace(task=once.task._replace(opt_outs=frozenset({OptOut.NO_RETRY})))
    assert not several.has_failed(once)
    assert several.why_failed() is None
    parts["standard"].found = []
    several.nodes()
    assert not several.has_failed(on("big/a"))  # there is nowhere else
    parts["big"].found = [Node("c", Resources(cores=2, memory=16e9))]
    several.nodes()
    assert not several.has_failed(on("big/a"))


def test_nodes_are_expected_of_groups_that_may_ask_for_blocks(parts: dict[str, Part]) -> None:
    parts["standard"] = Part("a", blocks=0)
    several = Several(parts)
    assert list(several.expected()) == []  # nobody has said what their nodes have
    several.nodes()
    assert [room.memory for room in several.expected()] == [16e9]


def test_without_sizing_groups_take_turns_past_those_that_failed(parts: dict[str, Part]) -> None:
    several = Several(parts)

    def runs() -> list[Any]:
        return [several.submit_unsized(len, {}, {}, ("a",), {}).result() for _ in range(4)]

    assert runs() == [parts["big"].inner, parts["standard"].inner] * 2
    parts["big"].is_dead = True
    assert runs() == [parts["standard"].inner] * 4


def test_what_is_possible_is_what_all_can(parts: dict[str, Part]) -> None:
    parts["standard"].isolations = ("fork", "inline")
    assert Several(parts).isolations == ("fork",)
    assert Several(parts).takes == {"priority"}
    parts["standard"].priority = lambda given: -1.0  # type: ignore[method-assign]
    assert Several(parts).takes == frozenset()


def test_the_demand_is_told_group_by_group(parts: dict[str, Part]) -> None:
    several = Several(parts)
    assert several.demands is None
    sizer = Sizer(Categories(lambda category: pytest.fail("nothing is sized")))
    assert several.demand(sizer) == 0
    assert several.demands == {"big": 0, "standard": 0}


def test_threads_are_refused(parts: dict[str, Part]) -> None:
    with pytest.raises(CannotWrap, match="'threads' together"):
        Several({**parts, "threads": Threads(ThreadPoolExecutor())})
