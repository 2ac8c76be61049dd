from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from parsl_sizer.model import Amounts, Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.strategies import Family, Proposal, Setting, Strategy
from parsl_sizer.strategies.catalog import family
from parsl_sizer.strategies.modifiers import Cap, Floor, Margin, RoundedUp, WarmUp, modified
from parsl_sizer.testing import check_strategy

NODE = Resources(cores=16, memory=64.0, disk=64.0)
TASK = TaskInfo(1, "align")
GB = 1e9


class Fixed:
    """Asks for the given amounts first; what runs out is doubled."""

    def __init__(self, amounts: Amounts) -> None:
        self.amounts = amounts
        self.learned: list[Outcome] = []

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        if not failures:
            return Proposal(self.amounts, "fixed")
        held = dict(failures[-1].attempt.allocation)
        for kind in failures[-1].exhausted:
            held[kind] = min(2 * held[kind], largest[kind])
        return Proposal(held, "doubled")

    def learn(self, outcome: Outcome) -> None:
        self.learned.append(outcome)


def climb(strategy: Strategy, *ran_out: Kind) -> list[Amounts]:
    """What a task gets that runs out of these kinds, one after the other."""
    failures: list[Outcome] = []
    found = [strategy.propose(TASK, failures, NODE).amounts]
    for number, kind in enumerate(ran_out, start=1):
        attempt = Attempt(TASK, number, found[-1])
        failures.append(Outcome(attempt, Ending.EXHAUSTED, exhausted=frozenset({kind})))
        found.append(strategy.propose(TASK, failures, NODE).amounts)
    return found


def memory(strategy: Strategy, *ran_out: Kind) -> list[float]:
    return [amounts[Kind.MEMORY] for amounts in climb(strategy, *ran_out)]


def finished() -> Outcome:
    return Outcome(Attempt(TASK, 1, {Kind.MEMORY: 64.0}), Ending.DONE, usage=Usage({}, 1.0))


def test_a_margin_is_added_to_what_the_strategy_asks_for_up_to_the_largest_node() -> None:
    strategy = Margin(Fixed({Kind.MEMORY: 10.0}), 0.5)
    assert memory(strategy, Kind.MEMORY, Kind.MEMORY) == [15.0, 45.0, 64.0]


def test_a_margin_is_not_added_again_to_a_kind_that_did_not_run_out() -> None:
    strategy = Margin(Fixed({Kind.MEMORY: 10.0, Kind.DISK: 4.0}), 0.5)
    first, second = climb(strategy, Kind.DISK)
    assert first == {Kind.MEMORY: 15.0, Kind.DISK: 6.0}
    assert second == {Kind.MEMORY: 15.0, Kind.DISK: 18.0}


def test_a_floor_raises_what_is_below_it_and_nothing_else() -> None:
    strategy = Floor(Fixed({Kind.MEMORY: 1.0, Kind.DISK: 9.0}), {Kind.MEMORY: 5.0, Kind.DISK: 5.0})
    assert climb(strategy, Kind.MEMORY) == [
        {Kind.MEMORY: 5.0, Kind.DISK: 9.0},
        {Kind.MEMORY: 10.0, Kind.DISK: 9.0},
    ]


def test_a_floor_above_the_largest_node_is_the_largest_node() -> None:
    assert memory(Floor(Fixed({Kind.MEMORY: 1.0}), {Kind.MEMORY: 100.0})) == [64.0]


def test_a_cap_lowers_what_is_above_it_until_a_task_ran_out_of_it() -> None:
    strategy = Cap(Fixed({Kind.MEMORY: 9.0}), {Kind.MEMORY: 12.0})
    assert memory(strategy, Kind.MEMORY, Kind.MEMORY) == [9.0, 12.0, 24.0]


def test_what_a_modifier_does_not_name_is_left_alone() -> None:
    inner = Fixed({Kind.MEMORY: 9.0, Kind.DISK: 3.0})
    for strategy in Floor(inner, {Kind.MEMORY: 1.0}), Cap(inner, {Kind.MEMORY: 50.0}):
        proposal = strategy.propose(TASK, [], NODE)
        assert proposal == Proposal({Kind.MEMORY: 9.0, Kind.DISK: 3.0}, "fixed")


def test_a_modifier_says_what_it_did() -> None:
    strategy = Cap(Margin(Fixed({Kind.MEMORY: 9.0}), 0.5), {Kind.MEMORY: 10.0})
    assert str(strategy.propose(TASK, [], NODE).why) == "fixed; 50% added; lowered to the cap"


def test_a_warm_up_takes_the_request_or_the_node_until_tasks_have_finished() -> None:
    strategy = WarmUp(Fixed({Kind.MEMORY: 9.0}), 2)
    requesting = TaskInfo(2, "align", requested={Kind.MEMORY: 5.0, Kind.DISK: 1.0})
    assert memory(strategy) == [64.0]
    assert strategy.propose(requesting, [], NODE).amounts == {Kind.MEMORY: 5.0}
    strategy.learn(finished())
    assert memory(strategy) == [64.0]
    strategy.learn(finished())
    assert memory(strategy) == [9.0]


