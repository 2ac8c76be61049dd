"""What would other allocations of memory have cost, and which ladder is best?

Tasks that were done go in: their peaks, their times, and what they were given. Out come the
cost of every first allocation, and the ladder that the package would use from now on, with
what it saves and how sure that is.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from parsl_sizer.archive.base import SAMPLED, Entry
from parsl_sizer.model import Ending, Kind, Outcome, SizerError
from parsl_sizer.strategies.evidence import Evidence
from parsl_sizer.strategies.ladder import cheapest_ladder
from parsl_sizer.strategies.views import RETRY_PRICE, AllTasks

from .phrases import plural

FEWEST = 20
"""With fewer measured peaks nothing is advised."""
RESAMPLES, MOST_RESAMPLED = 100, 1000
"""Resamples of the bootstrap, and the tasks in one: more would narrow the interval by little."""
CONFIDENCE = 0.9
ALLOCATED, REQUESTED, LARGEST_PEAK = "allocated", "requested", "largest peak"
"""What a saving may be against."""

CurvePoint = tuple[float, float, float]
"""A first allocation in bytes, what it reserves in bytes x seconds, and retries per task."""


class TooFew(SizerError):
    """There is too little to advise on."""


class Finished(NamedTuple):
    """A task that was done, and whose peak of memory and time are known; or that ran out."""

    peak: float
    wall_s: float
    allocated: float | None = None
    """Bytes x seconds that its attempts were given in all."""
    requested: float | None = None
    """Bytes."""
    failed: tuple[float, float] | None = None
    """What its last attempt that ran out of memory was given, and its time."""
    is_sampled: bool = False
    """Then the peak is the largest of some samples, and a lower bound."""
    ran_out: bool = False
    """Then it was not done, and the peak is what it ran out of in the end: it needs more."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to allocate in a category from now on, and what that would have saved."""

    tasks: int
    """With a measured peak that fits the node."""
    sampled: int
    """Of these, those whose peaks are lower bounds."""
    too_large: int
    """Tasks that are left out: no node has so much, or they ran out of as much as any used."""
    least: float
    largest: float
    """The range of the peaks."""
    ladder: tuple[float, ...]
    """What to allocate first, and after each failure."""
    enough: tuple[float, ...]
    """The share of the tasks, those that are too large among them, that each step suits."""
    reserved_byte_s: float
    """What the ladder reserves for the tasks that are compared."""
    retries_per_task: float
    baseline: str
    """What it is compared with: `ALLOCATED`, `REQUESTED` or `LARGEST_PEAK`."""
    baseline_byte_s: float
    compared: int
    """The tasks of which that is known."""
    saving: float
    """The share of the baseline that is saved; below 0 the ladder takes more."""
    low: float
    high: float
    """The interval of the saving, on tasks that the ladder was not made from."""
    curve: tuple[CurvePoint, ...]


def finished(entries: Iterable[Entry]) -> dict[str, list[Finished]]:
    """The tasks of each category that were done, in the order in which they come.

    Behind them come those that ran out of memory and never were.
    """
    over: set[tuple[str, int | str]] = set()
    done: dict[str, list[tuple[tuple[str, int | str], Outcome]]] = {}
    failures: dict[tuple[str, int | str], list[Outcome]] = {}
    for run, outcome in entries:
        task = outcome.attempt.task
        key = run.run_id, task.task_id
        if outcome.ending is Ending.DONE:
            over.add(key)
            if outcome.usage.wall_s > 0 and outcome.usage.peak.get(Kind.MEMORY, 0.0) > 0:
                done.setdefault(task.category, []).append((key, outcome))
        elif Kind.MEMORY in outcome.exhausted:
            failures.setdefault(key, []).append(outcome)
    tasks = {
        category: [_finished(outcome, failures.get(key, [])) for key, outcome in found]
        for category, found in done.items()
    }
    for key, attempts in failures.items():
        if key in over:
            continue
        last = _last(attempts)
        category, given = last.attempt.task.category, last.attempt.allocation.get(Kind.MEMORY)
        if category in tasks and given is not None:
            tasks[category].append(Finished(given, last.usage.wall_s, ran_out=True))
    return tasks


