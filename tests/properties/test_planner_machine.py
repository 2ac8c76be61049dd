"""Whatever happens in whatever order, blocks stay within their limit and none is forgotten."""

from __future__ import annotations

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from parsl_sizer.scaling import (
    POLICIES,
    BlockEnded,
    BlockStarted,
    CancelBlock,
    Event,
    Geometry,
    Planner,
    RequestBlock,
    Stage,
    StageEnded,
    StageExpected,
    StagesPlanned,
    StageStarted,
    Tick,
    WaitEstimator,
)

GEOMETRIES = st.sampled_from([Geometry(1, 1), Geometry(4, 28), Geometry(2, 28, 64e9)])
TIMES = st.one_of(st.none(), st.floats(0.0, 5000.0))


class BlocksOfAWorkflow(RuleBasedStateMachine):
    """A driver that lets anything happen that could."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.stages = 0
        self.ended = 0
        self.waiting: dict[str, tuple[str, ...]] = {}
        self.running: dict[str, float] = {}
        self.cancelled: set[str] = set()
        self.asked: set[str] = set()

    @initialize(
        policy=st.sampled_from(list(POLICIES)),
        max_blocks=st.integers(1, 5),
        patience_s=st.sampled_from([0.0, 30.0]),
        seed=st.integers(0, 99),
    )
    def begin(self, policy: str, max_blocks: int, patience_s: float, seed: int) -> None:
        self.max_blocks = max_blocks
        self.planner = Planner(
            policy, WaitEstimator(), Random(seed), max_blocks=max_blocks, patience_s=patience_s
        )

    def tell(self, event: Event) -> None:
        for action in self.planner.handle(event, self.now):
            match action:
                case RequestBlock(block, after=after):
                    assert block not in self.asked, "a block is asked for once"
                    self.asked.add(block)
                    self.waiting[block] = after
                case CancelBlock(block):
                    assert block in self.waiting or block in self.running, "it is there"
                    assert block not in self.cancelled, "it is cancelled once"
                    self.cancelled.add(block)

    @property
    def alive(self) -> list[str]:
        return [*self.waiting, *self.running]

    @rule(geometry=GEOMETRIES, blocks=st.integers(1, 3), expected_s=TIMES, many=st.integers(1, 3))
    def plan(self, geometry: Geometry, blocks: int, expected_s: float | None, many: int) -> None:
        numbers = range(self.stages, self.stages + many)
        self.stages += many
        made = (Stage(str(n), geometry, min(blocks, self.max_blocks), expected_s) for n in numbers)
        self.tell(StagesPlanned(tuple(made)))

    @precondition(lambda self: self.ended < self.stages)
    @rule()
    def start_stage(self) -> None:
        self.tell(StageStarted(str(self.ended)))

    @precondition(lambda self: self.ended < self.stages)
    @rule(left_s=st.floats(-10.0, 3000.0))
    def expect(self, left_s: float) -> None:
        self.tell(StageExpected(str(self.ended), self.now + left_s))

    @precondition(lambda self: self.ended < self.stages)
    @rule()
    def end_stage(self) -> None:
        self.ended += 1
        self.tell(StageEnded(str(self.ended - 1)))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def start_block(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(list(self.waiting)))
        del self.waiting[block]
        self.running[block] = self.now
        self.tell(BlockStarted(block))

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def end_block(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(self.alive))
        self.waiting.pop(block, None)
        self.running.pop(block, None)
        self.tell(BlockEnded(block))

    @rule(passed_s=st.floats(0.0, 2000.0))
    def wait(self, passed_s: float) -> None:
        self.now += passed_s
        self.tell(Tick())

    @rule()
    def wait_until_due(self) -> None:
        due = self.planner.due_at(self.now)
        if due is not None:
            assert due > self.now
            self.now = due
        self.tell(Tick())

    @invariant()
    def never_more_than_allowed(self) -> None:
        assert len(self.alive) <= self.max_blocks

    def teardown(self) -> None:
        """When all stages are over, everything is given back."""
        if not hasattr(self, "planner"):
            return
        while self.ended < self.stages:
            self.end_stage()
        self.now += 1e6
        self.tell(Tick())
        assert set(self.alive) <= self.cancelled
        for block in self.alive:
            self.tell(BlockEnded(block))
        assert (self.planner.planned, self.planner.requested, self.planner.observed) == ((), (), ())


TestBlocksOfAWorkflow = BlocksOfAWorkflow.TestCase
TestBlocksOfAWorkflow.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
