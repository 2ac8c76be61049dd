"""Counts and sums over the attempts of a run, or of one of its categories."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from parsl_sizer.archive.base import SAMPLED
from parsl_sizer.model import Ending, Kind, Outcome, is_bytes

from .figures import Totals, Use
from .run import KINDS

GB_H, CORE_H = 1e9 * 3600, 3600.0
"""Byte-seconds and core-seconds in what is printed."""


def finite(value: float | None) -> float:
    """The amount; 0 for what is not known or cannot be."""
    return value if value is not None and 0 <= value < math.inf else 0.0


@dataclass(slots=True)
class Held:
    """One kind of resource, in its unit times seconds."""

    allocations: int = 0
    measured: int = 0
    allocated: float = 0.0
    used: float = 0.0
    judged: float = 0.0
    """What attempts held of which it is known what they used."""
    kept: float = 0.0
    """What was used of that."""
    largest_allocation: float = 0.0
    largest_peak: float = 0.0

    def add(self, held: float | None, used: float | None, peak: float | None, ran: float) -> None:
        """An attempt held so much, and used so much (0 if it did not finish) for `ran`."""
        if held is not None:
            self.allocations += 1
            self.allocated += held * ran
            self.largest_allocation = max(self.largest_allocation, held)
        if used is not None and peak is not None:
            self.measured += 1
            self.used += used * ran
            self.largest_peak = max(self.largest_peak, peak)
        if held is not None and used is not None:
            self.judged += held * ran
            self.kept += used * ran

    def absorb(self, other: Held) -> None:
        """Take in the sums of others."""
        for name in ("allocations", "measured", "allocated", "used", "judged", "kept"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("largest_allocation", "largest_peak"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))

    def use(self, kind: Kind) -> Use:
        """The figures."""
        unit, name = (GB_H, "GB·h") if is_bytes(kind) else (CORE_H, "core·h")
        return Use(
            unit=name,
            allocated=self.allocated / unit if self.allocations else None,
            used=self.used / unit if self.measured else None,
            wasted=(self.judged - self.kept) / unit if self.judged else None,
            efficiency=self.kept / self.judged if self.judged else None,
            largest_allocation=self.largest_allocation if self.allocations else None,
            largest_peak=self.largest_peak if self.measured else None,
        )


@dataclass(slots=True)
class Sums:
    """Counts and sums over the tasks of a category, or of a run."""

    counts: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    wall_s: float = 0.0
    kinds: dict[Kind, Held] = field(default_factory=lambda: {kind: Held() for kind in KINDS})

    def add(self, outcome: Outcome, wall_s: float) -> None:
        """Take in an attempt."""
        self.counts["attempts"] += 1
        self.counts["overruns"] += outcome.overran
        self.counts["sampled"] += SAMPLED in outcome.layers
        self.endings[outcome.ending.value] += 1
        for cause in _causes(outcome):
            self.causes[cause] += 1
        self.wall_s += wall_s
        is_done = outcome.ending is Ending.DONE
        for kind, held in self.kinds.items():
            peak = outcome.usage.peak.get(kind)
            used = peak
            if kind is Kind.CORES and outcome.usage.cpu_s is not None and wall_s:
                used = finite(outcome.usage.cpu_s) / wall_s
            held.add(
                outcome.attempt.allocation.get(kind),
                used if is_done else 0.0,
                (peak if peak is not None else used) if is_done else None,
                wall_s,
            )

    def absorb(self, other: Sums) -> None:
        """Take in the sums of others."""
        self.counts.update(other.counts)
        self.endings.update(other.endings)
        self.causes.update(other.causes)
        self.wall_s += other.wall_s
        for kind, held in self.kinds.items():
            held.absorb(other.kinds[kind])

    def totals(self) -> Totals:
        """The figures."""
        tasks, attempts = self.counts["tasks"], self.counts["attempts"]
        return Totals(
            tasks=tasks,
            failed=self.counts["failed"],
            attempts=attempts,
            retries=attempts - tasks,
            overruns=self.counts["overruns"],
            sampled=self.counts["sampled"],
            wall_s=self.wall_s,
            endings={ending.value: self.endings[ending.value] for ending in Ending},
            causes=dict(sorted(self.causes.items(), key=lambda item: (-item[1], item[0]))),
            kinds={kind.value: held.use(kind) for kind, held in self.kinds.items()},
        )


def _causes(outcome: Outcome) -> list[str]:
    if outcome.ending is Ending.DONE:
        return []
    if outcome.ending is Ending.EXHAUSTED:
        return [kind.value for kind in outcome.exhausted] or ["exhausted"]
    return ["node_lost" if outcome.node_lost else outcome.ending.value]
