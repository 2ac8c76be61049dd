"""Blocks asked for ahead of time, live: what `Planner` says is done with real blocks.

Parsl's own thread for blocks calls `poll`, every `strategy_period`. In it, and only there, the
batch system is asked what has become of blocks, the planner is told of stages and blocks, and
what it wants is carried out. What Parsl's strategy wants is not.

Tasks of a stage that could begin are held until it has a block of its own: those of the stage
before are about to be given back, and may be of another shape.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from parsl_sizer.archive.open import Where
from parsl_sizer.engines.blocks import AGAIN_S, LOOK_S, Blocks, Started
from parsl_sizer.model import Outcome, TaskInfo, logger_for
from parsl_sizer.scaling import (
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
)
from parsl_sizer.scaling.policies import policy
from parsl_sizer.scaling.progress import ends_at
from parsl_sizer.scaling.waits import DEFAULT, Rule

from .driver import Driver
from .shared_waits import SharedWaits
from .stages import Progress, Stages

logger = logger_for(__name__)

GB = 1e9
QUIET_S = 1.0
"""A stage of which nothing new was called for so long is taken to have been called in whole."""
SHARE_S = 10.0
"""So often workflows tell each other of waits."""
SHORTEST_S, MARGIN = 600.0, 3.0
"""A block may run for so many times the time that is expected, and for ten minutes at least."""


@dataclass(frozen=True)
class Scaling:
    """When blocks are asked for: a policy, and what a small cluster may want otherwise.

    `slack_s` is within how long the batch system starts a job that only waited for the end of
    another, `rule` how waits are learned, `look_s` how often the batch system is asked, and
    `again_s` after how long at the earliest a block is asked for again that failed.
    """

    policy: str = "asa"
    slack_s: float = 30.0
    rule: Rule = DEFAULT
    look_s: float = LOOK_S
    again_s: float = AGAIN_S

    def __post_init__(self) -> None:
        policy(self.policy)


class LiveScaling:
    """The blocks of one executor, driven by a planner."""

    def __init__(
        self,
        inner: Any,
        driver: Driver,
        how: Scaling,
        *,
        where: Where | None,
        before: Callable[[TaskInfo], Sequence[Outcome]],
        warn: Callable[[str], None],
    ) -> None:
        self.mark = mark = f"parsl_sizer-{uuid.uuid4().hex[:16]}"
        random = Random(mark)
        self.blocks = Blocks(
            inner, mark=mark, now=driver.now, look_s=how.look_s, again_s=how.again_s
        )
        self.stages = Stages(inner.label)
        self.waits = SharedWaits(
            where, self.blocks.place, mark, random, warn, rule=how.rule, now=driver.now
        )
        self.planner = Planner(
            how.policy, self.waits, random, max_blocks=self.blocks.most, slack_s=how.slack_s
        )
        self._inner = inner
        self._driver = driver
        self._before = before
        self._warn = warn
        self._shared_at = -math.inf
        self._is_over = False

    def start(self) -> None:
        """Learn what others know of the queue, and see to it that nothing can be left behind."""
        self.blocks.start()

    def submit(self, task: TaskInfo, record: Any, go: Callable[[], None]) -> None:
        """A task is here; `go` is called when it may run."""
        stage = self.stages.given(task, record, self._driver.now())
        with self.stages.lock:
            if not stage.is_open and not self._is_over:
                stage.held.append(go)
                return
        go()

    def settled(self, task: TaskInfo, outcomes: Sequence[Outcome]) -> None:
        """A task has ended."""
        if outcomes:
            self.stages.settled(task.task_id, outcomes[-1].usage.wall_s)

    def poll(self) -> None:
        """See what has become of blocks and stages, and do what is due."""
        if self._inner.bad_state_is_set:  # no block starts: tasks are let go, to be told why
            self._is_over = True
            self._let_go(self.stages.look(self._driver.now()))
            return
        try:
            self._poll()
        except Exception:
            logger.exception("Blocks could not be planned")
            self._warn("Blocks could not be planned; see the log. What there is is used.")
            self._let_go(self.stages.look(self._driver.now()))

    def close(self) -> None:
        """Give everything back; tasks that are held are let go, to be told that it is over."""
        self._is_over = True
        self._let_go(self.stages.look(self._driver.now()))
        try:
            self.blocks.close()
        finally:
            self.waits.share()

    def _poll(self) -> None:
        now = self._driver.now()
        if now >= self._shared_at + SHARE_S:
            self._shared_at = now
            self.waits.share()
        for news in self.blocks.look():
            if isinstance(news, Started):
                self._tell(BlockStarted(news.block, news.wait_s))
            else:
                self._tell(BlockEnded(news.block))
        stages = self.stages.look(now)
        self._plan(stages, now)
        self._follow(stages, now)
        self._tell(Tick())
        self._open(stages)

    def _tell(self, event: Event) -> None:
        for action in self.planner.handle(event, self._driver.now()):
            if isinstance(action, RequestBlock):
                self._request(action)
            elif isinstance(action, CancelBlock):
                logger.info("Block %s is given back: %s", action.block, action.why)
                self.blocks.release(action.block)

    def _request(self, wanted: RequestBlock) -> None:
        logger.info("Block %s (%s) is asked for: %s", wanted.block, wanted.geometry, wanted.why)
        known = self.blocks.request(
            wanted.block, wanted.geometry, wanted.walltime_s, after=wanted.after
        )
        if not known:  # never, unless somebody else asks for blocks of the same executor
            self._tell(BlockEnded(wanted.block))

    def _plan(self, stages: Sequence[Progress], now: float) -> None:
        """Tell the planner of stages that are whole; none before those that were called earlier."""
        planned = []
        for stage in stages:
            if stage.is_planned:
                continue
            if not stage.tasks or not stage.is_whole(now, QUIET_S):
                break
            stage.is_planned = True
            planned.append(self._sized(stage))
        if planned:
            self._tell(StagesPlanned(tuple(planned)))

    def _follow(self, stages: Sequence[Progress], now: float) -> None:
        """Tell the planner how far stages are."""
        launched: dict[str, list[float]] = {}
        for task_id, at in self._driver.launched():
            if (of := self.stages.stage_of(task_id)) is not None:
                launched.setdefault(of.name, []).append(at)
        for stage in stages:
            if not stage.is_planned or stage.has_ended:
                continue
            running = launched.get(stage.name, [])
            if running and not stage.has_started:
                stage.has_started = True
                self._tell(StageStarted(stage.name))
            if not stage.left and stage.is_whole(now, QUIET_S):
                stage.has_ended = True
                self._tell(StageEnded(stage.name))
            elif running and (mean_s := stage.mean_s or stage.earlier_s) is not None:
                slots = max(stage.slots, len(running))
                end = ends_at(now, running, stage.left - len(running), mean_s, slots)
                self._tell(StageExpected(stage.name, end))

    def _open(self, stages: Sequence[Progress]) -> None:
        """Let go the tasks of the first stage that is not over, once there is a block for it.

        And those of later ones that can run although tasks of that are left: they did not have
        to wait for its end, and need not wait for blocks of their own.
        """
        is_first, is_busy = True, False
        for stage in stages:
            if stage.is_planned and not stage.has_ended:
                is_served = is_first and self.planner.serving(stage.name)
                if is_served or (is_busy and stage.held and self.planner.observed):
                    self._let_go([stage])
                is_first, is_busy = False, is_busy or stage.left > 0

    def _let_go(self, stages: Sequence[Progress]) -> None:
        for stage in stages:
            with self.stages.lock:
                stage.is_open = True
                held, stage.held = stage.held, []
            for go in held:
                go()

    def _sized(self, stage: Progress) -> Stage:
        """What a stage needs, by the size of its tasks, within what the user allows."""
        provider = self._inner.provider
        per_block, most = int(provider.nodes_per_block), self.blocks.most
        workers = max(1, math.floor(self._inner.workers_per_node))
        task = TaskInfo("stage", stage.category)
        past = self._before(task)
        share = self._driver.share(task, past)
        per_node = workers if not share else min(workers, max(1, math.floor(1 / share + 1e-9)))
        wanted = stage.nodes or math.ceil(stage.tasks * float(provider.parallelism) / per_node)
        nodes = min(max(1, wanted), per_block * most)
        blocks = math.ceil(nodes / per_block)
        stage.slots = nodes * per_node
        stage.earlier_s = mean_s = _mean_s(past)
        expected_s = None
        if mean_s is not None:
            expected_s = mean_s * math.ceil(stage.tasks / stage.slots)
        memory = getattr(provider, "mem_per_node", None)
        geometry = Geometry(
            math.ceil(nodes / blocks),
            int(getattr(provider, "cores_per_node", None) or workers),
            memory * GB if memory else None,
            str(getattr(provider, "partition", None) or ""),
        )
        return Stage(stage.name, geometry, blocks, expected_s, self._walltime_s(expected_s))

    def _walltime_s(self, expected_s: float | None) -> float | None:
        """How long its blocks may run; None leaves it to the provider, whose limit holds."""
        limit = getattr(self._inner.provider, "walltime", None)
        if expected_s is None or limit is None:
            return None
        hours, minutes, seconds = map(float, str(limit).split(":"))
        allowed = 3600 * hours + 60 * minutes + seconds
        return min(allowed, max(SHORTEST_S, MARGIN * expected_s))


def _mean_s(outcomes: Sequence[Outcome]) -> float | None:
    """How long tasks took on average; None if that is not known."""
    walls = [one.usage.wall_s for one in outcomes if one.usage.wall_s > 0]
    return math.fsum(walls) / len(walls) if walls else None
