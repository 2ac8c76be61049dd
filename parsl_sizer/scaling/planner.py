"""When to ask for blocks, and when to give them back: events in, actions out.

Stages that are planned become `Lease`s: what is wanted. A lease that is due is asked for:
requested blocks. A block that has started is observed, and how long it waited is learned. No
clock, no I/O, no thread: `handle` is told the time, and `due_at` says when to call again.

A block that starts before its stage can begin is a miss. To keep it costs its cores until
then; to give it back lets the stage wait for another one. It is kept if the former is
shorter, that is if no more than half an estimated wait is left. Otherwise it is given back,
and not asked for anew before it would be kept. If the stage in front takes longer than
thought it is given back when it has been idle for a whole estimated wait, and asked for
when its turn has come. So a miss costs at most the block's cores for one estimated wait.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random

from .leases import Block, Lease, leased
from .messages import (
    Action,
    BlockEnded,
    BlockStarted,
    CancelBlock,
    Event,
    RequestBlock,
    Stage,
    StageEnded,
    StageExpected,
    StagesPlanned,
    StageStarted,
    Tick,
)
from .outlook import Prospect, outlook
from .policies import Policy
from .policies import policy as named
from .waits import WaitEstimator


class Planner:
    """The blocks of one workflow.

    Laws: never more than `max_blocks` are asked for and not ended; every block that is asked
    for is cancelled, if it has not ended by itself, once no stage needs it.

    Parameters
    ----------
    policy
        One of `POLICIES`, or its name.
    waits
        What is known of the queue; it learns from this workflow's blocks.
    random
        Decides what `waits` samples.
    max_blocks
        How many blocks there may be at once, asked for or running.
    patience_s
        How long blocks that no stage needs any more are kept, lest more work comes.
    slack_s
        How soon after another's end a block starts that only waited for that. Then its wait
        tells how long the queue takes at most. Batch systems look every half minute or so.

    >>> from parsl_sizer.scaling import Geometry, Stage
    >>> many, one = Geometry(4, 28), Geometry(1, 1)
    >>> waits = WaitEstimator()
    >>> waits.observe(one, 300.0, Random(1))
    >>> planner = Planner("asa", waits, Random(1), max_blocks=2)
    >>> stages = Stage("align", many, expected_s=1000.0), Stage("merge", one)
    >>> [action.block for action in planner.handle(StagesPlanned(stages), 0.0)]
    ['align-1']
    >>> planner.handle(BlockStarted("align-1"), 60.0), planner.handle(StageStarted("align"), 60.0)
    ([], [])
    >>> planner.due_at(60.0)
    760.0
    >>> [(action.block, action.after) for action in planner.handle(Tick(), 760.0)]
    [('merge-2', ('align-1',))]
    """

    def __init__(
        self,
        policy: Policy | str,
        waits: WaitEstimator,
        random: Random,
        *,
        max_blocks: int,
        patience_s: float = 0.0,
        slack_s: float = 30.0,
    ) -> None:
        if max_blocks < 1:
            raise ValueError(f"max_blocks must be 1 or more, not {max_blocks}")
        self.policy = policy if isinstance(policy, Policy) else named(policy)
        self._waits = waits
        self._random = random
        self._max_blocks = max_blocks
        self._patience_s = patience_s
        self._slack_s = slack_s
        self._leases: list[Lease] = []
        self._by_stage: dict[str, Lease] = {}
        self._blocks: dict[str, Block] = {}
        self._asked = 0

    @property
    def planned(self) -> tuple[str, ...]:
        """Stages that are not over."""
        return tuple(name for name, lease in self._by_stage.items() if name not in lease.ended)

    @property
    def requested(self) -> tuple[str, ...]:
        """Blocks that were asked for and have not started."""
        return tuple(name for name, block in self._blocks.items() if block.started_at is None)

    @property
    def observed(self) -> tuple[str, ...]:
        """Blocks that run."""
        return tuple(name for name, block in self._blocks.items() if block.started_at is not None)

    def serving(self, stage: str) -> tuple[str, ...]:
        """The blocks that run for a stage. It can begin when it has as many as it needs."""
        lease = self._lease(stage)
        return tuple(
            block.name
            for block in self._blocks.values()
            if block.lease is lease and block.started_at is not None and not block.is_cancelled
        )

    def idle_limit_s(self, block: str) -> float:
        """How long a block that came before its stage could begin is kept for it at most."""
        return max(self._lead(self._blocks[block].lease), self._patience_s)

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take note of what happened, and say what is to be done about it."""
        match event:
            case StagesPlanned(stages):
                self._plan(stages)
            case StageStarted(stage):
                lease = self._lease(stage)
                lease.started.add(stage)
                lease.ended.discard(stage)
                lease.over_at, lease.began_at = None, now
            case StageExpected(stage, ends_at):
                self._lease(stage).ends_at[stage] = ends_at
            case StageEnded(stage):
                lease = self._lease(stage)
                lease.ended.add(stage)
                lease.over_at = now if lease.is_over else None
            case BlockStarted(name, wait_s):
                if (block := self._blocks.get(name)) and block.started_at is None:
                    self._observe(block, now, wait_s)
            case BlockEnded(name):
                if block := self._blocks.pop(name, None):
                    self._forget(block, now)
            case Tick():
                pass
        return [*self._given_back(now), *self._asked_for(now)]

    def due_at(self, now: float) -> float | None:
        """When something is to be done if nothing happens until then; None if nothing is."""
        times = [one.due for one in self._outlook(now) if self._missing(one.lease)]
        for block in self._blocks.values():
            if block.is_cancelled:
                continue
            if block.lease.over_at is not None:
                times.append(block.lease.over_at + self._patience_s)
            elif block.started_at is not None and not block.lease.started:
                limits = self._patience_s, self.idle_limit_s(block.name)
                times += (block.started_at + limit_s for limit_s in limits)
        return min((time for time in times if now < time < math.inf), default=None)

    def _plan(self, stages: Sequence[Stage]) -> None:
        names = [stage.name for stage in stages]
        if again := {name for name in names if name in self._by_stage or names.count(name) > 1}:
            raise ValueError(f"stages are planned once; these were before: {sorted(again)}")
        last = self._leases[-1] if self._leases else None
        if last and last.is_over and self._missing(last):
            last = None
        self._leases += leased(stages, self.policy, last)
        if last and not last.is_over:
            last.over_at = None
        self._by_stage = {stage.name: lease for lease in self._leases for stage in lease.stages}

    def _lease(self, stage: str) -> Lease:
        lease = self._by_stage.get(stage)
        if lease is None:
            raise ValueError(f"no stage {stage!r} was planned; there is {list(self._by_stage)}")
        return lease

    def _observe(self, block: Block, now: float, wait_s: float | None) -> None:
        lease = block.lease
        block.started_at = now
        at_most = block.freed_at is not None and now - block.freed_at <= self._slack_s
        self._waits.observe(
            lease.geometry,
            max(0.0, now - block.requested_at) if wait_s is None else wait_s,
            self._random,
            estimate=lease.lead_s,
            at_most=at_most,
        )
        lease.lead_s = None

    def _forget(self, block: Block, now: float) -> None:
        if block.started_at is None and not block.is_cancelled:
            block.lease.not_before = now + self._patience_s
        for other in self._blocks.values():
            if block.name in other.after:
                other.after -= {block.name}
                other.freed_at = None if other.after else now

    def _outlook(self, now: float) -> list[Prospect]:
        blocks = tuple(self._blocks.values())
        return outlook(self._leases, blocks, self.policy, self._lead, now)

    def _lead(self, lease: Lease) -> float:
        """The wait that is estimated for its blocks.

        Estimates are sampled: another one is drawn only if there is something new to know,
        and none any more when the blocks have been asked for.
        """
        seen = self._waits.learner(lease.geometry).waits
        is_asked = any(block.lease is lease for block in self._blocks.values())
        if lease.lead_s is None or (lease.lead_from != seen and not is_asked):
            lease.lead_s = self._waits.estimate(lease.geometry, self._random)
            lease.lead_from = seen
        return lease.lead_s

    def _missing(self, lease: Lease) -> int:
        mine = (block.lease is lease and not block.is_cancelled for block in self._blocks.values())
        return max(0, min(lease.blocks, self._max_blocks) - sum(mine))

    def _asked_for(self, now: float) -> Iterator[RequestBlock]:
        """What is due. Room is kept for stages in front, so that none waits for a later one."""
        room = self._max_blocks - len(self._blocks)
        before: Lease | None = None
        for prospect in self._outlook(now):
            missing = self._missing(prospect.lease)
            if prospect.due <= now:
                for _ in range(min(missing, room)):
                    yield self._request(prospect, before, now)
            room -= missing
            before = prospect.lease

    def _request(self, prospect: Prospect, before: Lease | None, now: float) -> RequestBlock:
        self._asked += 1
        lease = prospect.lease
        name = f"{lease.name}-{self._asked}"
        why = "its stage can begin"
        after: tuple[str, ...] = ()
        if before is not None and not lease.started:
            left_s = prospect.turn - now
            why = f"its stage may begin in {left_s:.0f} s, and the wait be {lease.lead_s:.0f} s"
            if self.policy.is_dependent:
                after = tuple(one.name for one in self._blocks.values() if one.lease is before)
        self._blocks[name] = Block(name, lease, now, frozenset(after))
        return RequestBlock(name, lease.name, lease.geometry, lease.walltime_s, after, why)

    def _given_back(self, now: float) -> Iterator[CancelBlock]:
        """What no stage needs any more, and what came too early to be worth keeping."""
        prospects = self._outlook(now)
        turns = {id(one.lease): one.turn for one in prospects}
        ahead = {id(one.lease) for one in prospects[1:] if not one.lease.started}
        for block in self._blocks.values():
            lease = block.lease
            if block.is_cancelled:
                continue
            if lease.over_at is not None:
                if now >= lease.over_at + self._patience_s:
                    yield self._cancel(block, "no stage needs it any more")
            elif block.started_at is not None and id(lease) in ahead:
                keep_s = self._lead(lease) / 2
                left_s = turns[id(lease)] - now
                idle_s = now - block.started_at
                if now >= block.started_at + self.idle_limit_s(block.name):
                    lease.is_late = True
                    yield self._cancel(block, f"it was idle for {idle_s:.0f} s")
                elif left_s > keep_s and idle_s >= self._patience_s:
                    if left_s < math.inf:
                        lease.ahead_from = now + left_s - keep_s
                    yield self._cancel(block, f"its stage may begin only in {left_s:.0f} s")

    def _cancel(self, block: Block, why: str) -> CancelBlock:
        block.is_cancelled = True
        return CancelBlock(block.name, why)
