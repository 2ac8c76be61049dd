from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.sizing.categories import MAX_ATTEMPTS, MAX_WARNINGS, Categories
from parsl_sizer.strategies import Proposal, Strategy

NODE = Resources(cores=16, memory=64e9, disk=32e9)
ALL_OF_IT = {Kind.CORES: 16, Kind.MEMORY: 64e9, Kind.DISK: 32e9}
SOUND = {Kind.CORES: 1.0, Kind.MEMORY: 2e9, Kind.DISK: 1e9}

Propose = Callable[[TaskInfo, Sequence[Outcome], Resources], object]


class Scripted:
    """A strategy that does what it is told and notes what it is taught."""

    def __init__(self, propose: Propose) -> None:
        self._propose = propose
        self.learned: list[Outcome] = []

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        return self._propose(task, failures, largest)  # type: ignore[return-value]

    def learn(self, outcome: Outcome) -> None:
        self.learned.append(outcome)


def always(answer: object) -> Propose:
    return lambda task, failures, largest: answer


def first_then(first: object, later: object) -> Propose:
    return lambda task, failures, largest: later if failures else first


def raising(error: Exception) -> Propose:
    def propose(task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> object:
        raise error

    return propose


def sized_by(
    propose: Propose, *, kinds: Sequence[Kind] | None = None
) -> tuple[Categories, list[str]]:
    said: list[str] = []
    return Categories(lambda category: Scripted(propose), kinds=kinds, warn=said.append), said


def task(number: int = 1, category: str = "align", **requested: float) -> TaskInfo:
    return TaskInfo(number, category, requested={Kind(k): a for k, a in requested.items()})


def ran_out(number: int, allocation: Mapping[Kind, float], *kinds: Kind) -> Outcome:
    attempt = Attempt(task(), number, allocation)
    return Outcome(attempt, Ending.EXHAUSTED, usage=Usage({}, 1.0), exhausted=frozenset(kinds))


def done(info: TaskInfo) -> Outcome:
    return Outcome(Attempt(info, 1, SOUND), Ending.DONE, usage=Usage({Kind.MEMORY: 1e9}, 1.0))


class TestLessons:
    def test_without_lag_a_lesson_is_taught_at_once(self) -> None:
        strategy = Scripted(always(Proposal(SOUND, "")))
        categories = Categories(lambda category: strategy)
        outcome = done(task())
        categories.learn(outcome)
        assert strategy.learned == [outcome]

    @pytest.mark.parametrize("lag", [1, 2, 32])
    def test_a_lesson_is_taught_after_so_many_further_tasks_were_first_sized(
        self, lag: int
    ) -> None:
        strategy = Scripted(always(Proposal(SOUND, "")))
        categories = Categories(lambda category: strategy, lag=lag)
        for number in range(100):
            # Sized so far: 0 … number - 1. The lesson of task n waits for n + lag to be among them.
            categories.propose(task(number), [], NODE)
            known = [outcome.attempt.task.task_id for outcome in strategy.learned]
            assert known == list(range(number - lag))
            categories.learn(done(task(number)))

    def test_failures_wait_like_any_other_lesson_and_retries_are_not_counted(self) -> None:
        strategy = Scripted(first_then(Proposal(SOUND, ""), Proposal(ALL_OF_IT, "")))
        categories = Categories(lambda category: strategy, lag=2)
        failure, success = ran_out(1, SOUND, Kind.MEMORY), done(task())
        categories.propose(task(), [], NODE)
        categories.learn(failure)
        for _ in range(5):
            categories.propose(task(), [failure], NODE)
        categories.learn(success)
        categories.propose(task(2), [], NODE)
        categories.propose(task(3), [], NODE)
        assert strategy.learned == []
        categories.propose(task(4), [], NODE)
        assert strategy.learned == [failure, success]

    def test_a_retry_knows_what_the_first_attempt_knew(self) -> None:
        strategy = Scripted(
            lambda info, failures, largest: Proposal(ALL_OF_IT, f"{len(strategy.learned)} lessons")
        )
        categories = Categories(lambda category: strategy, lag=1)
        for number in range(5):
            first = categories.propose(task(number), [], NODE)
            retry = categories.propose(task(number), [ran_out(1, SOUND, Kind.MEMORY)], NODE)
            assert first is not None
            assert retry is not None
            assert first.why == retry.why
            categories.learn(done(task(number)))

    def test_each_category_is_taught_its_own_lessons(self) -> None:
        strategies: dict[str, Scripted] = {}

        def family(category: str) -> Strategy:
            assert category not in strategies, "asked for twice"
            return strategies.setdefault(category, Scripted(always(Proposal(SOUND, ""))))

        categories = Categories(family)
        for category in ("align", "call", "align"):
            categories.propose(task(1, category), [], NODE)
            categories.learn(done(task(1, category)))
        assert {name: len(strategies[name].learned) for name in strategies} == {
            "align": 2,
            "call": 1,
        }

    def test_a_negative_lag_is_refused(self) -> None:
        with pytest.raises(ValueError, match="lag must be 0 or more, not -1"):
            Categories(lambda category: Scripted(always(None)), lag=-1)

    def test_a_strategy_that_cannot_learn_is_told_of_once_and_goes_on(self) -> None:
        class Broken(Scripted):
            def learn(self, outcome: Outcome) -> None:
                raise ValueError("no variance")

        said: list[str] = []
        categories = Categories(
            lambda category: Broken(always(Proposal(SOUND, ""))), warn=said.append
        )
        for number in range(10):
            proposal = categories.propose(task(number), [], NODE)
            assert proposal is not None
            assert proposal.amounts == SOUND
            categories.learn(done(task(number)))
        assert said == [
            (
                "The strategy of category 'align' could not learn (ValueError('no variance')), "
                "so the outcome is left out."
            )
        ]


class TestFirstProposals:
    def test_a_sound_proposal_is_handed_on_untouched(self) -> None:
        proposal = Proposal({**SOUND, Kind.GPUS: 0.0}, "because")
        categories, said = sized_by(always(proposal), kinds=list(SOUND))
        assert categories.propose(task(), [], NODE) is proposal
        assert said == []

    @pytest.mark.parametrize("number", [np.float64, np.float32, np.int64])
    def test_amounts_are_plain_numbers(self, number: Callable[[float], float]) -> None:
        proposal = Proposal({kind: number(amount) for kind, amount in SOUND.items()}, "because")
        categories, said = sized_by(always(proposal), kinds=list(SOUND))
        amounts = categories.propose(task(), [], NODE).amounts
        assert amounts == SOUND
        assert {type(amount) for amount in amounts.values()} == {float}
        assert said == []

    @pytest.mark.parametrize(
        "answer",
        [
            None,
            "2 GB",
            {},
            SOUND,
            SimpleNamespace(amounts=None, why=""),
            Proposal({Kind.MEMORY: "2 GB"}, ""),  # type: ignore[dict-item]
            Proposal({Kind.MEMORY: None}, ""),  # type: ignore[dict-item]
            Proposal({Kind.MEMORY: 1j}, ""),  # type: ignore[dict-item]
            Proposal({"ram": 1.0}, ""),  # type: ignore[dict-item]
        ],
        ids=repr,
    )
    def test_nonsense_becomes_the_request_or_the_largest_node(self, answer: object) -> None:
        categories, said = sized_by(always(answer))
        for number in range(3):
            proposal = categories.propose(task(number, memory=4e9), [], NODE)
            assert proposal is not None
            assert proposal.amounts == {**ALL_OF_IT, Kind.MEMORY: 4e9}
        assert len(said) == 1
        assert said[0].startswith("The strategy of category 'align' could not propose (")
        assert said[0].endswith("so the user's request or the largest node is used instead.")

    @pytest.mark.parametrize("amount", [math.nan, -1.0, math.inf, -math.inf])
    def test_an_amount_that_cannot_be_is_replaced_and_the_others_are_kept(
        self, amount: float
    ) -> None:
        categories, said = sized_by(always(Proposal({**SOUND, Kind.MEMORY: amount}, "why")))
        for number in range(3):
            proposal = categories.propose(task(number), [], NODE)
            assert proposal == Proposal({**SOUND, Kind.MEMORY: 64e9}, "why")
        assert said == [
            (
                f"The strategy of category 'align' proposed {amount!r} for memory, "
                "so the user's request or the largest node is used instead."
            )
        ]

    def test_an_amount_above_the_largest_node_is_the_largest_node(self) -> None:
        categories, said = sized_by(always(Proposal({Kind.MEMORY: 1e15}, "why")))
        assert categories.propose(task(), [], NODE) == Proposal({Kind.MEMORY: 64e9}, "why")
        assert said == []

    def test_a_strategy_that_raises_is_told_of_once_per_category(self) -> None:
        categories, said = sized_by(raising(RuntimeError("no idea" + "!" * 1000)))
        for category in ("align", "align", "call"):
            proposal = categories.propose(task(1, category), [], NODE)
            assert proposal is not None
            assert proposal.amounts == ALL_OF_IT
        assert [sentence[:60] for sentence in said] == [
            "The strategy of category 'align' could not propose (RuntimeE",
            "The strategy of category 'call' could not propose (RuntimeEr",
        ]
        assert all(len(sentence) < 400 for sentence in said)

    def test_a_family_that_raises_stops_no_task(self) -> None:
        def family(category: str) -> Strategy:
            raise OSError("no such model")

        said: list[str] = []
        categories = Categories(family, kinds=[Kind.MEMORY], warn=said.append)
        proposal = categories.propose(task(memory=4e9), [], NODE)
        categories.learn(done(task()))
        assert proposal is not None
        assert proposal.amounts == {Kind.MEMORY: 4e9}
        assert len(said) == 2

    @pytest.mark.parametrize("request_", [-1.0, 0.0, math.nan, math.inf, 1e15])
    def test_a_request_that_no_node_has_is_no_fallback(self, request_: float) -> None:
        categories, _ = sized_by(raising(RuntimeError()))
        proposal = categories.propose(task(memory=request_), [], NODE)
        assert proposal is not None
        assert proposal.amounts == ALL_OF_IT

    def test_a_kind_that_must_be_sized_and_is_not_gets_the_request_or_the_largest_node(
        self,
    ) -> None:
        kinds = [Kind.MEMORY, Kind.DISK]
        categories, said = sized_by(always(Proposal({Kind.MEMORY: 1e9}, "")), kinds=kinds)
        proposal = categories.propose(task(disk=3e9), [], NODE)
        assert proposal is not None
        assert proposal.amounts == {Kind.MEMORY: 1e9, Kind.DISK: 3e9}
        assert said == [
            (
                "The strategy of category 'align' proposed nothing for disk, "
                "so the user's request or the largest node is used instead."
            )
        ]

    def test_a_kind_nobody_asked_for_may_be_left_out(self) -> None:
        categories, said = sized_by(always(Proposal({Kind.MEMORY: 1e9}, "")))
        proposal = categories.propose(task(), [], NODE)
        assert proposal is not None
        assert proposal.amounts == {Kind.MEMORY: 1e9}
        assert said == []

    def test_warnings_end_however_many_categories_are_broken(self) -> None:
        categories, said = sized_by(raising(RuntimeError()))
        for number in range(MAX_WARNINGS + 10):
            categories.propose(task(number, f"category {number}"), [], NODE)
        assert len(said) == MAX_WARNINGS

    def test_a_very_long_category_is_cut_in_warnings(self) -> None:
        categories, said = sized_by(always(None))
        categories.propose(task(1, "x" * 10_000), [], NODE)
        assert len(said[0]) < 300

    def test_nothing_is_said_where_nobody_listens(self) -> None:
        categories = Categories(lambda category: Scripted(always(None)))
        assert categories.propose(task(), [], NODE) is not None


class TestAfterFailures:
    def test_the_kind_that_ran_out_grows_as_the_strategy_says(self) -> None:
        grown = Proposal({**SOUND, Kind.MEMORY: 4e9}, "twice as much")
        categories, said = sized_by(always(grown))
        assert categories.propose(task(), [ran_out(1, SOUND, Kind.MEMORY)], NODE) == grown
        assert said == []

    @pytest.mark.parametrize("answer", [2e9, 1e9, 0.0])
    def test_what_ran_out_and_did_not_grow_gets_the_largest_node(self, answer: float) -> None:
        categories, said = sized_by(always(Proposal({**SOUND, Kind.MEMORY: answer}, "")))
        for _ in range(3):
            proposal = categories.propose(task(), [ran_out(1, SOUND, Kind.MEMORY)], NODE)
            assert proposal is not None
            assert proposal.amounts == {**SOUND, Kind.MEMORY: 64e9}
        assert said == [
            (
                f"The strategy of category 'align' proposed {answer!r} for memory after an attempt "
                "with 2000000000.0 ran out of memory, so 64000000000.0 is used instead."
            )
        ]

    @pytest.mark.parametrize(
        "answer", [None, Proposal({}, ""), Proposal({Kind.MEMORY: math.nan}, "")], ids=repr
    )
    def test_nonsense_after_a_failure_becomes_the_largest_node_in_what_ran_out(
        self, answer: object
    ) -> None:
        categories, said = sized_by(always(answer))
        for _ in range(3):
            failures = [ran_out(1, SOUND, Kind.MEMORY)]
            proposal = categories.propose(task(memory=1e9), failures, NODE)
            assert proposal is not None
            assert proposal.amounts == {**SOUND, Kind.MEMORY: 64e9}
        assert len(said) == 1

    def test_what_did_not_run_out_never_shrinks(self) -> None:
        shrunk = Proposal({Kind.CORES: 1.0, Kind.MEMORY: 4e9, Kind.DISK: 1.0}, "")
        categories, said = sized_by(always(shrunk))
        proposal = categories.propose(task(), [ran_out(1, SOUND, Kind.MEMORY)], NODE)
        assert proposal is not None
        assert proposal.amounts == {**SOUND, Kind.MEMORY: 4e9}
        assert "proposed 1.0 for disk after an attempt with 1000000000.0" in said[0]

    def test_all_kinds_may_step_together(self) -> None:
        stepped = Proposal({kind: 2 * amount for kind, amount in SOUND.items()}, "")
        categories, said = sized_by(always(stepped))
        assert categories.propose(task(), [ran_out(1, SOUND, Kind.MEMORY)], NODE) == stepped
        assert said == []

    def test_there_is_nothing_larger_than_the_largest_node(self) -> None:
        categories, _ = sized_by(always(Proposal(ALL_OF_IT, "")))
        failures = [ran_out(1, {**SOUND, Kind.MEMORY: 64e9}, Kind.MEMORY)]
        assert categories.propose(task(), failures, NODE) is None
        assert categories.propose(task(), failures, NODE.updated({Kind.MEMORY: 32e9})) is None

    def test_one_kind_at_the_largest_node_is_enough_to_end_it(self) -> None:
        categories, _ = sized_by(always(Proposal(ALL_OF_IT, "")))
        failures = [ran_out(1, {**SOUND, Kind.DISK: 32e9}, Kind.MEMORY, Kind.DISK)]
        assert categories.propose(task(), failures, NODE) is None

    def test_a_larger_node_that_joined_is_used(self) -> None:
        categories, _ = sized_by(always(Proposal(ALL_OF_IT, "")))
        failures = [ran_out(1, ALL_OF_IT, Kind.MEMORY)]
        proposal = categories.propose(task(), failures, NODE.updated({Kind.MEMORY: 128e9}))
        assert proposal is not None
        assert proposal.amounts == {**ALL_OF_IT, Kind.MEMORY: 128e9}

    def test_a_kind_that_nobody_controlled_and_that_ran_out_is_controlled_from_then_on(
        self,
    ) -> None:
        categories, _ = sized_by(always(Proposal({Kind.MEMORY: 2e9}, "")))
        proposal = categories.propose(task(), [ran_out(1, {Kind.MEMORY: 2e9}, Kind.DISK)], NODE)
        assert proposal is not None
        assert proposal.amounts == {Kind.MEMORY: 2e9, Kind.DISK: 32e9}

    def test_a_strategy_that_creeps_is_cut_short(self) -> None:
        def creep(info: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
            held = failures[-1].attempt.allocation[Kind.MEMORY] if failures else 0.0
            return Proposal({**SOUND, Kind.MEMORY: held + 1.0}, "one more byte")

        assert attempts_of(creep, [{Kind.MEMORY}]) == MAX_ATTEMPTS

    def test_kinds_that_take_turns_are_cut_short(self) -> None:
        def creep(info: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
            number = float(len(failures))
            return Proposal({Kind.CORES: 1.0, Kind.MEMORY: number, Kind.DISK: number}, "")

        assert attempts_of(creep, [{Kind.MEMORY}, {Kind.DISK}]) == MAX_ATTEMPTS

    def test_there_is_an_end_even_if_what_runs_out_was_never_controlled(self) -> None:
        def creep(info: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
            return Proposal({Kind.MEMORY: float(len(failures))}, "")

        way = [{Kind.MEMORY}] * (MAX_ATTEMPTS - 1) + [{Kind.DISK}, {Kind.CORES}]
        assert attempts_of(creep, way) == MAX_ATTEMPTS

    def test_a_broken_strategy_needs_two_attempts_per_kind_at_most(self) -> None:
        assert attempts_of(raising(RuntimeError()), [{Kind.MEMORY}]) == 1
        broken_later = first_then(Proposal(SOUND, ""), None)
        assert attempts_of(broken_later, [{Kind.MEMORY}]) == 2
        assert attempts_of(broken_later, [{Kind.MEMORY}, {Kind.DISK}, {Kind.CORES}]) == 4


def attempts_of(propose: Propose, way: Sequence[set[Kind]]) -> int:
    """How many attempts a task gets that fails in this way over and over."""
    categories, _ = sized_by(propose)
    failures: list[Outcome] = []
    for kinds in itertools.cycle(way):
        proposal = categories.propose(task(), failures, NODE)
        if proposal is None:
            return len(failures)
        failures.append(ran_out(len(failures) + 1, proposal.amounts, *kinds))
    raise AssertionError("cycle never ends")
