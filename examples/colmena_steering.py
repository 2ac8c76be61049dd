"""A Colmena thinker that looks for the best molecule, with every simulation given what it needs.

python examples/colmena_steering.py

It simulates a few molecules, infers from the results which size is best, and goes on there.
The two lines that are ours are in `config`. That `simulate` is tagged by the size of its
molecule is optional, and so is what the thinker does with the sizing of its results.
"""

from __future__ import annotations

import argparse
from collections import Counter

from colmena.models import Result
from colmena.queue import PipeQueues
from colmena.task_server import ParslTaskServer
from colmena.thinker import BaseThinker, agent, result_processor
from parsl.config import Config

from parsl_sizer import SizedExecutor

LARGE = 1200
"""Atoms from which a molecule is a large one."""
SIZES = range(200, 2001)


def simulate(atoms: int) -> float:
    """The energy of a molecule, from matrices with two rows for every atom."""
    import numpy as np

    rows = 2 * atoms
    overlap = np.random.default_rng(atoms).random((rows, rows))
    density = overlap + overlap.T
    for _ in range(2):
        density = density @ overlap / rows
    return abs(atoms - 870) / 100 + float(np.trace(density)) / rows**3


def infer(energies: dict[int, float], count: int) -> list[int]:
    """The sizes to look at next: around the minimum of a parabola through the best three."""
    import numpy as np

    best = sorted(energies, key=lambda atoms: energies[atoms])[:3]
    curve = np.polyfit(best, [energies[atoms] ** 2 for atoms in best], 2)
    centre = round(-curve[1] / (2 * curve[0])) if curve[0] > 0 else best[0]
    span = max(8, (max(best) - min(best)) // 4)
    steps = np.linspace(-span, span, count).astype(int)
    return sorted({int(min(max(centre + step, 200), 2000)) for step in steps})


class Steering(BaseThinker):
    """Simulates a batch, infers the next one, and so on for some rounds."""

    def __init__(self, queues: PipeQueues, rounds: int, count: int, *, tags: bool) -> None:
        super().__init__(queues)
        self.rounds = rounds
        self.count = count
        self.tags = tags
        self.energies: dict[int, float] = {}
        self.waiting = 0
        self.attempts: Counter[str] = Counter()
        self.peaks: dict[str, float] = {}

    @agent(startup=True)
    def begin(self) -> None:
        """Simulate molecules of all sizes."""
        step = (SIZES[-1] - SIZES[0]) // (2 * self.count - 1)
        self.submit(list(SIZES[::step]))

    def submit(self, batch: list[int]) -> None:
        """Tags: a category for each range of sizes, and the number that explains the memory."""
        self.waiting = len(batch)
        for atoms in batch:
            category = "simulate, large" if atoms >= LARGE else "simulate, small"
            info = {"category": category, "atoms": atoms} if self.tags else None
            self.queues.send_inputs(atoms, method="simulate", topic="simulate", task_info=info)

    @result_processor(topic="simulate")
    def simulated(self, result: Result) -> None:
        """Take note of an energy; with the last one of the batch infer where to go on."""
        if not result.success:
            raise RuntimeError(result.failure_info)
        self.energies[result.args[0]] = result.value
        sizing = result.task_info["sizing"]
        category, peak = sizing["category"], sizing["peak"].get("memory", 0.0)
        self.attempts[category] += len(sizing["attempts"])
        self.peaks[category] = max(peak, self.peaks.get(category, 0.0))
        self.waiting -= 1
        if not self.waiting:
            self.queues.send_inputs(self.energies, self.count, method="infer", topic="infer")

    @result_processor(topic="infer")
    def inferred(self, result: Result) -> None:
        """Go on around the best."""
        if not result.success:
            raise RuntimeError(result.failure_info)
        batch = [atoms for atoms in result.value if atoms not in self.energies]
        self.rounds -= 1
        if self.rounds and batch:
            self.submit(batch)
        else:
            self.done.set()


def main() -> None:
    parser = argparse.ArgumentParser(description="Steers simulations with Colmena.")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--count", type=int, default=6, help="molecules in a round")
    parser.add_argument("--no-tags", action="store_true", help="say nothing of the sizes")
    arguments = parser.parse_args()

    config = Config(executors=[SizedExecutor(node="memory=1GB")], run_dir="runinfo")
    queues = PipeQueues(topics=["simulate", "infer"])
    server = ParslTaskServer([simulate, infer], queues, config)
    server.start()
    thinker = Steering(queues, arguments.rounds, arguments.count, tags=not arguments.no_tags)
    try:
        thinker.start()
        thinker.join()
    finally:
        queues.send_kill_signal()
        server.join()

    best = min(thinker.energies, key=lambda atoms: thinker.energies[atoms])
    print(f"The best of {len(thinker.energies)} molecules has {best} atoms.")
    for category, attempts in sorted(thinker.attempts.items()):
        print(f"{category}: {attempts} attempts, at most {thinker.peaks[category] / 1e6:.0f} MB.")


if __name__ == "__main__":
    main()
