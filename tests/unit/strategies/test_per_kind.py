from __future__ import annotations

from collections.abc import Sequence

import pytest

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.strategies import PerKind, Predictor

GB = 1e9
NODE = Resources(cores=16, memory=64 * GB, disk=64 * GB)
TASK = TaskInfo("one", "align")


class Scripted(Predictor):
    """Says what it was told to say, and writes down what it was told."""

    def __init__(self, first: float | None = None, next_: float | None = None) -> None:
        self.first = first
        self.next = next_
        self.failed: list[float] = []
        self.seen: list[tuple[float, float]] = []
        self.failures: list[tuple[float, float]] = []

    def predict(self, task: TaskInfo, largest: float) -> float | None:
        return self.first

    def grow(self, task: TaskInfo, failed: Sequence[float], largest: float) -> float | None:
        self.failed = list(failed)
        return self.next

    def observe(self, task: TaskInfo, peak: float, wall_s: float) -> None:
        self.seen.append((peak, wall_s))

    def observe_failure(self, task: TaskInfo, allocated: float, wall_s: float) -> None:
        self.failures.append((allocated, wall_s))


def ended(ending: Ending, allocation: dict[Kind, float], *ran_out: Kind, **peak: float) -> Outcome:
    usage = Usage({Kind(kind): amount for kind, amount in peak.items()}, wall_s=10.0)
    attempt = Attempt(TASK, 1, allocation)
    return Outcome(attempt, ending, usage=usage, exhausted=frozenset(ran_out))


def ran_out(allocation: dict[Kind, float], *kinds: Kind) -> Outcome:
    return ended(Ending.EXHAUSTED, allocation, *kinds)


def two(memory: Scripted, cores: Scripted, *, together: bool = False) -> PerKind:
    return PerKind({Kind.MEMORY: memory, Kind.CORES: cores}, together=together)


HELD = {Kind.MEMORY: 2 * GB, Kind.CORES: 1.0}


def test_every_kind_gets_what_its_own_predictor_says() -> None:
    strategy = two(Scripted(2 * GB), Scripted(4.0))
    proposal = strategy.propose(TASK, [], NODE)
    assert proposal.amounts == {Kind.MEMORY: 2 * GB, Kind.CORES: 4.0}
    assert str(proposal.why) == "memory 2 GB: Scripted; cores 4 cores: Scripted"


def test_one_predictor_is_made_for_every_kind() -> None:
    strategy = PerKind.of((Kind.MEMORY, Kind.DISK), lambda kind: Scripted(GB), together=True)
    assert set(strategy.propose(TASK, [], NODE).amounts) == {Kind.MEMORY, Kind.DISK}
    assert strategy.predictors[Kind.MEMORY] is not strategy.predictors[Kind.DISK]
    assert strategy.together


def test_nothing_above_the_node_is_proposed() -> None:
    strategy = two(Scripted(100 * GB, 200 * GB), Scripted(99.0))
    assert strategy.propose(TASK, [], NODE).amounts == {Kind.MEMORY: 64 * GB, Kind.CORES: 16}
    again = strategy.propose(TASK, [ran_out(HELD, Kind.MEMORY)], NODE)
    assert again.amounts == {Kind.MEMORY: 64 * GB, Kind.CORES: 1.0}


@pytest.mark.parametrize(
    ("requested", "expected", "why"),
    [
        ({}, 64 * GB, "nothing known yet"),
        ({Kind.MEMORY: 3 * GB}, 3 * GB, "the user's request"),
        ({Kind.MEMORY: 300 * GB}, 64 * GB, "the user's request"),
        ({Kind.DISK: 3 * GB}, 64 * GB, "nothing known yet"),
    ],
)
def test_before_the_predictor_knows_anything_the_request_is_taken_or_the_node(
    requested: dict[Kind, float], expected: float, why: str
) -> None:
    strategy = PerKind({Kind.MEMORY: Scripted()})
    proposal = strategy.propose(TaskInfo("two", "align", requested=requested), [], NODE)
    assert proposal.amounts == {Kind.MEMORY: expected}
    assert str(proposal.why).endswith(why)


def test_only_the_kind_that_ran_out_grows() -> None:
    memory, cores = Scripted(GB, 5 * GB), Scripted(2.0, 8.0)
    proposal = two(memory, cores).propose(TASK, [ran_out(HELD, Kind.MEMORY)], NODE)
    assert proposal.amounts == {Kind.MEMORY: 5 * GB, Kind.CORES: 1.0}
    assert str(proposal.why) == "memory 5 GB: 2 GB was too small; cores 1 core: as before"


