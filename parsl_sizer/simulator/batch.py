"""Batch queues: how long would a block have waited?

Waits are drawn from a distribution for each geometry, or replayed from what a real queue did.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from random import Random
from typing import NamedTuple

from parsl_sizer.model import TraceError
from parsl_sizer.scaling import Geometry

Queue = Callable[[Geometry, float], float]
"""How long a block of this geometry waits that is asked for at this time, in seconds."""
SACCT = ("Submit", "Start", "NNodes", "NCPUS")


class Wait(NamedTuple):
    """What a real queue did with a job."""

    submitted_at: float
    geometry: Geometry
    wait_s: float


def drawn(random: Random, waits: Mapping[Geometry, tuple[float, float]]) -> Queue:
    """Lognormal waits with this mean and standard deviation for each geometry.

    >>> queue = drawn(Random(1), {Geometry(4, 28): (60.0, 0.0)})
    >>> round(queue(Geometry(4, 28), 0.0), 6)
    60.0
    """

    def wait(geometry: Geometry, _: float) -> float:
        mean, deviation = waits[geometry]
        return lognormal(random, mean, deviation)

    return wait


def lognormal(random: Random, mean: float, deviation: float) -> float:
    """A positive number from the lognormal distribution that has these."""
    if mean <= 0:
        return 0.0
    variance = math.log1p((deviation / mean) ** 2)
    return random.lognormvariate(math.log(mean) - variance / 2, math.sqrt(variance))


def replayed(waits: Iterable[Wait]) -> Queue:
    """Of the jobs with the same geometry, the wait of the last that had come by then.

    Before the first it is that of the first.

    >>> queue = replayed([Wait(0.0, Geometry(), 5.0), Wait(100.0, Geometry(), 80.0)])
    >>> queue(Geometry(), 99.0), queue(Geometry(), 100.0)
    (5.0, 80.0)
    """
    known: defaultdict[Geometry, list[Wait]] = defaultdict(list)
    for one in sorted(waits, key=lambda one: one.submitted_at):
        known[one.geometry].append(one)

    def wait(geometry: Geometry, now: float) -> float:
        rows = known.get(geometry)
        if not rows:
            raise TraceError(f"No job in the trace has the geometry of {geometry}.")
        return next((row for row in reversed(rows) if row.submitted_at <= now), rows[0]).wait_s

    return wait


def read_waits(path: Path) -> list[Wait]:
    """What `sacct --parsable2 --format=Submit,Start,NNodes,NCPUS` printed; times from the first.

    Jobs that have not started are left out, and steps, which have no line of their own with -X.
    """
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="|"))
    if not rows or any(name not in rows[0] for name in SACCT):
        raise TraceError(
            f"{path} does not begin with the columns {', '.join(SACCT)}: "
            f"sacct -X --parsable2 --format={','.join(SACCT)} prints them."
        )
    found = []
    for number, row in enumerate(rows, start=2):
        if row["Start"] in ("Unknown", "None", ""):
            continue
        try:
            submitted, started = (datetime.fromisoformat(row[name]) for name in SACCT[:2])
            nodes, cores = (int(row[name]) for name in SACCT[2:])
            geometry = Geometry(nodes, cores // nodes)
        except (ValueError, ZeroDivisionError) as error:
            raise TraceError(f"{path}, line {number}: {error}") from error
        found.append((submitted, geometry, (started - submitted).total_seconds()))
    first = min((submitted for submitted, _, _ in found), default=datetime.min)
    return [
        Wait((submitted - first).total_seconds(), geometry, max(0.0, wait_s))
        for submitted, geometry, wait_s in found
    ]
