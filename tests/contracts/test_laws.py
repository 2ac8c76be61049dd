"""A law that nothing can break says nothing: each is broken here, by name."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from parsl_sizer import testing
from parsl_sizer.model import Kind, Outcome, Resources, TaskInfo
from parsl_sizer.strategies import Family, PerKind, Predictor, Proposal, Setting

FIRST, STEP = 1e-3, 2.0


class Steady(Predictor):
    """A strategy to spoil: a thousandth of the node, then twice as much."""

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        return FIRST * largest

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float | None:
        return STEP * failed[-1]


def of(predictor: Callable[[], Predictor]) -> Callable[[Setting], Family]:
    def build(setting: Setting) -> Family:
        return lambda category: PerKind.of(setting.kinds, lambda kind: predictor())

    return build


def altered(
    alter: Callable[[Proposal, Sequence[Outcome], Resources], Proposal],
) -> Callable[[Setting], Family]:
    """Steady, with its proposals altered."""

    class Altered(PerKind):
        def propose(
            self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources
        ) -> Proposal:
            return alter(super().propose(task, failures, largest), failures, largest)

    return lambda setting: lambda category: Altered({kind: Steady() for kind in setting.kinds})


class Counting(Steady):
    """Every prediction is larger than the one before."""

    def __init__(self) -> None:
        self.asked = 0

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        self.asked += 1
        return min(self.asked * 1e-5, 1.0) * largest


class Drawing(Steady):
    """A number drawn from randomness that nobody passed."""

    def __init__(self) -> None:
        self.share = random.random()

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        return self.share * largest


class Gossiping(Steady):
    """What one instance sees, all know."""

    seen = 0

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        return min(self.seen * 1e-6, 1.0) * largest

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        Gossiping.seen += 1


class Trusting(Steady):
    """The largest peak, believed whatever it is, and nothing subtracted from it but one."""

    def __init__(self) -> None:
        self.largest = 1.0

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        return self.largest - 1.0 if self.largest < 1e9 else -self.largest

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        self.largest = max(self.largest, peak)


class Hoarding(Steady):
    """Every peak, for ever."""

    def __init__(self) -> None:
        self.peaks: list[float] = []

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        self.peaks.append(peak)


class Heavy(Steady):
    """Much room, for tasks that may never come."""

    def __init__(self) -> None:
        self.bins = [float(number) for number in range(1000)]


class Patient(Steady):
    """Steps that hardly lead anywhere."""

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float | None:
        return 1.01 * failed[-1]


class Rewriting(Steady):
    """A reason that is the strategy itself, and so changes with it."""

    def __init__(self) -> None:
        self.seen = 0

    def __str__(self) -> str:
        return f"{self.seen} tasks"

    def why(self, task: TaskInfo, amount: float) -> object:
        return self

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        self.seen += 1


class Unready(Steady):
    """Nothing before the first lesson."""

    def __init__(self) -> None:
        self.peak: float | None = None

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        if self.peak is None:
            raise LookupError("nothing learned yet")
        return self.peak

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        self.peak = peak


def without_disk(proposal: Proposal, failures: Sequence[Outcome], largest: Resources) -> Proposal:
    amounts = dict(proposal.amounts)
    del amounts[Kind.DISK]
    return Proposal(amounts, proposal.why)


def without_reason(proposal: Proposal, failures: Sequence[Outcome], largest: Resources) -> Proposal:
    return Proposal(proposal.amounts, "")


def numpy_numbers(proposal: Proposal, failures: Sequence[Outcome], largest: Resources) -> Proposal:
    import numpy as np

    amounts = {kind: np.float64(amount) for kind, amount in proposal.amounts.items()}
    return Proposal(amounts, proposal.why)


def all_kinds_grow(proposal: Proposal, failures: Sequence[Outcome], largest: Resources) -> Proposal:
    share = min(FIRST * STEP ** len(failures), 1.0)
    return Proposal({kind: share * largest[kind] for kind in proposal.amounts}, proposal.why)


def nothing_grows(proposal: Proposal, failures: Sequence[Outcome], largest: Resources) -> Proposal:
    return Proposal({kind: FIRST * largest[kind] for kind in proposal.amounts}, proposal.why)


def fixed(proposal: Proposal, failures: Sequence[Outcome], largest: Resources) -> Proposal:
    return Proposal(dict.fromkeys(proposal.amounts, 8.0), proposal.why)


@pytest.mark.parametrize(
    ("law", "build", "sentence"),
    [
        (testing.check_propose_before_learning, altered(without_disk), "every kind it is to size"),
        (testing.check_proposals_are_plain, altered(without_reason), "a reason"),
        (testing.check_proposals_are_plain, altered(numpy_numbers), "plain numbers"),
        (testing.check_reasons_last, of(Rewriting), "a reason does not change"),
        (testing.check_propose_is_pure, of(Counting), "propose is pure"),
        (testing.check_same_lessons_same_proposals, of(Drawing), "the same lessons"),
        (testing.check_families_are_independent, of(Gossiping), "families share nothing"),
        (testing.check_failure_grows_only_what_ran_out, altered(all_kinds_grow), "nothing else"),
        (testing.check_failure_grows_only_what_ran_out, altered(nothing_grows), "ran out of cores"),
        (testing.check_attempts_are_bounded, of(Patient), "at most 40 attempts"),
        (testing.check_never_above_the_largest_node, altered(fixed), "proposed 8.0 for cores"),
        (testing.check_extreme_lessons_do_no_harm, of(Trusting), "between 0 and the largest node"),
        (testing.check_memory_is_bounded, of(Hoarding), "memory is bounded"),
        (testing.check_a_new_category_is_light, of(Heavy), "of few tasks is light"),
    ],
)
def test_a_strategy_that_breaks_a_law_is_told_so(
    law: Callable[[Callable[[Setting], Family]], None],
    build: Callable[[Setting], Family],
    sentence: str,
) -> None:
    with pytest.raises(AssertionError, match=r"^Strategy .* breaks the law that .*\.$") as caught:
        law(build)
    assert sentence in str(caught.value)


def test_a_strategy_that_cannot_begin_fails_before_it_has_learned() -> None:
    with pytest.raises(LookupError, match="nothing learned yet"):
        testing.check_propose_before_learning(of(Unready))


def test_the_strategy_that_the_others_spoil_keeps_all_laws() -> None:
    testing.check_strategy(of(Steady))


def test_a_strategy_is_called_by_its_name_or_by_that_of_its_builder() -> None:
    with pytest.raises(AssertionError, match=r"^Strategy .*\.of\.<locals>\.build breaks"):
        testing.check_propose_is_pure(of(Counting))


def test_every_law_is_in_the_list_and_is_public() -> None:
    checks = {name for name in testing.__all__ if name.startswith("check_")}
    assert {law.__name__ for law in testing.LAWS} | {"check_strategy"} == checks
    assert all(law.__doc__ for law in testing.LAWS)
