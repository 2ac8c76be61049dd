"""Replay a trace task by task: what would each attempt have been, and how would it have ended?

The strategies are driven through the same `Categories` that the live executor
uses. Nothing waits for anything here; `cluster` replays with nodes and a queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from parsl_sizer.model import (
    NOTHING,
    Amounts,
    Attempt,
    Ending,
    Kind,
    Outcome,
    Resources,
    Usage,
    exceeded,
)
from parsl_sizer.sizing.categories import Categories

from .trace import Row


@dataclass(frozen=True, slots=True)
class Replayed:
    """A task of the trace with all its attempts, and the kinds in which no node holds it."""

    row: Row
    outcomes: tuple[Outcome, ...]
    impossible: frozenset[Kind] = NOTHING


def replay(
    rows: Iterable[Row],
    categories: Categories,
    node: Resources,
    *,
    ttf: float = 1.0,
    together: bool = False,
) -> Iterator[Replayed]:
    """Size, run and learn every row in order, on a machine with room for one task.

    A failed attempt lasts `ttf` of the task's time. A kind in which the row exceeds
    the node is left out of it; with `together` the whole row is, as any kind fails
    the attempt.
    """
    if not 0 <= ttf <= 1:
        raise ValueError(f"ttf must be between 0 and 1, not {ttf}")
    for row in rows:
        impossible = node.exceeded_by(row.peak)
        peak = row.peak
        if impossible:
            peak = {kind: p for kind, p in peak.items() if kind not in impossible}
        if (impossible and together) or not peak:
            yield Replayed(row, (), impossible)
            continue
        yield Replayed(row, _run(row, peak, categories, node, ttf), impossible)


def _run(
    row: Row, peak: Amounts, categories: Categories, node: Resources, ttf: float
) -> tuple[Outcome, ...]:
    task = row.task
    outcomes: list[Outcome] = []
    while True:
        proposal = categories.propose(task, outcomes, node)
        if proposal is None:
            return tuple(outcomes)
        attempt = Attempt(task, len(outcomes) + 1, proposal.amounts, why=proposal.why)
        outcome = ended(attempt, peak, row.time_s, ttf)
        outcomes.append(outcome)
        categories.learn(outcome)
        if outcome.ending is Ending.DONE:
            return tuple(outcomes)


def ended(attempt: Attempt, peak: Amounts, time_s: float, ttf: float) -> Outcome:
    """How an attempt at a task with this peak ends."""
    over = exceeded(attempt.allocation, peak)
    if not over:
        return Outcome(attempt, Ending.DONE, usage=Usage(peak, time_s))
    seen = {
        kind: min(amount, attempt.allocation.get(kind, amount)) for kind, amount in peak.items()
    }
    return Outcome(attempt, Ending.EXHAUSTED, usage=Usage(seen, time_s * ttf), exhausted=over)