def test_a_warm_up_counts_finished_tasks_only_and_lets_the_strategy_learn_all() -> None:
    inner = Fixed({Kind.MEMORY: 9.0})
    strategy = WarmUp(inner, 1)
    lost = Outcome(Attempt(TASK, 1, {}), Ending.LOST)
    strategy.learn(lost)
    assert memory(strategy) == [64.0]
    assert inner.learned == [lost]


def test_a_request_that_ran_out_during_the_warm_up_grows_as_the_strategy_says() -> None:
    strategy = WarmUp(Fixed({Kind.MEMORY: 9.0}), 5)
    attempt = Attempt(TASK, 1, {Kind.MEMORY: 5.0})
    failed = Outcome(attempt, Ending.EXHAUSTED, exhausted=frozenset({Kind.MEMORY}))
    assert strategy.propose(TASK, [failed], NODE).amounts == {Kind.MEMORY: 10.0}


def test_a_family_is_modified_by_margin_then_floor_then_cap_then_warm_up() -> None:
    plain = family("doubling", Setting((Kind.MEMORY, Kind.DISK)))
    strategy = modified(
        plain,
        margin=0.5,
        floor={Kind.MEMORY: 20.0, Kind.DISK: 1.0},
        cap={Kind.MEMORY: 18.0, Kind.DISK: 11.0},
        warm_up=1,
    )("align")
    assert climb(strategy) == [{Kind.MEMORY: 64.0, Kind.DISK: 64.0}]
    strategy.learn(finished())
    assert climb(strategy) == [{Kind.MEMORY: 18.0, Kind.DISK: 11.0}]


def test_a_family_without_modifiers_is_as_it_was() -> None:
    inner = Fixed({Kind.MEMORY: 1.0})
    assert modified(lambda category: inner)("align") is inner


@pytest.mark.parametrize(
    "make",
    [
        lambda: Margin(Fixed({}), -0.1),
        lambda: Margin(Fixed({}), float("nan")),
        lambda: Floor(Fixed({}), {Kind.MEMORY: -1.0}),
        lambda: Cap(Fixed({}), {Kind.MEMORY: float("inf")}),
        lambda: WarmUp(Fixed({}), -1),
    ],
)
def test_a_modifier_that_makes_no_sense_is_refused(make: Callable[[], Strategy]) -> None:
    with pytest.raises(ValueError, match=r"must (be|last)"):
        make()


def margin(plain: Family) -> Family:
    return modified(plain, margin=0.15)


def floor(plain: Family) -> Family:
    return modified(plain, floor={Kind.CORES: 1, Kind.MEMORY: 2 * GB})


def cap(plain: Family) -> Family:
    return modified(plain, cap={Kind.MEMORY: 8 * GB, Kind.DISK: GB})


def warm_up(plain: Family) -> Family:
    return modified(plain, warm_up=3)


def everything(plain: Family) -> Family:
    return modified(
        plain, margin=0.05, floor={Kind.MEMORY: GB}, cap={Kind.MEMORY: 8 * GB}, warm_up=3
    )


@pytest.mark.parametrize(
    ("name", "modify"),
    [
        ("regression mean-", margin),
        ("regression mean-", floor),
        ("regression mean-", cap),
        ("regression mean-", warm_up),
        ("regression mean-", everything),
        ("doubling", everything),
        ("quantized-bucketing", everything),
    ],
)
def test_a_modified_strategy_keeps_the_laws(name: str, modify: Callable[[Family], Family]) -> None:
    def build(setting: Setting) -> Family:
        return modify(family(name, setting))

    check_strategy(build)


@pytest.mark.parametrize(
    ("asked", "used", "expected"),
    [(1.25, None, 2), (1.25, 1.0, 1), (1.25, 0.2, 1), (3.4, 2.3, 3), (1.0, 2.3, 1)],
)
@pytest.mark.parametrize("learns", [True, False], ids=["learned", "recalled"])
def test_no_more_cores_are_asked_for_than_a_task_has_used(
    asked: float, used: float | None, expected: int, learns: bool
) -> None:
    strategy = RoundedUp(Fixed({Kind.CORES: asked}), {})
    if used is not None:
        past = [
            finished()._replace(usage=Usage({Kind.CORES: cores}, 1.0)) for cores in (used, used / 2)
        ]
        if learns:
            for outcome in past:
                strategy.learn(outcome)
        else:
            strategy.recall(past)
    assert climb(strategy) == [{Kind.CORES: expected}]


def test_cores_that_ran_out_grow_whatever_was_used() -> None:
    strategy = RoundedUp(Fixed({Kind.CORES: 2.0}), {})
    strategy.learn(finished()._replace(usage=Usage({Kind.CORES: 1.0}, 1.0)))
    assert [found[Kind.CORES] for found in climb(strategy, Kind.CORES)] == [1, 2]
