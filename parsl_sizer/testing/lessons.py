"""Outcomes to learn from: repeatable, endless, and as untidy as real ones.

Three categories: one whose memory is linear in the input size, one with two modes and
no input size, one that users gave a request for. Some attempts fail, raise or are
lost; some peaks and run times are missing; now and then a feature comes that no other
task has.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.strategies import Hindsight, Setting

NODE = Resources(cores=16, memory=64e9, disk=64e9)
"""The largest node in the laws, that of the papers' evaluations."""

CATEGORIES = ("align", "call", "merge")
_LARGEST_INPUT = 4e9


def task(number: int, category: str = CATEGORIES[0]) -> TaskInfo:
    """The task of that number, always the same."""
    rng = random.Random(2 * number + 1)
    features: dict[str, float] = {}
    if category == CATEGORIES[0]:
        features["input_size"] = rng.uniform(1e6, _LARGEST_INPUT)
    if rng.random() < 0.01:
        features[f"only_in_{number}"] = rng.random()
    requested = {Kind.MEMORY: 2.0 ** rng.randint(30, 35)} if category == CATEGORIES[2] else {}
    return TaskInfo(number, category, features=features, requested=requested)


def peak_of(info: TaskInfo) -> dict[Kind, float]:
    """What a task of the lessons uses: a function of the task, so that hindsight is cheap."""
    rng = random.Random(f"peak of {info.task_id}")
    size = info.features.get("input_size", -1.0)
    if 0 <= size <= _LARGEST_INPUT:
        memory = 3e8 + 4 * size * rng.uniform(0.9, 1.2)
    else:
        memory = rng.choice((1e9, 12e9)) * rng.lognormvariate(0, 0.2)
    return {
        Kind.CORES: rng.choice((0.3, 0.9, 1.0, 1.0, 3.7)),
        Kind.MEMORY: min(memory, NODE.memory),
        Kind.DISK: min(5e8 * rng.lognormvariate(0, 1), NODE.disk),
    }


SETTING = Setting(
    objective="waste",
    hindsight=Hindsight(peak_of, {kind: 0.9 * NODE[kind] for kind in Kind}, len(CATEGORIES)),
)
"""The setting in the laws. It has hindsight, for the strategies that need it."""


def lesson(number: int, category: str = CATEGORIES[0]) -> Outcome:
    """How that task ended."""
    info = task(number, category)
    rng = random.Random(2 * number)
    wall_s = 0.0 if rng.random() < 0.05 else rng.lognormvariate(4, 1)
    peak: dict[Kind, float] = {
        kind: amount for kind, amount in peak_of(info).items() if rng.random() > 0.05
    }
    fate = rng.random()
    ending, exhausted = Ending.DONE, frozenset[Kind]()
    allocation = {kind: NODE[kind] for kind in SETTING.kinds}
    if fate < 0.10 and peak:
        ending = Ending.EXHAUSTED
        exhausted = frozenset(rng.sample(sorted(peak), min(len(peak), rng.choice((1, 1, 2)))))
        for kind in exhausted:
            allocation[kind] = peak[kind] = 0.7 * peak[kind]
    elif fate < 0.13:
        ending = Ending.RAISED
    elif fate < 0.16:
        ending, peak = Ending.LOST, {}
    attempt = Attempt(info, 1, allocation)
    return Outcome(attempt, ending, usage=Usage(peak, wall_s), exhausted=exhausted)


@lru_cache(maxsize=8)
def lessons(count: int, category: str | None = None) -> tuple[Outcome, ...]:
    """That many outcomes in order, of one category or of all of them mixed.

    >>> [outcome.attempt.task.category for outcome in lessons(4)]
    ['align', 'call', 'merge', 'align']
    """
    return tuple(_lessons(count, category))


def _lessons(count: int, category: str | None) -> Iterator[Outcome]:
    for number in range(count):
        yield lesson(number, category or CATEGORIES[number % len(CATEGORIES)])
