"""Replay workflows of stages on a batch queue: how long would they have taken, and what cost?

The planner is the one that runs live. Several workflows may run at once, each with a planner
of its own; those that are given the same `WaitEstimator` learn from each other.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

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
    StagesPlanned,
    StageStarted,
    Tick,
)

from .batch import Queue
from .kernel import Kernel


@dataclass(frozen=True)
class StagedWorkflow:
    """Stages, and how long each really takes."""

    name: str
    stages: tuple[Stage, ...]
    times_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.stages) != len(self.times_s):
            raise ValueError(f"{len(self.stages)} stages of {self.name} need as many times")


@dataclass(frozen=True)
class Miss:
    """A block that ran before its stage could begin, until it was used or cancelled."""

    geometry: Geometry
    idle_s: float
    limit_s: float
    """How long it would have been kept at most."""
    is_used: bool

    @property
    def core_s(self) -> float:
        """What it cost."""
        return self.geometry.cores * self.idle_s

    @property
    def bound_core_s(self) -> float:
        """What it could have cost at most."""
        return self.geometry.cores * self.limit_s


@dataclass
class StagedResult:
    """What came of a workflow. What blocks held is in core-seconds."""

    name: str
    submitted_at: float
    ended_at: float = math.nan
    waits_s: list[float] = field(default_factory=list)
    """Of each stage, how long it waited for its blocks when it could have begun."""
    core_s: float = 0.0
    misses: list[Miss] = field(default_factory=list)
    requests: int = 0

    @property
    def makespan_s(self) -> float:
        """From when the workflow was submitted to when its last stage ended."""
        return self.ended_at - self.submitted_at

    @property
    def waited_s(self) -> float:
        """The waits of all stages."""
        return math.fsum(self.waits_s)


@dataclass(eq=False)
class _Job:
    """A block in the batch system."""

    name: str
    stage: str
    geometry: Geometry
    wait_s: float
    ready_at: float
    after: set[str]
    started_at: float = math.nan
    is_running: bool = False
    is_early: bool = False
    """Whether it runs and its stage cannot begin yet."""

    def is_due(self, now: float) -> bool:
        """Whether it is to start."""
        return not self.is_running and not self.after and self.ready_at <= now


class Run:
    """One workflow on a queue; `happen` is called when its time has come."""

    def __init__(
        self,
        workflow: StagedWorkflow,
        planner: Planner,
        queue: Queue,
        kernel: Kernel[Happening],
        *,
        accrues: bool = True,
    ) -> None:
        self.workflow = workflow
        self.planner = planner
        self.result = StagedResult(workflow.name, kernel.now)
        self._queue = queue
        self._kernel = kernel
        self._accrues = accrues
        self._inbox: deque[Event] = deque()
        self._look_at: float | None = None
        self._jobs: dict[str, _Job] = {}
        self._at = 0
        self._turn_at = kernel.now
        self._is_running = False

    @property
    def is_over(self) -> bool:
        """Whether all stages have ended."""
        return self._at == len(self.workflow.stages)

    def begin(self) -> None:
        """Submit the workflow."""
        self.tell(StagesPlanned(self.workflow.stages))

    def happen(self, what: str) -> None:
        """A block is ready to start, a stage ends, or it is time to look."""
        match what.partition(" "):
            case "ready", _, name:
                job = self._jobs.get(name)
                if job is not None and job.is_due(self._kernel.now):
                    self._start(job)
            case "end", _, stage:
                self._end_stage(stage)
            case _:
                self._look_at = None
                self.tell(Tick())

    def tell(self, event: Event) -> None:
        """Let the planner know, and do what it wants."""
        now = self._kernel.now
        self._inbox.append(event)
        while self._inbox:
            for action in self.planner.handle(self._inbox.popleft(), now):
                match action:
                    case RequestBlock():
                        self._request(action)
                    case CancelBlock(name):
                        self._end(self._jobs.pop(name))
            self._go_on()
        due = self.planner.due_at(now)
        if due is not None and (self._look_at is None or due < self._look_at):
            self._look_at = due
            self._kernel.at(due, (self, "look"))

    def _request(self, asked: RequestBlock) -> None:
        now = self._kernel.now
        wait_s = self._queue(asked.geometry, now)
        after = set(asked.after) & set(self._jobs)
        job = _Job(asked.block, asked.stage, asked.geometry, wait_s, now + wait_s, after)
        self._jobs[job.name] = job
        self.result.requests += 1
        self._kernel.at(job.ready_at, (self, f"ready {job.name}"))

    def _start(self, job: _Job) -> None:
        job.started_at, job.is_running = self._kernel.now, True
        to_come = self.workflow.stages[self._at + 1 :]
        job.is_early = any(stage.name == job.stage for stage in to_come)
        self.tell(BlockStarted(job.name))

    def _end(self, job: _Job) -> None:
        now = self._kernel.now
        if job.is_running:
            self.result.core_s += job.geometry.cores * (now - job.started_at)
        if job.is_early:
            self._miss(job, now, is_used=False)
        for other in self._jobs.values():
            if job.name in other.after:
                other.after.discard(job.name)
                if not self._accrues:
                    other.ready_at = now + other.wait_s
                self._kernel.at(max(now, other.ready_at), (self, f"ready {other.name}"))
        self._inbox.append(BlockEnded(job.name))

    def _miss(self, job: _Job, until: float, *, is_used: bool) -> None:
        limit_s = self.planner.idle_limit_s(job.name)
        self.result.misses.append(Miss(job.geometry, until - job.started_at, limit_s, is_used))

    def _go_on(self) -> None:
        """Begin the next stage if it is its turn and its blocks are there."""
        if self._is_running or self.is_over:
            return
        stage = self.workflow.stages[self._at]
        serving = self.planner.serving(stage.name)
        if len(serving) < stage.blocks:
            return
        for job in (self._jobs[name] for name in serving):
            if job.is_early and job.started_at < self._turn_at:
                self._miss(job, self._turn_at, is_used=True)
            job.is_early = False
        now = self._kernel.now
        self._is_running = True
        self.result.waits_s.append(now - self._turn_at)
        self._kernel.at(now + self.workflow.times_s[self._at], (self, f"end {stage.name}"))
        self._inbox.append(StageStarted(stage.name))

    def _end_stage(self, stage: str) -> None:
        now = self._kernel.now
        self._at += 1
        self._turn_at = now
        self._is_running = False
        if self.is_over:
            self.result.ended_at = now
        self.tell(StageEnded(stage))


Happening = tuple[Run, str]


def replay_staged(
    workflows: Iterable[tuple[StagedWorkflow, Planner]], queue: Queue, *, accrues: bool = True
) -> list[StagedResult]:
    """What comes of these workflows, all submitted at once.

    A block that is told to follow another starts when that has ended and its own wait is
    over. Whether that wait goes on meanwhile, or only begins then, is a setting of the batch
    system: `accrues`.

    >>> from random import Random
    >>> from parsl_sizer.scaling import WaitEstimator
    >>> many, one = Geometry(4, 28), Geometry(1, 1)
    >>> stages = Stage("align", many, expected_s=1000.0), Stage("merge", one, expected_s=100.0)
    >>> workflow = StagedWorkflow("two", stages, (1000.0, 100.0))
    >>> for policy in ("big-job", "per-stage"):
    ...     planner = Planner(policy, WaitEstimator(), Random(1), max_blocks=2)
    ...     (found,) = replay_staged([(workflow, planner)], lambda geometry, now: 60.0)
    ...     print(found.makespan_s, found.waits_s, found.core_s)
    1160.0 [60.0, 0.0] 123200.0
    1220.0 [60.0, 60.0] 112100.0
    """
    kernel: Kernel[Happening] = Kernel()
    runs = [
        Run(workflow, planner, queue, kernel, accrues=accrues) for workflow, planner in workflows
    ]
    for run in runs:
        run.begin()
    for run, what in kernel:
        run.happen(what)
    return [run.result for run in runs]
