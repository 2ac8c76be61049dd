"""The decision loop: what becomes of a task, ending by ending and node by node."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from parsl_sizer.model import (
    Amounts,
    Attempt,
    Ending,
    Kind,
    Node,
    OptOut,
    Outcome,
    Resources,
    TaskInfo,
    Usage,
)
from parsl_sizer.placement import Gate, Lines, Policy, Queue
from parsl_sizer.placement.policy import Fair
from parsl_sizer.sizing import (
    Action,
    Categories,
    Consult,
    Consulted,
    Ended,
    Event,
    Joined,
    Launch,
    Left,
    Load,
    Loaded,
    Settle,
    Sizer,
    Started,
    Submitted,
    Tick,
    Withdrawn,
)
from parsl_sizer.sizing.categories import MAX_ATTEMPTS
from parsl_sizer.sizing.past import HOLDS_UP_S
from parsl_sizer.sizing.sizer import WINDOW
from parsl_sizer.strategies import Proposal

GB = 1e9
MEMORY, CORES, DISK = Kind.MEMORY, Kind.CORES, Kind.DISK
NODE = Resources(cores=4, memory=16 * GB, disk=100 * GB)

Size = Callable[[TaskInfo], Amounts]


def one_gb(task: TaskInfo) -> Amounts:
    return {MEMORY: GB}


@dataclass
class Doubling:
    """Starts as it is told, doubles what ran out, and writes down what it learns."""

    size: Size
    growth: float = 2.0
    learned: list[Outcome] = field(default_factory=list)
    shown: list[tuple[Outcome, ...]] = field(default_factory=list)

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        if not failures:
            return Proposal(self.size(task), "as told")
        self.shown.append(tuple(failures))
        last = failures[-1]
        held = last.attempt.allocation
        return Proposal(
            {
                k: min(largest[k], a * self.growth if k in last.exhausted else a)
                for k, a in held.items()
            },
            "doubled",
        )

    def learn(self, outcome: Outcome) -> None:
        self.learned.append(outcome)


class Driver:
    """Feeds a sizer and keeps what it wants done."""

    def __init__(
        self,
        size: Size = one_gb,
        *nodes: Resources,
        lost_retries: int = 2,
        window: int = WINDOW,
        patience: int = 100,
        queue: Queue | None = None,
        gate: Gate | None = None,
        loads: bool = False,
        policy: Policy | None = None,
        consults: bool = False,
    ) -> None:
        self.strategy = Doubling(size)
        self.warnings: list[str] = []
        categories = Categories(lambda category: self.strategy, warn=self.warnings.append)
        self.sizer = Sizer(
            categories,
            queue=queue,
            policy=policy,
            gate=gate,
            loads=loads,
            lost_retries=lost_retries,
            window=window,
            patience=patience,
            consults=consults,
            warn=self.warnings.append,
        )
        self.asked: list[Consult] = []
        self.loads: list[TaskInfo] = []
        self.settled: list[Settle] = []
        self.running: dict[int | str, Attempt] = {}
        self.now, self.pause_s = 0.0, 1.0
        for number, capacity in enumerate(nodes):
            self.post(Joined(Node(f"n{number}", capacity)))

    def post(self, event: Event) -> list[Action]:
        self.now += self.pause_s
        actions = self.sizer.handle(event, self.now)
        for action in actions:
            if isinstance(action, Launch):
                self.running[action.attempt.task.task_id] = action.attempt
            elif isinstance(action, Consult):
                self.asked.append(action)
            elif isinstance(action, Load):
                self.loads.append(action.task)
            else:
                self.settled.append(action)
        return actions

    def submit(self, *tasks: int | str, category: str = "align", **requested: float) -> None:
        wanted = {Kind(kind): amount for kind, amount in requested.items()}
        for task in tasks:
            self.post(Submitted(TaskInfo(task, category, requested=wanted)))

    def end(
        self,
        task: int | str,
        ending: Ending = Ending.DONE,
        *exhausted: Kind,
        usage: Usage | None = None,
    ) -> Outcome:
        usage = usage or Usage({MEMORY: GB / 2}, wall_s=1.0)
        attempt = self.running.pop(task)
        outcome = Outcome(attempt, ending, self.now, usage, frozenset(exhausted))
        self.post(Ended(outcome))
        return outcome

    @property
    def endings(self) -> dict[int | str, Ending]:
        return {settle.task.task_id: settle.ending for settle in self.settled}


class TestEndings:
    def test_a_task_that_is_done_is_learned_from_and_settled(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        assert driver.running["t"].node == "n0"
        assert driver.running["t"].launched_at == driver.now
        assert driver.running["t"].why == "as told"
        outcome = driver.end("t")
        assert driver.settled == [Settle(outcome.attempt.task, Ending.DONE, (outcome,))]
        assert driver.strategy.learned == [outcome]

    def test_a_task_that_raised_is_settled_at_once_and_teaches_nothing(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        outcome = driver.end("t", Ending.RAISED)
        assert driver.settled == [Settle(outcome.attempt.task, Ending.RAISED, (outcome,))]
        assert driver.strategy.learned == []

    def test_a_task_that_nobody_wants_is_forgotten_and_leaves_its_room(self) -> None:
        driver = Driver(lambda task: {MEMORY: 16 * GB}, NODE)
        driver.submit("t", "next")
        withdrawn = Withdrawn("t")
        [action] = driver.post(withdrawn)
        assert isinstance(action, Launch)
        assert action.attempt.task.task_id == "next"
        assert driver.post(withdrawn) == []
        assert (driver.settled, driver.strategy.learned, len(driver.sizer)) == ([], [], 1)

    def test_a_task_that_waits_and_that_nobody_wants_is_passed_over(self) -> None:
        driver = Driver(lambda task: {MEMORY: 16 * GB}, NODE)
        driver.submit("t", "unwanted", "next")
        assert driver.post(Withdrawn("unwanted")) == []
        driver.end("t")
        assert list(driver.running) == ["next"]
        assert len(driver.sizer) == 1

    def test_a_task_that_nobody_wants_needs_no_node_while_none_is_there(self) -> None:
        driver = Driver(lambda task: {MEMORY: 16 * GB}, NODE)
        driver.submit("runs", "lost", "u")
        driver.post(Left("n0"))
        driver.end("runs", Ending.LOST)
        driver.submit(*range(100))
        assert driver.sizer.demand() == 103
        for task in ("lost", "runs", *range(1, 100)):
            driver.post(Withdrawn(task))
        assert driver.sizer.demand() == 2
        driver.post(Joined(Node("n1", NODE)))
        driver.end("u")
        driver.end(0)
        assert driver.endings == {"u": Ending.DONE, 0: Ending.DONE}
        assert len(driver.sizer) == driver.sizer.demand() == 0

    def test_an_exhausted_task_gets_more_of_what_ran_out_and_of_nothing_else(self) -> None:
        driver = Driver(lambda task: {CORES: 1.0, MEMORY: GB}, NODE)
        driver.submit("t")
        outcome = driver.end("t", Ending.EXHAUSTED, MEMORY)
        assert driver.strategy.learned == [outcome]
        assert driver.running["t"].allocation == {CORES: 1.0, MEMORY: 2 * GB}
        assert driver.running["t"].number == 2
        assert driver.settled == []

    def test_a_task_exhausted_on_the_largest_node_is_settled_with_every_attempt(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        outcomes = [driver.end("t", Ending.EXHAUSTED, MEMORY) for _ in range(5)]
        assert [o.attempt.allocation[MEMORY] / GB for o in outcomes] == [1, 2, 4, 8, 16]
        [settle] = driver.settled
        assert settle.ending is Ending.EXHAUSTED
        assert settle.outcomes == tuple(outcomes)

    def test_a_strategy_that_hardly_grows_ends_on_the_largest_node(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.strategy.propose = lambda task, failures, largest: Proposal(  # type: ignore[method-assign]
            {MEMORY: GB + len(failures)}, "a little more"
        )
        driver.submit("t")
        while not driver.settled:
            last = driver.end("t", Ending.EXHAUSTED, MEMORY)
        assert last.attempt.number == MAX_ATTEMPTS
        assert last.attempt.allocation[MEMORY] == NODE.memory

    def test_running_out_of_what_nobody_sizes_is_final(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t", "u")
        outcome = driver.end("t", Ending.EXHAUSTED, DISK)
        driver.end("u", Ending.EXHAUSTED)
        assert driver.endings == {"t": Ending.EXHAUSTED, "u": Ending.EXHAUSTED}
        assert driver.settled[0].outcomes == (outcome,)

    def test_a_kind_that_nobody_sizes_is_not_shown_to_the_strategy(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        driver.end("t", Ending.EXHAUSTED, MEMORY, DISK)
        assert driver.running["t"].allocation == {MEMORY: 2 * GB}
        assert driver.strategy.learned[0].exhausted == {MEMORY}


class TestLosses:
    def test_the_first_loss_is_retried_as_it_was_and_teaches_nothing(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        driver.strategy.size = lambda task: {MEMORY: 5 * GB}
        driver.end("t", Ending.LOST)
        assert driver.running["t"].allocation == {MEMORY: GB}
        assert driver.running["t"].number == 2
        assert driver.strategy.learned == []

    def test_the_second_loss_is_retried_with_more_memory_and_teaches_nothing(self) -> None:
        driver = Driver(lambda task: {CORES: 1.0, MEMORY: GB}, NODE)
        driver.submit("t")
        driver.end("t", Ending.LOST)
        driver.end("t", Ending.LOST)
        assert driver.running["t"].allocation == {CORES: 1.0, MEMORY: 2 * GB}
        assert driver.strategy.learned == []

    def test_the_third_loss_is_final(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        outcomes = tuple(driver.end("t", Ending.LOST) for _ in range(3))
        [settle] = driver.settled
        assert settle.ending is Ending.LOST
        assert settle.outcomes == outcomes
        assert all(outcome.ending is Ending.LOST for outcome in settle.outcomes)

    def test_it_grows_only_once(self) -> None:
        driver = Driver(one_gb, NODE, lost_retries=4)
        driver.submit("t")
        held = [driver.end("t", Ending.LOST).attempt.allocation[MEMORY] for _ in range(5)]
        assert [amount / GB for amount in held] == [1, 1, 2, 2, 2]
        assert driver.endings == {"t": Ending.LOST}

    def test_without_retries_the_first_loss_is_final(self) -> None:
        driver = Driver(one_gb, NODE, lost_retries=0)
        driver.submit("t")
        driver.end("t", Ending.LOST)
        assert driver.endings == {"t": Ending.LOST}

    def test_on_the_largest_node_or_without_a_size_the_second_is_as_the_first(self) -> None:
        for size in ({MEMORY: 16 * GB}, {CORES: 1.0}):
            driver = Driver(lambda task, size=size: size, NODE)
            driver.submit("t")
            driver.end("t", Ending.LOST)
            driver.end("t", Ending.LOST)
            assert driver.running["t"].allocation == size
            assert driver.strategy.shown == []

    def test_exhaustion_after_losses_goes_on_from_the_last_size(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        for ending in (Ending.LOST, Ending.LOST):
            driver.end("t", ending)
        driver.end("t", Ending.EXHAUSTED, MEMORY)
        assert driver.running["t"].allocation == {MEMORY: 4 * GB}
        assert [o.ending for o in driver.strategy.shown[-1]] == [Ending.EXHAUSTED] * 2

    def test_a_suspicion_is_no_proof_of_the_need_for_a_larger_node(self) -> None:
        driver = Driver(lambda task: {MEMORY: 16 * GB, DISK: GB}, NODE)
        driver.post(Joined(Node("large", Resources(memory=64 * GB, disk=GB))))
        driver.submit("t")
        driver.end("t", Ending.LOST)
        driver.end("t", Ending.LOST)
        assert driver.running["t"].node == "large"
        driver.post(Left("large"))
        driver.end("t", Ending.EXHAUSTED, DISK)
        assert driver.running["t"].allocation == {MEMORY: 16 * GB, DISK: 2 * GB}

    def test_a_suspicion_is_forgotten_where_no_node_has_more(self) -> None:
        driver = Driver(lambda task: {MEMORY: 16 * GB}, NODE)
        driver.post(Joined(Node("large", Resources(memory=40 * GB))))
        driver.submit("t", "u")
        for task in ("u", "t"):  # both wait for the large node, on which one of them runs
            driver.end(task, Ending.LOST)
            driver.end(task, Ending.LOST)
        driver.post(Left("large"))
        assert driver.endings == {}
        assert {a.allocation[MEMORY] for a in driver.running.values()} == {32 * GB, 16 * GB}

    def test_a_lost_task_moves_to_a_larger_node_even_if_that_has_less_of_the_rest(self) -> None:
        driver = Driver(lambda task: {MEMORY: 16 * GB, DISK: 50 * GB}, NODE)
        driver.post(Joined(Node("large", Resources(memory=64 * GB, disk=GB))))
        driver.submit("t", disk=50 * GB)
        driver.end("t", Ending.LOST)
        driver.end("t", Ending.LOST)
        assert driver.running["t"].allocation == {MEMORY: 32 * GB, DISK: GB}

    def test_negative_retries_are_refused(self) -> None:
        with pytest.raises(ValueError, match="lost_retries must be 0 or more, not -1"):
            Driver(lost_retries=-1)


class TestWhatComesTwiceOrLate:
    def test_an_end_reported_twice_counts_once(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        outcome = driver.end("t")
        assert driver.post(Ended(outcome)) == []
        assert len(driver.settled) == len(driver.strategy.learned) == 1

    def test_the_end_of_an_earlier_attempt_does_not_end_the_present_one(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        outcome = driver.end("t", Ending.EXHAUSTED, MEMORY)
        assert driver.post(Ended(outcome._replace(ending=Ending.DONE))) == []
        assert driver.settled == []
        driver.end("t")
        assert driver.endings == {"t": Ending.DONE}

    def test_the_end_of_an_attempt_that_waits_again_is_ignored(self) -> None:
        driver = Driver(lambda task: {MEMORY: 9 * GB}, NODE)
        driver.submit("t")
        driver.post(Left("n0"))
        outcome = driver.end("t", Ending.LOST)
        assert "t" not in driver.running
        assert driver.post(Ended(outcome)) == []
        driver.post(Joined(Node("n0", NODE)))
        assert driver.running["t"].number == 2

    def test_what_was_never_launched_cannot_start_or_end(self) -> None:
        driver = Driver(one_gb, NODE)
        stranger = Attempt(TaskInfo("stranger", "align"), 1, {MEMORY: GB}, "n0")
        assert driver.post(Ended(Outcome(stranger, Ending.DONE))) == []
        assert driver.post(Started(stranger, "n0")) == []
        assert driver.strategy.learned == []

    def test_a_task_submitted_twice_runs_once(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t", "t")
        driver.end("t")
        assert len(driver.settled) == 1
        assert driver.post(Tick()) == []


class TestRoom:
    def test_what_finds_no_room_waits_and_starts_in_order(self) -> None:
        driver = Driver(lambda task: {MEMORY: 8 * GB}, NODE)
        driver.submit(*range(4))
        assert list(driver.running) == [0, 1]
        driver.end(1)
        assert list(driver.running) == [0, 2]
        driver.end(0)
        assert list(driver.running) == [2, 3]

    def test_tasks_wait_for_the_first_node_and_are_sized_by_it(self) -> None:
        driver = Driver(lambda task: {MEMORY: 99 * GB})
        driver.submit("t")
        assert driver.post(Tick()) == []
        driver.post(Joined(Node("n0", NODE)))
        assert driver.running["t"].allocation == {MEMORY: NODE.memory}

    def test_a_small_task_goes_past_a_large_one_that_has_no_room(self) -> None:
        driver = Driver(lambda task: {MEMORY: 16 * GB if task.task_id == "large" else GB}, NODE)
        driver.submit("small", "large", "other")
        assert set(driver.running) == {"small", "other"}

    def test_a_large_task_does_not_starve_behind_small_ones(self) -> None:
        driver = Driver(
            lambda task: {MEMORY: 16 * GB if task.category == "large" else 4 * GB}, NODE
        )
        driver.submit(*range(4), category="small")
        driver.submit(1000, category="large")
        driver.submit(*range(4, 8), category="small")
        for number in range(8, 130):
            if 1000 in driver.running:
                break
            driver.submit(number, category="small")
            driver.end(min(driver.running))
        assert 1000 in driver.running
        assert 100 <= number < 120

    def test_a_node_that_is_kept_no_longer_is_room_for_whoever_was_refused_it(self) -> None:
        sizes = {"f": 8, "g": 8, "first": 8, "old": 4, "large": 12}
        driver = Driver(
            lambda task: {MEMORY: sizes[str(task.task_id)] * GB},
            NODE,
            patience=1,
            queue=Lines(depth=1),
        )
        driver.submit("f", "g", "first", "old")
        driver.submit("large", category="large")
        driver.end("f")  # `first` starts, `old` is seen, a node is kept for `large`
        driver.end("g")
        assert list(driver.running) == ["first"]
        driver.end("first")
        assert list(driver.running) == ["large", "old"]

    def test_a_node_is_not_kept_for_a_task_that_others_come_before(self) -> None:
        driver = Driver(
            lambda task: {MEMORY: (12 if task.priority < 0 else 8) * GB},
            NODE,
            window=1,
            patience=0,
        )
        driver.submit("f")
        driver.post(Submitted(TaskInfo("large", "large", priority=-1)))  # the node is kept for it
        driver.submit("g", "h")
        driver.end("f")
        assert set(driver.running) == {"g", "h"}

    def test_a_node_is_not_kept_for_a_task_that_is_withdrawn(self) -> None:
        driver = Driver(
            lambda task: {MEMORY: (12 if task.category == "large" else 8) * GB}, NODE, patience=0
        )
        driver.submit("f")
        driver.submit("large", category="large")
        driver.submit("g")
        assert list(driver.running) == ["f"]
        driver.post(Withdrawn("large"))
        assert list(driver.running) == ["f", "g"]

    def test_with_a_window_of_one_nobody_is_gone_past(self) -> None:
        driver = Driver(lambda task: {MEMORY: int(task.category) * GB}, NODE, window=1)
        driver.submit("f", category="10")
        driver.submit("large", category="12")
        driver.submit("small", category="1")
        assert list(driver.running) == ["f"]
        driver.end("f")
        assert list(driver.running) == ["large", "small"]

    def test_a_waiting_task_profits_from_what_is_learned_meanwhile(self) -> None:
        driver = Driver(lambda task: {MEMORY: 16 * GB}, NODE)
        driver.submit("t", "u", "v")
        assert list(driver.running) == ["t"]
        driver.strategy.size = one_gb
        driver.end("t")
        assert [a.allocation for a in driver.running.values()] == [{MEMORY: GB}] * 2

    def test_those_far_behind_are_not_sized_before_they_are_looked_at(self) -> None:
        sized: list[int | str] = []

        def whole(task: TaskInfo) -> Amounts:
            sized.append(task.task_id)
            return {MEMORY: 16 * GB}

        driver = Driver(whole, NODE, queue=Lines(depth=2))
        driver.submit(*range(1000))
        assert sized == [0, 1, 2]
        driver.end(0)
        assert list(driver.running) == [1]
        assert len(sized) < 10

    def test_however_many_priorities_there_are_few_are_sized_and_asked_about(self) -> None:
        sized: list[int | str] = []

        def whole(task: TaskInfo) -> Amounts:
            sized.append(task.task_id)
            return {MEMORY: 16 * GB}

        driver = Driver(whole, NODE, queue=Lines(depth=2))
        driver.submit("first")
        for number in range(1000):
            driver.post(Submitted(TaskInfo(number, "align", priority=-number)))
        assert driver.sizer.demand() == 1001
        driver.end("first")
        driver.post(Joined(Node("large", Resources(memory=64 * GB))))
        assert len(list(driver.sizer.needs())) == 1 + len(driver.running)
        assert len(sized) < 20

    def test_a_waiting_task_is_sized_by_the_larger_node_that_joins(self) -> None:
        driver = Driver(lambda task: {MEMORY: 64 * GB}, NODE)
        driver.submit("t", "u")
        assert driver.running["t"].allocation == {MEMORY: 16 * GB}
        driver.post(Joined(Node("large", Resources(memory=64 * GB))))
        assert driver.running["u"].allocation == {MEMORY: 64 * GB}

    def test_what_is_to_run_again_as_it_was_is_not_sized_anew(self) -> None:
        driver = Driver(lambda task: {MEMORY: 9 * GB}, NODE)
        driver.submit("t")
        driver.post(Left("n0"))
        driver.end("t", Ending.LOST)
        driver.strategy.size = one_gb
        driver.post(Joined(Node("n0", NODE)))
        assert driver.running["t"].allocation == {MEMORY: 9 * GB}

    def test_a_waiting_retry_profits_from_what_is_learned_meanwhile(self) -> None:
        driver = Driver(lambda task: {MEMORY: (8 if task.task_id == "t" else 5) * GB}, NODE)
        driver.submit("t", "u")
        driver.end("t", Ending.EXHAUSTED, MEMORY)  # now it asks for twice as much, and waits
        assert list(driver.running) == ["u"]
        driver.strategy.growth = 1.25
        driver.submit("v")
        driver.end("v")
        assert driver.running["t"].allocation == {MEMORY: 10 * GB}

    def test_a_retry_comes_before_those_that_were_submitted_later(self) -> None:
        driver = Driver(lambda task: {MEMORY: 9 * GB}, NODE)
        driver.submit("t", "u")
        driver.end("t", Ending.LOST)
        assert list(driver.running) == ["t"]

    def test_an_attempt_that_started_elsewhere_takes_its_room_along(self) -> None:
        driver = Driver(lambda task: {MEMORY: 12 * GB}, NODE, NODE)
        driver.submit("t")
        meant = driver.running["t"].node
        other = "n1" if meant == "n0" else "n0"
        driver.post(Started(driver.running["t"], other))
        driver.submit("u", "v")
        assert driver.running["u"].node == meant
        assert "v" not in driver.running

    def test_room_that_turns_out_to_be_free_is_used_at_once(self) -> None:
        sizes = {"t": 10 * GB, "u": 16 * GB}
        driver = Driver(lambda task: {MEMORY: sizes[str(task.task_id)]}, NODE)
        driver.submit("t")
        driver.post(Joined(Node("small", Resources(memory=12 * GB))))
        driver.submit("u")
        assert "u" not in driver.running
        driver.post(Started(driver.running["t"], "small"))
        assert driver.running["u"].node == "n0"


class TestWaitingInTheEngine:
    """Small tasks may wait in an engine with slots, so that it never has nothing to do."""

    @pytest.mark.parametrize(("wall_s", "most"), [(10.0, 4), (0.2, 8), (0.001, 4 * 33)])
    def test_the_shorter_tasks_are_the_more_wait_there(self, wall_s: float, most: int) -> None:
        driver = Driver(one_gb)
        driver.post(Joined(Node("n0", NODE, slots=4)))
        driver.submit(*range(400))
        assert len(driver.running) == 4  # nothing is known yet
        for _ in range(100):
            driver.end(next(iter(driver.running)), usage=Usage({MEMORY: GB / 2}, wall_s=wall_s))
        assert len(driver.running) == most


class TestNodes:
    def test_a_node_that_left_gets_nothing_more_and_its_attempts_are_yet_to_end(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        assert driver.post(Left("n0")) == []
        driver.submit("u")
        assert "u" not in driver.running
        driver.end("t", Ending.LOST)
        assert driver.settled == []
        driver.post(Joined(Node("n1", NODE)))
        assert {task: a.node for task, a in driver.running.items()} == {"t": "n1", "u": "n1"}

    def test_a_task_that_ran_out_on_one_node_moves_to_one_with_more_of_that(self) -> None:
        wide, deep = Resources(cores=64, memory=64 * GB), Resources(cores=8, memory=512 * GB)
        driver = Driver(lambda task: {CORES: 32.0, MEMORY: 64 * GB}, wide, deep)
        driver.submit("t", cores=32)
        assert driver.running["t"].allocation == {CORES: 32.0, MEMORY: 64 * GB}
        driver.end("t", Ending.EXHAUSTED, MEMORY)
        assert driver.running["t"].node == "n1"
        assert driver.running["t"].allocation == {CORES: 8.0, MEMORY: 128 * GB}

    def test_it_moves_to_the_node_that_has_what_it_holds_of_the_rest(self) -> None:
        shapes = [(64, 64), (8, 512), (32, 256)]
        nodes = [Resources(cores=cores, memory=memory * GB) for cores, memory in shapes]
        driver = Driver(lambda task: {CORES: 32.0, MEMORY: 64 * GB}, *nodes)
        driver.submit("t", cores=32)
        driver.end("t", Ending.EXHAUSTED, MEMORY)
        driver.end("t", Ending.EXHAUSTED, MEMORY)
        assert driver.running["t"].allocation == {CORES: 32.0, MEMORY: 256 * GB}
        driver.end("t", Ending.EXHAUSTED, MEMORY)
        assert driver.running["t"].allocation == {CORES: 8.0, MEMORY: 512 * GB}

    def test_a_task_that_no_single_node_can_hold_does_not_go_to_and_fro(self) -> None:
        wide, deep = Resources(cores=64, memory=64 * GB), Resources(cores=8, memory=512 * GB)
        driver = Driver(lambda task: {CORES: 8.0, MEMORY: 64 * GB}, wide, deep)
        driver.submit("t")
        driver.end("t", Ending.EXHAUSTED, MEMORY)
        driver.end("t", Ending.EXHAUSTED, CORES)
        assert driver.endings == {"t": Ending.EXHAUSTED}

    def test_a_waiting_task_is_cut_down_to_the_nodes_that_are_left(self) -> None:
        driver = Driver(lambda task: {MEMORY: 64 * GB}, NODE, Resources(memory=64 * GB))
        driver.submit("t")
        driver.post(Left("n1"))
        driver.end("t", Ending.LOST)
        assert driver.running["t"].allocation == {MEMORY: NODE.memory}

    def test_a_waiting_task_that_needs_more_than_the_nodes_left_is_settled(self) -> None:
        driver = Driver(lambda task: {MEMORY: 16 * GB}, NODE, Resources(memory=32 * GB))
        driver.submit("t", "u", "v")
        outcome = driver.end("t", Ending.EXHAUSTED, MEMORY)
        driver.post(Left("n1"))
        assert driver.endings == {"t": Ending.EXHAUSTED}
        assert driver.settled[0].outcomes == (outcome,)

    def test_while_all_nodes_are_away_a_task_waits_for_the_like_of_them(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        driver.post(Left("n0"))
        driver.end("t", Ending.EXHAUSTED, MEMORY)
        assert driver.settled == []
        driver.post(Joined(Node("n1", NODE)))
        assert driver.running["t"].allocation == {MEMORY: 2 * GB}


@pytest.mark.parametrize(
    ("stated", "held", "why"),
    [
        (8 * GB, 8 * GB, "fixed by the user"),
        (64 * GB, 16 * GB, "fixed by the user at 64 GB of memory, which no node has"),
    ],
)
def test_what_is_fixed_above_all_nodes_is_said_to_be(stated: float, held: float, why: str) -> None:
    driver = Driver(one_gb, NODE)
    fixed = frozenset({OptOut.FIXED})
    driver.post(Submitted(TaskInfo("t", "align", requested={MEMORY: stated}, opt_outs=fixed)))
    attempt = driver.running["t"]
    assert (attempt.allocation, attempt.why) == ({MEMORY: held}, why)


class TestAskingTheUser:
    """Of a task that ran out it is asked whether others are to do its work."""

    def asked(self, task: str = "t", *, opt_outs: frozenset[OptOut] = frozenset()) -> Driver:
        driver = Driver(one_gb, NODE, consults=True)
        requested = {MEMORY: GB} if OptOut.FIXED in opt_outs else {}
        info = TaskInfo(task, "align", requested=requested, opt_outs=opt_outs)
        driver.post(Submitted(info))
        driver.end(task, Ending.EXHAUSTED, MEMORY)
        return driver

    def test_a_task_that_ran_out_waits_until_the_user_has_answered(self) -> None:
        driver = self.asked()
        [consult] = driver.asked
        assert consult.task.task_id == "t"
        assert consult.larger == {MEMORY: 2 * GB}
        assert [outcome.ending for outcome in consult.outcomes] == [Ending.EXHAUSTED]
        assert len(driver.strategy.learned) == 1
        assert driver.post(Tick()) == []
        assert not driver.running
        assert not driver.settled
        assert len(driver.sizer) == 1

    def test_its_room_is_for_others_meanwhile(self) -> None:
        driver = Driver(lambda task: {MEMORY: 10 * GB}, NODE, consults=True)
        driver.submit("t", "u")
        assert list(driver.running) == ["t"]
        driver.end("t", Ending.EXHAUSTED, MEMORY)
        assert list(driver.running) == ["u"]

    def test_left_to_us_it_is_tried_with_more(self) -> None:
        driver = self.asked()
        [launch] = driver.post(Consulted("t", is_split=False))
        assert isinstance(launch, Launch)
        assert launch.attempt.number == 2
        assert launch.attempt.allocation == {MEMORY: 2 * GB}
        driver.end("t")
        assert driver.endings == {"t": Ending.DONE}

    def test_it_is_asked_about_after_each_attempt_and_at_last_no_node_has_more(self) -> None:
        driver = self.asked()
        while driver.asked[-1].larger is not None:
            driver.post(Consulted("t", is_split=False))
            driver.end("t", Ending.EXHAUSTED, MEMORY)
        sizes = [c.larger[MEMORY] / GB for c in driver.asked if c.larger]
        assert sizes == [2, 4, 8, 16]
        assert not driver.settled
        driver.post(Consulted("t", is_split=False))
        assert driver.endings == {"t": Ending.EXHAUSTED}
        [settle] = driver.settled
        assert len(settle.outcomes) == 5
        assert not settle.is_split

    def test_one_that_is_split_is_settled_and_not_tried_again(self) -> None:
        driver = self.asked()
        [settle] = driver.post(Consulted("t", is_split=True))
        assert isinstance(settle, Settle)
        assert settle.is_split
        assert settle.ending is Ending.EXHAUSTED
        assert len(settle.outcomes) == 1
        assert len(driver.sizer) == 0
        assert driver.post(Tick()) == []

    @pytest.mark.parametrize("is_split", [True, False])
    def test_an_answer_that_comes_twice_or_late_changes_nothing(self, is_split: bool) -> None:
        driver = self.asked()
        driver.post(Consulted("t", is_split=is_split))
        for again in (True, False):
            assert driver.post(Consulted("t", is_split=again)) == []
        if not is_split:
            driver.end("t")
            assert driver.post(Consulted("t", is_split=True)) == []
        assert len(driver.settled) == 1

    def test_an_answer_that_nobody_asked_for_changes_nothing(self) -> None:
        driver = Driver(one_gb, NODE, consults=True)
        assert driver.post(Consulted("stranger", is_split=True)) == []
        driver.submit("t")
        assert driver.post(Consulted("t", is_split=True)) == []
        driver.end("t")
        assert driver.endings == {"t": Ending.DONE}
        assert driver.asked == []

    @pytest.mark.parametrize("ending", [Ending.DONE, Ending.RAISED, Ending.LOST])
    def test_only_of_tasks_that_ran_out(self, ending: Ending) -> None:
        driver = Driver(one_gb, NODE, consults=True)
        driver.submit("t")
        driver.end("t", ending)
        assert driver.asked == []

    def test_a_task_that_is_not_to_be_retried_is_not_asked_about(self) -> None:
        driver = self.asked(opt_outs=frozenset({OptOut.NO_RETRY}))
        assert driver.asked == []
        assert driver.endings == {"t": Ending.EXHAUSTED}

    def test_a_task_of_fixed_size_can_be_split_and_does_not_grow(self) -> None:
        driver = self.asked(opt_outs=frozenset({OptOut.FIXED}))
        assert [consult.larger for consult in driver.asked] == [None]
        driver.post(Consulted("t", is_split=False))
        assert driver.endings == {"t": Ending.EXHAUSTED}

    def test_what_ran_out_of_something_that_is_not_sized_can_be_split(self) -> None:
        driver = Driver(one_gb, NODE, consults=True)
        driver.submit("t")
        driver.end("t", Ending.EXHAUSTED, DISK)
        assert [consult.larger for consult in driver.asked] == [None]
        driver.post(Consulted("t", is_split=False))
        assert driver.endings == {"t": Ending.EXHAUSTED}

    def test_a_larger_node_that_comes_meanwhile_is_tried(self) -> None:
        driver = Driver(lambda task: {MEMORY: 16 * GB}, NODE, consults=True)
        driver.submit("t")
        driver.end("t", Ending.EXHAUSTED, MEMORY)
        assert [consult.larger for consult in driver.asked] == [None]
        driver.post(Joined(Node("large", NODE.updated({MEMORY: 32 * GB}))))
        driver.post(Consulted("t", is_split=False))
        assert driver.running["t"].node == "large"
        assert driver.running["t"].allocation == {MEMORY: 32 * GB}

    def test_a_node_that_leaves_meanwhile_is_waited_for_or_done_without(self) -> None:
        driver = self.asked()
        driver.post(Left("n0"))
        assert driver.post(Consulted("t", is_split=False)) == []
        driver.post(Joined(Node("n1", NODE.updated({MEMORY: 1.5 * GB}))))
        assert driver.running["t"].node == "n1"
        assert GB < driver.running["t"].allocation[MEMORY] <= 1.5 * GB


class TestUsageThatCannotBe:
    @pytest.mark.parametrize(
        "usage",
        [
            Usage({MEMORY: math.nan}),
            Usage({MEMORY: -1.0}),
            Usage({MEMORY: math.inf}),
            Usage({MEMORY: 17 * GB}),
            Usage({MEMORY: 10**400}),
            Usage({CORES: 10**400, DISK: math.nan}),
            Usage({MEMORY: "lots"}),  # type: ignore[dict-item]
            Usage({MEMORY: GB}, wall_s=-1.0),
            Usage({MEMORY: GB}, wall_s=math.nan),
        ],
    )
    def test_is_not_learned_and_said_once(self, usage: Usage) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t", "u")
        driver.end("t", usage=usage)
        driver.end("u", usage=usage)
        assert driver.endings == {"t": Ending.DONE, "u": Ending.DONE}
        assert driver.strategy.learned == []
        [warning] = driver.warnings
        assert "'align'" in warning

    def test_does_not_keep_an_exhausted_task_from_growing(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        driver.end("t", Ending.EXHAUSTED, MEMORY, usage=Usage({MEMORY: math.nan}))
        assert driver.running["t"].allocation == {MEMORY: 2 * GB}
        assert driver.strategy.learned == []

    def test_is_not_an_overrun_nor_a_peak_of_what_nobody_sizes(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.submit("t")
        driver.end("t", usage=Usage({MEMORY: 3 * GB, CORES: 5.0}))
        assert len(driver.strategy.learned) == 1


def test_the_strategy_that_cannot_do_anything_still_lets_tasks_run() -> None:
    def broken(category: str) -> Doubling:
        raise RuntimeError("no strategy today")

    warnings: list[str] = []
    sizer = Sizer(Categories(broken, warn=warnings.append))
    sizer.handle(Joined(Node("n0", NODE)), 0.0)
    [launch] = sizer.handle(Submitted(TaskInfo("t", "align")), 1.0)
    assert isinstance(launch, Launch)
    [settle] = sizer.handle(Ended(Outcome(launch.attempt, Ending.DONE)), 2.0)
    assert isinstance(settle, Settle)
    assert settle.ending is Ending.DONE
    assert warnings


def earlier(usage: Usage | None = None) -> Outcome:
    attempt = Attempt(TaskInfo("earlier", "align"), 1, {MEMORY: GB})
    return Outcome(attempt, Ending.DONE, usage=usage or Usage({MEMORY: GB}, 1.0))


class TestPast:
    def test_the_first_task_of_a_category_has_its_past_loaded(self) -> None:
        driver = Driver(one_gb, NODE, loads=True)
        task = TaskInfo("t", "align", code_hash="of its code")
        assert driver.post(Submitted(task)) == [Load(task)]
        driver.submit("u")
        assert driver.loads == [task]
        assert driver.running == {}

    def test_for_a_moment_nobody_overtakes_a_task_that_waits_for_its_past(self) -> None:
        driver = Driver(one_gb, NODE, loads=True)
        driver.pause_s = HOLDS_UP_S / 100
        driver.post(Loaded("sort", ()))
        driver.submit("s", category="sort")
        driver.submit("t")
        driver.submit("s2", category="sort")
        assert list(driver.running) == ["s"]
        driver.end("s")
        assert driver.endings == {"s": Ending.DONE}
        assert driver.running == {}
        driver.post(Loaded("align", ()))
        assert list(driver.running) == ["t", "s2"]
        assert [task.category for task in driver.loads] == ["align"]

    def test_an_archive_that_answers_late_holds_up_no_other_category(self) -> None:
        """One that hung held up the tasks of known categories, and retries, for 6 s."""
        driver = Driver(one_gb, NODE, loads=True)
        driver.pause_s = HOLDS_UP_S / 100
        driver.post(Loaded("sort", ()))
        driver.submit("t", "t2")
        driver.submit("s", category="sort")
        assert driver.running == {}
        driver.now += HOLDS_UP_S
        driver.post(Tick())
        assert list(driver.running) == ["s"]
        driver.end("s", Ending.EXHAUSTED, MEMORY)
        assert list(driver.running) == ["s"]  # and a retry does not wait either
        driver.submit("t3")  # its category was asked for long ago
        driver.submit("s2", category="sort")
        assert list(driver.running) == ["s", "s2"]
        driver.post(Loaded("align", ()))
        assert list(driver.running) == ["s", "s2", "t", "t2", "t3"]

    def test_many_categories_that_are_loaded_do_not_hide_others(self) -> None:
        driver = Driver(one_gb, NODE, loads=True, window=1)
        driver.post(Loaded("sort", ()))
        for number in range(8):
            driver.submit(number, category=f"new {number}")
        driver.submit("s", category="sort")
        driver.post(Tick())
        assert list(driver.running) == ["s"]

    def test_a_node_stays_kept_while_the_past_of_a_more_urgent_task_is_loaded(self) -> None:
        def size(task: TaskInfo) -> Amounts:
            return {MEMORY: (12 if task.category == "large" else 8) * GB}

        driver = Driver(size, NODE, loads=True, patience=0)
        driver.pause_s = HOLDS_UP_S / 100
        driver.post(Loaded("align", ()))
        driver.post(Loaded("large", ()))
        driver.submit("f")
        driver.submit("large", category="large")  # the node is kept for it
        driver.post(Submitted(TaskInfo("u", "urgent", priority=1)))
        driver.now += HOLDS_UP_S
        driver.submit("a")
        assert list(driver.running) == ["f"]
        driver.post(Loaded("urgent", ()))
        assert list(driver.running) == ["f"]

    def test_they_are_sized_by_what_earlier_runs_know(self) -> None:
        sized: list[int | str] = []

        def by_what_is_known(task: TaskInfo) -> Amounts:
            sized.append(task.task_id)
            return {MEMORY: 2 * GB if driver.strategy.learned else 16 * GB}

        driver = Driver(by_what_is_known, NODE, loads=True)
        driver.submit("t", "u")
        assert sized == []
        past = [earlier(), earlier()]
        driver.post(Loaded("align", past))
        assert driver.strategy.learned == past
        assert [a.allocation for a in driver.running.values()] == [{MEMORY: 2 * GB}] * 2

    def test_they_start_in_the_order_in_which_all_were_submitted(self) -> None:
        driver = Driver(lambda task: {MEMORY: 16 * GB}, loads=True)
        for number, category in enumerate(["align", "sort"] * 2):
            driver.submit(number, category=category)
        driver.post(Loaded("sort", ()))
        driver.post(Loaded("align", ()))
        driver.post(Joined(Node("n0", NODE)))
        while driver.running:
            driver.end(next(iter(driver.running)))
        assert list(driver.endings) == [0, 1, 2, 3]

    def test_what_comes_twice_or_late_is_not_taught_again(self) -> None:
        driver = Driver(one_gb, NODE, loads=True)
        driver.submit("t")
        driver.post(Loaded("align", [earlier()]))
        assert driver.post(Loaded("align", [earlier()])) == []
        assert len(driver.strategy.learned) == 1

    def test_what_comes_unasked_is_not_asked_for_any_more(self) -> None:
        driver = Driver(one_gb, NODE, loads=True)
        driver.post(Loaded("align", [earlier()]))
        driver.submit("t")
        assert driver.loads == []
        assert list(driver.running) == ["t"]
        assert len(driver.strategy.learned) == 1

    def test_without_a_past_to_load_nothing_is_asked_for_or_taught(self) -> None:
        driver = Driver(one_gb, NODE)
        driver.post(Loaded("align", [earlier()]))
        driver.submit("t")
        assert (driver.loads, driver.strategy.learned) == ([], [])
        assert list(driver.running) == ["t"]

    def test_a_task_that_is_withdrawn_meanwhile_is_forgotten(self) -> None:
        driver = Driver(one_gb, NODE, loads=True)
        driver.submit("t", "u")
        driver.post(Withdrawn("t"))
        driver.post(Loaded("align", ()))
        assert list(driver.running) == ["u"]
        assert len(driver.sizer) == 1

    def test_as_long_as_it_is_not_known_what_tasks_need_they_are_no_demand_for_many_nodes(
        self,
    ) -> None:
        driver = Driver(
            lambda task: {MEMORY: (1 if driver.strategy.learned else 16) * GB}, NODE, loads=True
        )
        driver.post(Left("n0"))
        driver.submit(*range(32))
        assert driver.sizer.demand() == 1
        driver.post(Loaded("align", [earlier()]))
        assert driver.sizer.demand() == 2

    def test_what_cannot_be_is_not_taught(self) -> None:
        driver = Driver(one_gb, NODE, loads=True)
        driver.submit("t")
        driver.post(Loaded("align", [earlier(Usage({MEMORY: math.nan})), earlier()]))
        assert driver.strategy.learned == [earlier()]

    def test_a_strategy_that_cannot_learn_it_is_told_of_and_sizes_all_the_same(self) -> None:
        driver = Driver(one_gb, NODE, loads=True)
        driver.strategy.learn = lambda outcome: 1 / 0  # type: ignore[assignment, method-assign, return-value]
        driver.submit("t")
        driver.post(Loaded("align", [earlier()]))
        assert list(driver.running) == ["t"]
        [warning] = driver.warnings
        assert "'align' could not learn all of earlier runs" in warning

    def test_a_policy_learns_it_too(self) -> None:
        learned: list[Outcome] = []
        policy = Fair()
        policy.learn = learned.append  # type: ignore[method-assign]
        driver = Driver(one_gb, NODE, loads=True, policy=policy)
        driver.submit("t")
        driver.post(Loaded("align", [earlier()]))
        assert learned == [earlier()]


class TestGate:
    def test_a_few_of_a_new_category_run_before_the_others(self) -> None:
        driver = Driver(one_gb, NODE, gate=Gate(2))
        driver.submit(*range(6))
        driver.submit("s", category="sort")
        assert list(driver.running) == [0, 1, "s"]
        driver.end(0)
        assert list(driver.running) == [1, "s"]
        driver.end(1)
        assert list(driver.running) == ["s", 2, 3, 4, 5]

    def test_a_canary_that_ran_out_is_one_until_it_has_finished(self) -> None:
        driver = Driver(one_gb, NODE, gate=Gate(1))
        driver.submit(*range(3))
        driver.end(0, Ending.EXHAUSTED, MEMORY)
        assert list(driver.running) == [0]
        driver.end(0)
        assert list(driver.running) == [1, 2]

    @pytest.mark.parametrize("ending", [Ending.RAISED, Ending.LOST])
    def test_a_canary_that_fails_makes_room_for_another(self, ending: Ending) -> None:
        driver = Driver(one_gb, NODE, gate=Gate(1), lost_retries=0)
        driver.submit(*range(3))
        driver.end(0, ending)
        assert list(driver.running) == [1]

    def test_a_canary_that_is_lost_is_not_stuck_behind_those_that_wait_for_it(self) -> None:
        driver = Driver(
            lambda task: {MEMORY: 16 * GB}, NODE, gate=Gate(1), queue=Lines(depth=1), window=1
        )
        driver.submit(*range(2))
        driver.end(0, Ending.LOST)
        while driver.running:
            driver.end(next(iter(driver.running)))
        assert driver.endings == {0: Ending.DONE, 1: Ending.DONE}

    def test_a_canary_that_is_withdrawn_makes_room_for_another(self) -> None:
        driver = Driver(one_gb, NODE, gate=Gate(1))
        driver.submit(*range(3))
        driver.running.clear()
        driver.post(Withdrawn(0))
        assert list(driver.running) == [1]
        driver.running.clear()
        driver.post(Withdrawn(2))  # it had not started
        assert not driver.running

    def test_nobody_waits_for_ever(self) -> None:
        driver = Driver(one_gb, NODE, gate=Gate(1, patience_s=60.0))
        driver.submit(*range(3))
        driver.now += 60.0
        driver.post(Tick())
        assert list(driver.running) == [0, 1, 2]

    def test_what_the_user_has_fixed_does_not_wait(self) -> None:
        driver = Driver(one_gb, NODE, gate=Gate(1))
        driver.submit(0)
        fixed = frozenset({OptOut.FIXED})
        driver.post(Submitted(TaskInfo(1, "align", requested={MEMORY: GB}, opt_outs=fixed)))
        assert list(driver.running) == [0, 1]

    def test_a_category_that_is_known_from_earlier_runs_does_not_wait(self) -> None:
        driver = Driver(one_gb, NODE, gate=Gate(1), loads=True)
        driver.submit(0, 1)
        driver.submit(2, 3, category="new")
        driver.post(Loaded("align", [earlier()]))
        driver.post(Loaded("new", []))
        assert list(driver.running) == [0, 1, 2]

    def test_those_who_wait_for_canaries_do_not_hide_others(self) -> None:
        driver = Driver(one_gb, NODE, gate=Gate(1), window=1)
        driver.submit(*range(5))
        driver.submit("s", category="sort")
        assert list(driver.running) == [0, "s"]
