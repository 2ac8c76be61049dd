"""A thinker as users write them: it knows nothing of sizes."""

from __future__ import annotations

from typing import Any

from colmena.models import Result
from colmena.queue import PipeQueues
from colmena.thinker import BaseThinker, agent, result_processor

GENERATIONS = ([10, 40, 20, 60], [30, 15, 50, 60], [25, 45, 55, 5])
TOPICS = ["simulate", "infer"]


class Search(BaseThinker):
    """Simulates a generation of molecules, infers, and goes on with the next one."""

    def __init__(self, queues: PipeQueues, *, tags: bool) -> None:
        super().__init__(queues)
        self.tags = tags
        self.waiting = [list(generation) for generation in GENERATIONS]
        self.energies: dict[int, float] = {}
        self.scores: list[list[float]] = []
        self.results: list[Result] = []

    @agent(startup=True)
    def begin(self) -> None:
        self.next_generation()

    def next_generation(self) -> None:
        self.expected = sorted(set(self.waiting.pop(0)))
        self.awaited = set(self.expected)  # an earlier generation may have had some of them, too
        for atoms in self.expected:
            info = {"category": size(atoms), "atoms": atoms} if self.tags else None
            self.queues.send_inputs(atoms, method="simulate", topic="simulate", task_info=info)

    @result_processor(topic="simulate")
    def simulated(self, result: Result) -> None:
        self.results.append(result)
        assert result.success, result.failure_info
        self.energies[result.args[0]] = result.value
        self.awaited.discard(result.args[0])
        if not self.awaited:
            energies = [self.energies[atoms] for atoms in self.expected]
            info: dict[str, Any] | None = {"category": "scoring"} if self.tags else None
            self.queues.send_inputs(energies, method="infer", topic="infer", task_info=info)

    @result_processor(topic="infer")
    def inferred(self, result: Result) -> None:
        self.results.append(result)
        assert result.success, result.failure_info
        self.scores.append(result.value)
        if self.waiting:
            self.next_generation()
        else:
            self.done.set()


def size(atoms: int) -> str:
    return "simulate, large" if atoms > 30 else "simulate, small"
