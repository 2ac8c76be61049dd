"""Workflows: tasks that wait for others.

`connected` makes one of rows and of who waits for whom; `recorded` reads one that was run;
`generated` makes one up, in one of the five `SHAPES`, with the memory of Witt et al. (HPCS
2019, Table II).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from parsl_sizer.archive.importers import wfcommons
from parsl_sizer.archive.importers.base import Notes
from parsl_sizer.model import MB, Kind, Outcome, TaskInfo, TraceError

from .generate import MemoryModel, estimator
from .shapes import SHAPES
from .trace import Row

POOL_MB = 1_952_000.0
"""The pool of Witt et al.: no task is larger."""
TERABYTE_WEEK = 1e12 * 7 * 24 * 3600
"""What the tasks of each of their workflows take in all, in byte-seconds."""
CORES = {Kind.CORES: 1.0}


@dataclass(frozen=True, slots=True)
class Workflow:
    """Rows, each after those that it waits for; their tasks know their depth and rank."""

    name: str
    rows: tuple[Row, ...]
    parents: Mapping[int | str, tuple[int | str, ...]]
    """Of each task, those that it waits for."""


def connected(
    name: str, rows: Iterable[Row], parents: Mapping[int | str, Iterable[int | str]]
) -> Workflow:
    """A workflow of these rows. Parents that are not among them are left out.

    >>> rows = [Row(n, TaskInfo(n, "t"), {}, 1.0) for n in (1, 2, 3)]
    >>> made = connected("chain", rows, {1: [2], 2: [3]})
    >>> [(row.task.task_id, row.task.depth, row.task.rank) for row in made.rows]
    [(3, 0, 2), (2, 1, 1), (1, 2, 0)]
    """
    by_id = {row.task.task_id: row for row in rows}
    known = {
        task: tuple(dict.fromkeys(parent for parent in parents.get(task, ()) if parent in by_id))
        for task in by_id
    }
    order = _sorted(name, known)
    depth: dict[int | str, int] = {}
    rank = dict.fromkeys(order, 0)
    for task in order:
        depth[task] = max((depth[parent] + 1 for parent in known[task]), default=0)
    for task in reversed(order):
        for parent in known[task]:
            rank[parent] = max(rank[parent], rank[task] + 1)
    placed = tuple(
        replace(by_id[task], task=by_id[task].task._replace(depth=depth[task], rank=rank[task]))
        for task in order
    )
    return Workflow(name, placed, known)


def _sorted(name: str, parents: Mapping[int | str, Sequence[int | str]]) -> list[int | str]:
    """All tasks, each after its parents, otherwise in the order that they came in."""
    children: dict[Hashable, list[int | str]] = {task: [] for task in parents}
    missing = {task: len(found) for task, found in parents.items()}
    for task, found in parents.items():
        for parent in found:
            children[parent].append(task)
    ready = [task for task, count in missing.items() if not count]
    for task in ready:  # grows meanwhile
        for child in children[task]:
            missing[child] -= 1
            if not missing[child]:
                ready.append(child)
    if len(ready) < len(parents):
        waiting = next(task for task, count in missing.items() if count)
        raise TraceError(
            f"The workflow {name} has a circle: task {waiting!r} is to wait for itself."
        )
    return ready


def recorded(path: str | Path) -> Workflow:
    """The workflow in a file of WfCommons, with what its tasks were measured to use.

    A task's peak in cores is how many it kept busy on average. What it read and wrote is
    told in its labels, ``read_bytes`` and ``written_bytes``: as features they would be a
    look ahead. What the file does not say is absent.
    """
    path = Path(path)
    places = wfcommons.places(path)
    rows = [
        _row(number, entry.outcome, places[str(entry.outcome.attempt.task.task_id)])
        for number, entry in enumerate(wfcommons.read(path, Notes()), start=1)
    ]
    return connected(path.stem, rows, {task: place.parents for task, place in places.items()})


def _row(number: int, outcome: Outcome, place: wfcommons.Place) -> Row:
    usage = outcome.usage
    peak = dict(usage.peak)
    if usage.cpu_s is not None and usage.wall_s:
        peak[Kind.CORES] = usage.cpu_s / usage.wall_s
    moved = {"read_bytes": place.read_bytes, "written_bytes": place.written_bytes}
    labels = {name: amount for name, amount in moved.items() if amount is not None}
    task = outcome.attempt.task._replace(submitted_at=0.0, labels=labels)
    return Row(number, task, peak, usage.wall_s)


def generated(
    shape: str, tasks: int = 1000, seed: int = 0, *, estimate: str = "power2"
) -> Workflow:
    """A workflow of one of the `SHAPES` with about so many tasks.

    Memory and input sizes of each category are drawn as in Table II of Witt et al.; times
    are scaled so that all tasks together take a terabyte of memory for a week. `estimate` is
    how users estimate, as in `generate`.

    >>> made = generated("montage", 100)
    >>> made.rows[0].task.category, made.rows[-1].task.category, made.rows[0].task.rank
    ('mProjectPP', 'mJPEG', 8)
    """
    if shape not in SHAPES:
        raise ValueError(f"no workflow is called {shape!r}; there are {', '.join(SHAPES)}")
    random = Random(f"{shape} {tasks} {seed}")
    steps = SHAPES[shape](tasks)
    models: dict[str, MemoryModel] = {}
    drawn = []
    for number, step in enumerate(steps, start=1):
        model = models.get(step.category)
        if model is None:
            model = MemoryModel(random, 1.0, is_linear=random.random() < 0.5)
            models[step.category] = model
        size, memory_mb, _ = model.draw(random)
        drawn.append((number, step, size, min(memory_mb, POOL_MB), random.uniform(0.5, 1.5)))
    times = {number: share * step.mean_s for number, step, _, _, share in drawn}
    work = math.fsum(memory * MB * times[number] for number, _, _, memory, _ in drawn)
    requests = _estimates(estimator(estimate), ((step.category, mb) for _, step, _, mb, _ in drawn))
    rows = [
        Row(
            number,
            TaskInfo(
                number,
                step.category,
                features={"input_size": size * MB},
                requested=requests.get(step.category, {}),
            ),
            {**CORES, Kind.MEMORY: memory * MB},
            times[number] * TERABYTE_WEEK / work,
        )
        for number, step, size, memory, _ in drawn
    ]
    parents: dict[int | str, list[int | str]] = {
        number: [at + 1 for at in step.parents] for number, step, *_ in drawn
    }
    return connected(f"{shape}-{seed}", rows, parents)


def _estimates(
    estimated: Callable[[float], float] | None, peaks: Iterable[tuple[str, float]]
) -> dict[str, dict[Kind, float]]:
    if estimated is None:
        return {}
    largest: dict[str, float] = {}
    for category, peak in peaks:
        largest[category] = max(peak, largest.get(category, 0.0))
    return {
        category: {Kind.MEMORY: min(estimated(peak), POOL_MB) * MB}
        for category, peak in largest.items()
    }
