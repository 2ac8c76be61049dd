"""Whatever happens in whatever order: no node over-committed, every task settled once.

The machine plays the driver and keeps its own books, in fractions. Tasks carry what
their strategy is going to say, sense and nonsense alike.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from parsl_sizer.model import (
    Amounts,
    Attempt,
    Ending,
    Kind,
    Node,
    Outcome,
    Resources,
    TaskInfo,
    Usage,
)
from parsl_sizer.placement import Gate, Lines
from parsl_sizer.sizing import (
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
    Sizer,
    Started,
    Submitted,
    Tick,
    Withdrawn,
)
from parsl_sizer.sizing.categories import MAX_ATTEMPTS
from parsl_sizer.sizing.past import HOLDS_UP_S
from parsl_sizer.strategies import Proposal

LARGEST = Resources(cores=16, memory=64e9, disk=100e9)
NAMES = ("n0", "n1", "n2")
CAPACITIES = (
    LARGEST,
    Resources(cores=4, memory=64e9, disk=10e9),
    Resources(cores=16, memory=16e9, disk=100e9, gpus=1),
    Resources(cores=1, memory=64e9 / 7, disk=1e9),
)
SIZED = (Kind.CORES, Kind.MEMORY, Kind.DISK)

shares = st.sampled_from([1.0, 0.5, 1 / 3, 0.25, 0.1, 1 / 16, 0.0]) | st.floats(0, 1)
amounts = {kind: shares.map(lambda s, k=kind: s * LARGEST[k]) for kind in SIZED}
sense = st.fixed_dictionaries(
    {Kind.MEMORY: amounts[Kind.MEMORY]},
    optional={kind: amounts[kind] for kind in (Kind.CORES, Kind.DISK)},
)
nonsense = st.one_of(
    st.sampled_from([None, "raise", {}]),
    st.dictionaries(
        st.sampled_from([*Kind, "soul"]),
        st.sampled_from([math.nan, math.inf, -1.0, 1e30, "lots", None]),
        max_size=3,
    ),
)
peaks = st.dictionaries(
    st.sampled_from(SIZED), st.sampled_from([0.0, 1.0, 1e9, 1e30, math.nan, -1.0])
)
kinds = st.frozensets(st.sampled_from(Kind))


class Scripted:
    """Says what the task's script has for this attempt, or doubles a script of one line.

    May raise, also when it learns.
    """

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        script = task.labels["script"]
        assert isinstance(script, list)
        line = script[len(failures) % len(script)]
        if line == "raise":
            raise RuntimeError("this strategy is broken")
        if failures and len(script) == 1:
            last = failures[-1]
            held = last.attempt.allocation
            line = {kind: a * 2 if kind in last.exhausted else a for kind, a in held.items()}
        return Proposal(line, "as written")

    def learn(self, outcome: Outcome) -> None:
        if outcome.attempt.task.labels["script"] == ["raise"]:
            raise RuntimeError("this strategy learns nothing")


class SizerMachine(RuleBasedStateMachine):
    @initialize(
        lost_retries=st.integers(0, 3),
        patience=st.integers(0, 4),
        depth=st.integers(1, 3),
        capacities=st.lists(st.sampled_from(CAPACITIES), max_size=3),
        consults=st.booleans(),
        window=st.sampled_from([1, 64]),
        canaries=st.integers(0, 2),
        loads=st.booleans(),
    )
    def begin(
        self,
        lost_retries: int,
        patience: int,
        depth: int,
        capacities: list[Resources],
        consults: bool,
        window: int,
        canaries: int,
        loads: bool,
    ) -> None:
        self.lost_retries = lost_retries
        self.sizer = Sizer(
            Categories(lambda category: Scripted()),
            queue=Lines(depth=depth),
            gate=Gate(canaries) if canaries else None,
            window=window,
            lost_retries=lost_retries,
            patience=patience,
            consults=consults,
            loads=loads,
        )
        self.loads = loads
        self.now = 0.0
        self.loading: set[str] = set()
        self.loaded: set[str] = set()
        self.asked: set[int] = set()
        self.nodes: dict[str, Resources] = {}
        self.running: dict[int, Attempt] = {}
        self.where: dict[int, str] = {}
        self.last: dict[int, Outcome] = {}
        self.past: list[Outcome] = []
        self.too_small: dict[int, dict[Kind, float]] = {}
        self.submitted: list[TaskInfo] = []
        self.settled: Counter[int] = Counter()
        self.withdrawn: set[int] = set()
        for name, capacity in zip(NAMES, capacities, strict=False):
            self.join(name, capacity)

    def post(self, event: Event) -> None:
        for action in self.sizer.handle(event, self.now):
            if isinstance(action, Load):
                assert self.loads
                assert action.task.category not in self.loading | self.loaded
                self.loading.add(action.task.category)
                continue
            task_id = int(
                action.attempt.task.task_id if isinstance(action, Launch) else action.task.task_id
            )
            assert task_id not in self.running
            assert task_id not in self.asked
            assert not self.settled[task_id]
            assert task_id not in self.withdrawn
            if isinstance(action, Launch):
                self.check_launch(task_id, action.attempt)
            elif isinstance(action, Consult):
                assert action.outcomes[-1] == self.last[task_id]
                self.asked.add(task_id)
            else:
                self.settled[task_id] += 1
                if action.outcomes:
                    assert action.outcomes[-1] == self.last[task_id]
                    assert len(action.outcomes) == action.outcomes[-1].attempt.number

    def check_launch(self, task_id: int, attempt: Attempt) -> None:
        assert attempt.node in self.nodes
        assert attempt.task.category not in self.loading
        assert attempt.number <= MAX_ATTEMPTS + self.lost_retries
        self.running[task_id], self.where[task_id] = attempt, attempt.node
        assert self.fits(attempt, attempt.node)
        former = self.last.get(task_id)
        assert attempt.number == (former.attempt.number + 1 if former else 1)
        for kind, amount in self.too_small.get(task_id, {}).items():
            assert attempt.allocation[kind] > amount

    def fits(self, attempt: Attempt, name: str) -> bool:
        """Whether what runs on the node sums to no more than it has, this attempt included.

        Only the kinds that the attempt takes something of: a node may be overdrawn in
        another one, after it came back smaller than it was.
        """
        present = [a for task_id, a in self.running.items() if self.where[task_id] == name]
        return all(
            sum(Fraction(a.allocation.get(kind, 0)) for a in present) <= self.nodes[name][kind]
            for kind, amount in attempt.allocation.items()
            if amount
        )

    def end(self, task_id: int, ending: Ending, exhausted: frozenset[Kind], usage: Usage) -> None:
        attempt = self.running.pop(task_id)
        outcome = Outcome(attempt, ending, usage=usage, exhausted=exhausted)
        self.last[task_id] = outcome
        self.past.append(outcome)
        if ending is Ending.EXHAUSTED:
            held = attempt.allocation
            failed = {kind: held[kind] for kind in exhausted if kind in held}
            self.too_small.setdefault(task_id, {}).update(failed)
        self.post(Ended(outcome))

    @rule(size=sense, category=st.sampled_from("ab"), count=st.integers(1, 8))
    def submit(self, size: object, category: str, count: int) -> None:
        for _ in range(count):
            self.submit_one(category, [size], {})

    @rule(script=st.lists(sense | nonsense, min_size=1, max_size=4), request=sense)
    def submit_nonsense(self, script: list[object], request: Amounts) -> None:
        self.submit_one("nonsense", script, request)

    def submit_one(self, category: str, script: list[object], request: Amounts) -> None:
        number, labels = len(self.submitted), {"script": script}
        task = TaskInfo(number, category, requested=request, labels=labels)
        self.submitted.append(task)
        self.post(Submitted(task))

    @rule(name=st.sampled_from(NAMES), capacity=st.sampled_from(CAPACITIES))
    def join(self, name: str, capacity: Resources) -> None:
        self.nodes[name] = capacity
        self.post(Joined(Node(name, capacity)))

    @rule(name=st.sampled_from(NAMES))
    def leave(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.post(Left(name))

    @precondition(lambda self: self.running)
    @rule(
        data=st.data(),
        ending=st.sampled_from(Ending),
        exhausted=kinds,
        usage=st.builds(Usage, peaks, st.sampled_from([0.0, 1.0, math.nan])),
    )
    def end_one(
        self, data: st.DataObject, ending: Ending, exhausted: frozenset[Kind], usage: Usage
    ) -> None:
        self.end(data.draw(st.sampled_from(sorted(self.running))), ending, exhausted, usage)

    @precondition(lambda self: self.running)
    @rule(
        data=st.data(),
        endings=st.lists(st.sampled_from([Ending.EXHAUSTED, Ending.EXHAUSTED, Ending.LOST])),
        exhausted=kinds,
    )
    def fail_on(
        self, data: st.DataObject, endings: list[Ending], exhausted: frozenset[Kind]
    ) -> None:
        task_id = data.draw(st.sampled_from(sorted(self.running)))
        for ending in endings:
            if task_id in self.running:
                self.end(task_id, ending, exhausted, Usage())
            if task_id in self.asked:
                self.say(task_id, is_split=False)

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), is_split=st.booleans())
    def answer(self, data: st.DataObject, is_split: bool) -> None:
        self.say(data.draw(st.sampled_from(sorted(self.asked))), is_split)

    def say(self, task_id: int, is_split: bool) -> None:
        self.asked.remove(task_id)
        self.post(Consulted(task_id, is_split))
        if is_split:
            assert self.settled[task_id] == 1

    @precondition(lambda self: self.submitted)
    @rule(data=st.data(), is_split=st.booleans())
    def answer_unasked(self, data: st.DataObject, is_split: bool) -> None:
        task_id = int(data.draw(st.sampled_from(self.submitted)).task_id)
        if task_id not in self.asked:
            assert self.sizer.handle(Consulted(task_id, is_split), self.now) == []

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        attempt = self.running[data.draw(st.sampled_from(sorted(self.running)))]
        self.post(Started(attempt, self.where[int(attempt.task.task_id)]))

    @precondition(lambda self: self.running and self.nodes)
    @rule(data=st.data())
    def start_elsewhere(self, data: st.DataObject) -> None:
        task_id = data.draw(st.sampled_from(sorted(self.running)))
        meant = self.where[task_id]
        self.where[task_id] = data.draw(st.sampled_from(sorted(self.nodes)))
        if not self.fits(self.running[task_id], self.where[task_id]):
            self.where[task_id] = meant
        self.post(Started(self.running[task_id], self.where[task_id]))

    @precondition(lambda self: self.past)
    @rule(data=st.data(), ending=st.sampled_from(Ending))
    def repeat_what_is_over(self, data: st.DataObject, ending: Ending) -> None:
        outcome = data.draw(st.sampled_from(self.past))
        waiting = self.waiting()
        self.post(Ended(outcome._replace(ending=ending, exhausted=frozenset({Kind.MEMORY}))))
        self.post(Started(outcome.attempt, "n0"))
        assert self.waiting() == waiting

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def submit_again(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(self.submitted))
        if self.is_unsettled(task):
            self.post(Submitted(task))

    def is_unsettled(self, task: TaskInfo) -> bool:
        return not self.settled[int(task.task_id)] and task.task_id not in self.withdrawn

    @precondition(lambda self: any(map(self.is_unsettled, self.submitted)))
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        unsettled = [int(task.task_id) for task in self.submitted if self.is_unsettled(task)]
        task_id = data.draw(st.sampled_from(unsettled))
        self.withdrawn.add(task_id)
        self.running.pop(task_id, None)
        self.asked.discard(task_id)
        self.post(Withdrawn(task_id))
        assert self.sizer.handle(Withdrawn(task_id), self.now) == []

    @precondition(lambda self: self.loading)
    @rule(data=st.data())
    def load(self, data: st.DataObject) -> None:
        self.hear_of(data.draw(st.sampled_from(sorted(self.loading))))

    @rule(category=st.sampled_from("ab"))
    def hear_of(self, category: str) -> None:
        """What earlier runs know is here, asked for or not, for the first time or again."""
        self.loading.discard(category)
        self.loaded.add(category)
        self.post(Loaded(category, self.past[:3]))

    @rule()
    def tick(self) -> None:
        self.post(Tick())

    @rule()
    def wait_long_enough_for_what_is_loaded(self) -> None:
        """Then nobody but the tasks of its category waits for it."""
        self.now += HOLDS_UP_S
        self.post(Tick())
        if self.nodes and not self.running:
            loading = sum(
                self.is_unsettled(task) and task.category in self.loading
                for task in self.submitted
                if task.task_id not in self.asked
            )
            assert self.waiting() == loading

    def waiting(self) -> int:
        over = self.settled.total() + len(self.withdrawn)
        return len(self.submitted) - len(self.running) - len(self.asked) - over

    @invariant()
    def who_is_not_over_and_nobody_else_is_a_need(self) -> None:
        needs = sum(need.times for need in self.sizer.needs())
        if not self.loading:
            assert needs == len(self.running) + self.waiting()
        assert bool(needs) == bool(len(self.running) + self.waiting())

    @invariant()
    def nobody_waits_beside_idle_nodes(self) -> None:
        if self.nodes and not self.running and not self.loading:
            assert self.waiting() == 0

    def teardown(self) -> None:
        if not self.nodes:
            self.join("n0", LARGEST)
        for category in sorted(self.loading):
            self.hear_of(category)
        while self.running or self.asked:
            for task_id in list(self.asked):
                self.say(task_id, is_split=False)
            for task_id in list(self.running):
                self.end(task_id, Ending.DONE, frozenset(), Usage())
        every = Counter(int(task.task_id) for task in self.submitted)
        assert self.settled + Counter(self.withdrawn) == every


TestSizerMachine = SizerMachine.TestCase
TestSizerMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