def test_together_all_kinds_step_when_one_runs_out() -> None:
    strategy = two(Scripted(GB, 5 * GB), Scripted(2.0, 8.0), together=True)
    proposal = strategy.propose(TASK, [ran_out(HELD, Kind.MEMORY)], NODE)
    assert proposal.amounts == {Kind.MEMORY: 5 * GB, Kind.CORES: 8.0}


@pytest.mark.parametrize("together", [True, False])
def test_an_attempt_that_ran_out_of_nothing_is_repeated_as_it_was(together: bool) -> None:
    strategy = two(Scripted(GB, 5 * GB), Scripted(2.0, 8.0), together=together)
    lost = ended(Ending.LOST, HELD)
    assert strategy.propose(TASK, [lost], NODE).amounts == HELD


@pytest.mark.parametrize("following", [None, GB, 2 * GB])
def test_what_is_not_larger_becomes_the_largest_node(following: float | None) -> None:
    strategy = PerKind({Kind.MEMORY: Scripted(GB, following)})
    proposal = strategy.propose(TASK, [ran_out({Kind.MEMORY: 2 * GB}, Kind.MEMORY)], NODE)
    assert proposal.amounts == {Kind.MEMORY: 64 * GB}
    assert str(proposal.why) == "memory 64 GB: the largest node"


def test_a_predictor_hears_of_the_failures_of_its_own_kind() -> None:
    failures = [
        ran_out({Kind.MEMORY: 1 * GB, Kind.CORES: 1.0}, Kind.MEMORY),
        ran_out({Kind.MEMORY: 2 * GB, Kind.CORES: 1.0}, Kind.CORES),
        ran_out({Kind.MEMORY: 2 * GB, Kind.CORES: 2.0}, Kind.MEMORY),
    ]
    apart, together = Scripted(GB, 5 * GB), Scripted(GB, 5 * GB)
    two(apart, Scripted(1.0)).propose(TASK, failures, NODE)
    two(together, Scripted(1.0), together=True).propose(TASK, failures, NODE)
    assert apart.failed == [1 * GB, 2 * GB]
    assert together.failed == [1 * GB, 2 * GB, 2 * GB]


def test_a_kind_that_was_not_limited_is_taken_to_have_had_the_whole_node() -> None:
    strategy = two(Scripted(GB, 5 * GB), Scripted(1.0, 2.0))
    failure = ran_out({Kind.MEMORY: 2 * GB}, Kind.MEMORY)
    assert strategy.propose(TASK, [failure], NODE).amounts[Kind.CORES] == 16


def test_what_was_held_on_a_larger_node_is_cut_to_the_present_one() -> None:
    strategy = two(Scripted(GB, 5 * GB), Scripted(1.0, 2.0))
    failure = ran_out({Kind.MEMORY: 2 * GB, Kind.CORES: 64.0}, Kind.MEMORY)
    assert strategy.propose(TASK, [failure], NODE).amounts[Kind.CORES] == 16


def test_a_finished_task_teaches_every_kind_that_was_measured() -> None:
    memory, cores = Scripted(), Scripted()
    two(memory, cores).learn(ended(Ending.DONE, HELD, memory=1.5 * GB))
    assert memory.seen == [(1.5 * GB, 10.0)]
    assert cores.seen == []


def test_a_peak_of_nothing_is_a_peak() -> None:
    memory = Scripted()
    two(memory, Scripted()).learn(ended(Ending.DONE, HELD, memory=0.0))
    assert memory.seen == [(0.0, 10.0)]


def test_an_attempt_that_ran_out_teaches_the_kinds_that_ran_out() -> None:
    memory, cores = Scripted(), Scripted()
    strategy = two(memory, cores)
    strategy.learn(ended(Ending.EXHAUSTED, HELD, Kind.MEMORY, memory=2 * GB, cores=1.0))
    strategy.learn(ended(Ending.EXHAUSTED, {Kind.CORES: 1.0}, Kind.MEMORY, Kind.DISK))
    assert memory.failures == [(2 * GB, 10.0)]
    assert (memory.seen, cores.seen, cores.failures) == ([], [], [])


@pytest.mark.parametrize("ending", [Ending.RAISED, Ending.LOST])
def test_what_did_not_finish_for_other_reasons_teaches_nothing(ending: Ending) -> None:
    memory = Scripted()
    two(memory, Scripted()).learn(ended(ending, HELD, Kind.MEMORY, memory=GB))
    assert (memory.seen, memory.failures) == ([], [])