def _finished(outcome: Outcome, failures: Sequence[Outcome]) -> Finished:
    usage = outcome.usage
    given = [_given(attempt) for attempt in (*failures, outcome)]
    allocated = [amount for amount in given if amount is not None]
    failed = None
    if failures and Kind.MEMORY in (last := _last(failures)).attempt.allocation:
        failed = last.attempt.allocation[Kind.MEMORY], last.usage.wall_s
    return Finished(
        usage.peak[Kind.MEMORY],
        usage.wall_s,
        math.fsum(allocated) if len(allocated) == len(given) else None,
        outcome.attempt.task.requested.get(Kind.MEMORY),
        failed,
        SAMPLED in outcome.layers,
    )


def _last(failures: Sequence[Outcome]) -> Outcome:
    return max(failures, key=lambda failure: failure.attempt.number)


def _given(outcome: Outcome) -> float | None:
    amount = outcome.attempt.allocation.get(Kind.MEMORY)
    return None if amount is None else amount * outcome.usage.wall_s


def curve(tasks: Iterable[tuple[float, float]], *, theta: float = 1.0) -> Sequence[CurvePoint]:
    """What starting at each allocation reserves, for tasks of these peaks and times.

    After a failure the cheapest next step is taken. `theta` is the part of its time after
    which a failing attempt dies.

    >>> curve([(1e9, 60.0)] * 9 + [(8e9, 60.0)])
    [(1000000000.0, 1080000000000.0, 0.1), (8000000000.0, 4800000000000.0, 0.0)]
    """
    evidence = Evidence()
    for number, (peak, wall_s) in enumerate(tasks):
        evidence.add(number, peak, wall_s, ())
    points = [(peak, time, count) for _, (peak, time, count) in sorted(evidence.bins.items())]
    if not points:
        return []
    used = sum(peak * time for peak, time, _ in points)
    ladder = cheapest_ladder(points, theta=theta, price=RETRY_PRICE * used)
    size, early = len(ladder.amounts), 1.0 - theta
    # From the largest down: the time of the tasks above each, and what they reserve from there.
    above, rest, retries = [0.0] * size, [0.0] * size, [0.0] * size
    found: list[CurvePoint] = []
    for index in range(size - 1, -1, -1):
        if index < size - 1:
            above[index] = above[index + 1] + points[index + 1][1]
            step = ladder.following[index]
            held = above[index] - early * above[step]
            rest[index] = ladder.amounts[step] * held + rest[step]
            retries[index] = ladder.share[index] + retries[step]
        first = ladder.amounts[index]
        reserved = first * (evidence.time_s - early * above[index]) + rest[index]
        found.append((first, reserved, retries[index]))
    return found[::-1]


def advise(
    category: str, tasks: Sequence[Finished], *, node: float = math.inf, seed: int = 0
) -> Advice:
    """The best ladder for a category on nodes of so much memory; raises `TooFew`."""
    done = [task for task in tasks if not task.ran_out]
    fitting = [task for task in done if task.peak <= node]
    if len(fitting) < FEWEST:
        fit = " that fit the node" if len(fitting) < len(done) else ""
        raise TooFew(too_few(category, len(fitting), fit))
    baseline, compared = _baseline(fitting)
    evidence = _evidence(fitting)
    rungs, theta = _rungs(evidence, node), evidence.theta
    reserved, _ = _cost(rungs, compared, theta, node)
    _, retries = _cost(rungs, fitting, theta, node)
    before = math.fsum(_before(task, baseline, evidence.maximum) for task in compared)
    saving = 1.0 - reserved / before
    low, high = _interval(compared, baseline, evidence, node, seed)
    peaks_seen = sorted(task.peak for task in fitting)
    # Of those that ran out of less, because they were not tried again, say, nothing is known.
    ran_out = sum(task.ran_out and task.peak >= peaks_seen[-1] for task in tasks)
    too_large = len(done) - len(fitting) + ran_out
    return Advice(
        len(fitting),
        sum(task.is_sampled for task in fitting),
        too_large,
        peaks_seen[0],
        peaks_seen[-1],
        rungs,
        tuple(bisect_right(peaks_seen, rung) / (len(fitting) + too_large) for rung in rungs),
        reserved,
        retries,
        baseline,
        before,
        len(compared),
        saving,
        min(low, saving),
        max(high, saving),
        tuple(curve([(task.peak, task.wall_s) for task in fitting], theta=theta)),
    )


