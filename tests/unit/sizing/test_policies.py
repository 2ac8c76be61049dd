"""The sizer asks its policy where tasks go, and the ledger still has the last word."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsl_sizer.model import Attempt, Ending, Kind, Node, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.placement import POLICIES, Policy, policy
from parsl_sizer.sizing import Categories, Ended, Joined, Launch, Left, Sizer, Submitted
from parsl_sizer.strategies import Setting, catalog

LABELS = {"weak": {"cpu": 1}, "strong": {"cpu": 2}}
KINDS = (Kind.CORES, Kind.MEMORY)


def sizer(chosen: Policy | None) -> Sizer:
    family = catalog.family("user-estimate", Setting(KINDS))
    return Sizer(Categories(family), policy=chosen)


def task(number: int, category: str = "align", cores: float = 2.0) -> TaskInfo:
    return TaskInfo(number, category, requested={Kind.CORES: cores, Kind.MEMORY: 5e9})


def join(loop: Sizer, *names: str, slots: int = 0) -> list[Attempt]:
    launched = []
    for name in names:
        node = Node(name, Resources(cores=8, memory=32e9), group=name[:-1], slots=slots)
        launched += attempts(loop.handle(Joined(node), 0.0))
    return launched


def attempts(actions: list[object]) -> list[Attempt]:  # type: ignore[type-arg]
    return [action.attempt for action in actions if isinstance(action, Launch)]


def submit(loop: Sizer, *tasks: TaskInfo) -> list[str | None]:
    return [a.node for one in tasks for a in attempts(loop.handle(Submitted(one), 0.0))]


def finish(loop: Sizer, attempt: Attempt, cores: float) -> list[Attempt]:
    used = Usage({Kind.MEMORY: 1e9}, 10.0, cores * 10.0)
    return attempts(loop.handle(Ended(Outcome(attempt, Ending.DONE, usage=used)), 10.0))


def test_tasks_go_where_what_was_learned_says() -> None:
    loop = sizer(policy("tarema", LABELS))
    join(loop, "weak1", "strong1")
    for number, (category, cores) in enumerate((("light", 0.1), ("heavy", 2.0))):
        [first] = attempts(loop.handle(Submitted(task(number, category)), 0.0))
        finish(loop, first, cores)
    assert submit(loop, *(task(10 + n, "heavy") for n in range(3))) == ["strong1"] * 3
    assert submit(loop, *(task(20 + n, "light") for n in range(4))) == ["weak1"] * 4
    # The weak node is full; then all is full.
    assert submit(loop, task(30, "light")) == ["strong1"]
    assert submit(loop, task(40, "light")) == []


def test_fair_and_fill_spread_and_pack() -> None:
    fair, fill = sizer(policy("fair")), sizer(policy("fill-nodes"))
    for loop in (fair, fill):
        join(loop, "a1", "b1", "c1")
    tasks = [task(n) for n in range(6)]
    assert submit(fair, *tasks) == ["a1", "b1", "c1"] * 2
    assert submit(fill, *tasks) == ["a1"] * 4 + ["b1"] * 2


def test_a_node_that_left_is_no_place() -> None:
    loop = sizer(policy("fill-nodes"))
    join(loop, "a1", "b1")
    loop.handle(Left("a1"), 0.0)
    assert submit(loop, task(1)) == ["b1"]
    assert join(loop, "a1") == []
    assert submit(loop, task(2)) == ["b1"]


def test_whoever_would_wait_for_a_slot_goes_elsewhere_first() -> None:
    loop = sizer(policy("fill-nodes"))
    join(loop, "a1", "b1", slots=1)
    loop._ledger.let_wait(1)
    assert submit(loop, *(task(n, cores=8.0) for n in range(3))) == ["a1", "b1", "a1"]


@pytest.mark.parametrize("name", POLICIES)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([1.0, 2.0, 4.0, 8.0])), max_size=30)
)
@settings(max_examples=25, deadline=None)
def test_no_policy_over_commits_a_node_or_forgets_a_task(
    name: str, asked: list[tuple[str, float]]
) -> None:
    loop = sizer(policy(name, LABELS))
    join(loop, "weak1", "weak2", "strong1")
    running: list[Attempt] = []
    for number, (category, cores) in enumerate(asked):
        running += attempts(loop.handle(Submitted(task(number, category, cores)), 0.0))
    finished = 0
    while running:
        held: Counter[str | None] = Counter()
        for attempt in running:
            held[attempt.node] += int(attempt.allocation[Kind.CORES])
        assert max(held.values()) <= 8
        running += finish(loop, running.pop(0), 1.0)
        finished += 1
    assert finished == len(asked)
    assert len(loop) == 0
