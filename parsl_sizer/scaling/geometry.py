"""What a block asks the batch system for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Geometry(NamedTuple):
    """The shape of a block: how long it waits in the queue depends on it.

    `memory_per_node` is in bytes, None if nothing is asked for; `queue` is the batch
    system's partition. How long the block is to run is no part of it, since hardly two are
    the same and nothing would be learned twice.

    >>> print(Geometry(4, 28, 64e9, "batch"))
    4 x 28 cores, 64 GB, batch
    """

    nodes: int = 1
    cores_per_node: int = 1
    memory_per_node: float | None = None
    queue: str = ""

    @property
    def cores(self) -> int:
        """Of all nodes together."""
        return self.nodes * self.cores_per_node

    def __str__(self) -> str:
        words = [f"{self.nodes} x {self.cores_per_node} cores"]
        if self.memory_per_node is not None:
            words.append(f"{self.memory_per_node / 1e9:.12g} GB")
        return ", ".join([*words, self.queue] if self.queue else words)


def envelope(geometries: Iterable[Geometry]) -> Geometry:
    """The smallest geometry in which each of these has room; in the queue of the first.

    >>> envelope([Geometry(1, 28), Geometry(4, 20, 8e9)])
    Geometry(nodes=4, cores_per_node=28, memory_per_node=8000000000.0, queue='')
    """
    several = list(geometries)
    memory = [one.memory_per_node for one in several if one.memory_per_node is not None]
    return Geometry(
        max(one.nodes for one in several),
        max(one.cores_per_node for one in several),
        max(memory, default=None),
        several[0].queue,
    )
