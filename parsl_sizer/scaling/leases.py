"""What is known of blocks, and of the stages that need them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .geometry import Geometry, envelope
from .messages import Stage
from .policies import Policy


@dataclass(slots=True, eq=False)
class Block:
    """A block that was asked for and has not ended, as far as is known."""

    name: str
    lease: Lease
    requested_at: float
    after: frozenset[str] = frozenset()
    started_at: float | None = None
    freed_at: float | None = None
    """When the last of those that it was to follow ended."""
    is_cancelled: bool = False


@dataclass(slots=True, eq=False)
class Lease:
    """Stages in a row that use the same blocks, and how far they are."""

    geometry: Geometry
    blocks: int
    stages: list[Stage]
    started: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    began_at: float | None = None
    """When the stage began that began last."""
    ends_at: dict[str, float] = field(default_factory=dict)
    """When stages were said to end."""
    lead_s: float | None = None
    """How long before it can begin its blocks are asked for; None if nobody was asked yet."""
    lead_from: int = 0
    """Of how many waits that was estimated."""
    is_late: bool = False
    """Whether its blocks came too early once, for too long: it waits for its turn then."""
    ahead_from: float = -math.inf
    """Until when nothing is asked for ahead of its turn, since it would come too early again."""
    not_before: float = -math.inf
    """Until when nothing is asked for, since a request of it failed."""
    over_at: float | None = None
    """When its last stage ended."""

    @property
    def name(self) -> str:
        """That of the first of its stages that is not over, or else of the last."""
        left = (stage.name for stage in self.stages if stage.name not in self.ended)
        return next(left, self.stages[-1].name)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return len(self.ended) == len(self.stages)

    @property
    def is_running(self) -> bool:
        """Whether it has begun and something is left to do."""
        return bool(self.started) and not self.is_over

    @property
    def walltime_s(self) -> float | None:
        """How long its blocks may have to run, if that is said of all stages."""
        left = [stage.walltime_s for stage in self.stages if stage.name not in self.ended]
        return math.fsum(one for one in left if one) if None not in left else None

    def end_after(self, start: float) -> float:
        """When it will be over if it goes on at this time; infinite if that is not known."""
        at = start
        for stage in self.stages:
            if stage.name in self.ended:
                continue
            if stage.name in self.started and stage.name in self.ends_at:
                at = max(at, self.ends_at[stage.name])
            elif stage.expected_s is None:
                return math.inf
            elif stage.name in self.started and self.began_at is not None:
                at = max(at, self.began_at + stage.expected_s)
            else:
                at += stage.expected_s
        return at


def leased(stages: Iterable[Stage], policy: Policy, last: Lease | None) -> list[Lease]:
    """The leases that new stages need beside the last one, which takes those that it suits.

    A last one that has given its blocks back suits none, and is not told here.
    """
    new: list[Lease] = []
    several: Sequence[Stage] = tuple(stages)
    if policy.is_whole and several:
        geometry = envelope(stage.geometry for stage in several)
        blocks = max(stage.blocks for stage in several)
        if last and _suits(last, geometry, blocks):
            last.stages.extend(several)
            return []
        return [Lease(geometry, blocks, list(several))]
    for stage in several:
        if last and (last.geometry, last.blocks) == (stage.geometry, stage.blocks):
            last.stages.append(stage)
        else:
            last = Lease(stage.geometry, stage.blocks, [stage])
            new.append(last)
    return new


def _suits(lease: Lease, geometry: Geometry, blocks: int) -> bool:
    return envelope([lease.geometry, geometry]) == lease.geometry and blocks <= lease.blocks
