"""When will the turn of each stage come, and when are its blocks to be asked for?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .leases import Block, Lease
from .policies import Policy


@dataclass(slots=True)
class Prospect:
    """What is to be expected of a lease."""

    lease: Lease
    turn: float
    """When the one before it is thought to be over; infinite if that is not known."""
    due: float
    """When its blocks are to be asked for; infinite if only when its turn has come."""


def outlook(
    leases: Iterable[Lease],
    blocks: Sequence[Block],
    policy: Policy,
    lead: Callable[[Lease], float],
    now: float,
) -> list[Prospect]:
    """Of each lease that is not over, in order; `lead` says how long its blocks may wait.

    A block cannot be told to follow one that nobody has asked for. So with dependencies a
    stage is due as soon as a later one is; too early it costs nothing there.
    """
    found: list[Prospect] = []
    turn = now
    for lease in leases:
        if lease.is_over:
            continue
        is_ahead = policy.is_ahead and not lease.is_late
        lead_s = lead(lease) if is_ahead else 0.0
        due = max(turn - lead_s, lease.ahead_from) if is_ahead else math.inf
        if not found or lease.started:
            due = now
        found.append(Prospect(lease, turn, max(due, lease.not_before)))
        begins = turn if lease.started else max(turn, _ready_at(lease, blocks, lead_s, now))
        turn = max(now, lease.end_after(begins))
    if policy.is_dependent:
        earliest = math.inf
        for prospect in reversed(found):
            prospect.due = earliest = max(min(prospect.due, earliest), prospect.lease.not_before)
    return found


def _ready_at(lease: Lease, blocks: Iterable[Block], lead_s: float, now: float) -> float:
    """When its blocks are thought to be there."""
    mine = [block for block in blocks if block.lease is lease and not block.is_cancelled]
    if any(block.started_at is not None for block in mine):
        return now
    return max(now, min((block.requested_at for block in mine), default=now) + lead_s)