def too_few(category: str, measured: int, which: str = "") -> str:
    """Why there is no advice."""
    peaks = plural(measured, "measured peak")
    return (
        f"Category {category!r} has {peaks} of memory{which}, and {FEWEST} is the fewest to "
        "advise on."
    )


def _baseline(tasks: Sequence[Finished]) -> tuple[str, Sequence[Finished]]:
    """What a saving is against, and the tasks of which that is known: half of them or more."""
    for name in (ALLOCATED, REQUESTED):
        known = [task for task in tasks if getattr(task, name)]
        if 2 * len(known) >= len(tasks):
            return name, known
    return LARGEST_PEAK, tasks


def _before(task: Finished, baseline: str, largest: float) -> float:
    """The bytes x seconds that a task took without the advice."""
    if baseline == ALLOCATED and task.allocated is not None:
        return task.allocated
    if baseline == REQUESTED and task.requested is not None:
        return task.requested * task.wall_s
    return largest * task.wall_s


def _evidence(tasks: Sequence[Finished]) -> Evidence:
    evidence = Evidence()
    for number, task in enumerate(tasks):
        if task.failed is not None:
            evidence.add_failure(number, *task.failed)
        evidence.add(number, task.peak, task.wall_s, ())
    return evidence


def _rungs(evidence: Evidence, node: float) -> tuple[float, ...]:
    """The ladder from the evidence, up to the step that is enough for all that was seen."""
    fitted = AllTasks()
    fitted.refit(evidence)
    ladder, _ = fitted.found
    rungs: list[float] = []
    for rung in ladder.rungs:
        rungs.append(min(rung, node))
        if rungs[-1] >= min(evidence.maximum, node):
            break
    return tuple(rungs)


def _cost(
    rungs: Sequence[float], tasks: Sequence[Finished], theta: float, node: float
) -> tuple[float, float]:
    """The bytes x seconds that a ladder reserves for tasks, and the retries per task."""
    reserved, retries = 0.0, 0
    for task in tasks:
        for rung in rungs:
            if rung >= task.peak:
                reserved += rung * task.wall_s
                break
            reserved += theta * rung * task.wall_s
            retries += 1
        else:  # a peak above all those that the ladder was made from
            reserved += max(min(2.0 * rungs[-1], node), task.peak) * task.wall_s
    return reserved, retries / len(tasks)


def _interval(
    tasks: Sequence[Finished], baseline: str, evidence: Evidence, node: float, seed: int
) -> tuple[float, float]:
    """Between which the saving is: ladders from resamples, tried on the tasks not in them."""
    random = Random(seed)
    if len(tasks) > MOST_RESAMPLED:
        tasks = random.sample(tasks, MOST_RESAMPLED)
    size, savings = len(tasks), []
    for _ in range(RESAMPLES):
        drawn = [random.randrange(size) for _ in range(size)]
        inside = set(drawn)
        others = [task for place, task in enumerate(tasks) if place not in inside]
        if not others:
            continue
        rungs = _rungs(_evidence([tasks[place] for place in drawn]), node)
        reserved, _ = _cost(rungs, others, evidence.theta, node)
        before = math.fsum(_before(task, baseline, evidence.maximum) for task in others)
        savings.append(1.0 - reserved / before)
    savings.sort()
    cut = int(len(savings) * (1.0 - CONFIDENCE) / 2.0)
    return (savings[cut], savings[-1 - cut]) if savings else (-math.inf, math.inf)
