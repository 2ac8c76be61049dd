"""What a planner of blocks is told, and what it wants done.

A driver, live or simulated, turns what happens into events and carries actions out. Blocks
have the names that the planner gave them; what the batch system calls them the driver knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from .geometry import Geometry


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a workflow that begins when the one before it has ended.

    `expected_s` is how long it is thought to run once its blocks are there, None if that
    is not known; `walltime_s` how long its blocks may run.
    """

    name: str
    geometry: Geometry
    blocks: int = 1
    expected_s: float | None = None
    walltime_s: float | None = None

    def __post_init__(self) -> None:
        if self.blocks < 1:
            raise ValueError(f"stage {self.name!r} needs a block or more, not {self.blocks}")


@dataclass(frozen=True, slots=True)
class StagesPlanned:
    """These stages are to run in this order, after those planned before."""

    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class StageStarted:
    """The first task of a stage runs, also again after the stage was thought over."""

    stage: str


@dataclass(frozen=True, slots=True)
class StageExpected:
    """A stage that runs is thought to end then."""

    stage: str
    ends_at: float


@dataclass(frozen=True, slots=True)
class StageEnded:
    """Nothing is left to do in a stage."""

    stage: str


@dataclass(frozen=True, slots=True)
class BlockStarted:
    """A requested block runs; `wait_s` if the batch system tells better than our clock."""

    block: str
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class BlockEnded:
    """A block is gone, for whatever reason: cancelled, refused, killed, out of time."""

    block: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = StagesPlanned | StageStarted | StageExpected | StageEnded | BlockStarted | BlockEnded | Tick


@dataclass(frozen=True, slots=True)
class RequestBlock:
    """Ask for a block; to start only when those in `after` have ended, if that can be said."""

    block: str
    stage: str
    geometry: Geometry
    walltime_s: float | None
    after: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class CancelBlock:
    """End a block, or take its request back. It counts until its end is reported."""

    block: str
    why: str


Action = RequestBlock | CancelBlock
