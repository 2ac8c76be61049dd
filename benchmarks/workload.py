"""A workload of memory-hungry tasks, what is said of them, and the engines they are run on."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from parsl.executors import HighThroughputExecutor, WorkQueueExecutor
from parsl.executors.base import ParslExecutor
from parsl.providers import LocalProvider

from parsl_sizer import SizedExecutor
from parsl_sizer.strategies import Family

MEDIANS_GB = {"small": 0.3, "medium": 0.8, "large": 2.0}
SIGMA = 0.4
CORES, NODE_GB = 16, 12.0
WAYS = ("whole machine", "fixed guess", "autolabel", "cold", "warm", "oracle")


@dataclass(frozen=True)
class Work:
    """A task to be."""

    category: str
    peak_gb: float
    seconds: float


@dataclass(frozen=True)
class Plan:
    """What is run, and on what."""

    engine: str
    tasks: int
    shortest_s: float
    longest_s: float
    whole: int
    """So many tasks are run with a whole machine each."""
    node_gb: float = NODE_GB
    workers: int = 1

    def works(self, seed: int) -> list[Work]:
        """The tasks, in the order of their submission."""
        draw = random.Random(seed)
        names = [list(MEDIANS_GB)[number % len(MEDIANS_GB)] for number in range(self.tasks)]
        draw.shuffle(names)
        return [
            Work(
                name,
                self.node_gb / NODE_GB * MEDIANS_GB[name] * draw.lognormvariate(0, SIGMA),
                draw.uniform(self.shortest_s, self.longest_s),
            )
            for name in names
        ]

    def inner(self, folder: Path, *, slots: int = CORES, autolabel: bool = False) -> ParslExecutor:
        """The plain engine, with nodes that promise what the plan says."""
        count = self.workers
        provider = LocalProvider(init_blocks=count, min_blocks=count, max_blocks=count)
        if self.engine == "htex":
            return HighThroughputExecutor(
                address="127.0.0.1",
                max_workers_per_node=slots,
                cores_per_worker=0.01,
                provider=provider,
            )
        options = f"--cores={CORES} --memory={self.node_gb * 1e3:.0f} --timeout=300"
        return WorkQueueExecutor(
            address="localhost",
            port=0,
            provider=provider,
            worker_options=f"{options} --workdir={folder}",
            autolabel=autolabel,
            full_debug=False,
            max_retries=10 if autolabel else 1,  # it tries again what it gave too little
        )

    def executor(self, way: str, folder: Path, strategy: Family) -> ParslExecutor:
        """What a way to size tasks needs."""
        if way == "whole machine":
            return self.inner(folder, slots=1)
        if way == "autolabel":
            return self.inner(folder, autolabel=True)
        node = f"cores={CORES},memory={self.node_gb}GB"
        sized: ParslExecutor = SizedExecutor(
            self.inner(folder), strategy=strategy, node=node, report=False, archive=False
        )
        return sized


PLANS = {
    "htex": Plan("htex", tasks=200, shortest_s=5.0, longest_s=20.0, whole=200),
    "workqueue": Plan("workqueue", tasks=60, shortest_s=20.0, longest_s=40.0, whole=10),
}


def hints(way: str, works: Sequence[Work]) -> Iterator[dict[str, object]]:
    """What is said about each task."""
    largest: dict[str, float] = {}
    for work in works:
        largest[work.category] = max(work.peak_gb, largest.get(work.category, 0.0))
    for work in works:
        if way == "fixed guess":
            yield fixed(largest[work.category])
        elif way == "oracle":
            yield fixed(work.peak_gb)
        elif way == "autolabel":
            # Left alone it measures 0 cores of a task that sleeps, and gives it all of a node's.
            yield {"cores": 1}
        else:
            yield {}


def fixed(peak_gb: float) -> dict[str, object]:
    """Exactly this much and a small margin, in MB: a task holds more than its one large array."""
    return {"cores": 1, "memory": round(1.01 * peak_gb * 1e3 + 15), "fixed": True}
