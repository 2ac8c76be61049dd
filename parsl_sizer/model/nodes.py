"""Where attempts run."""

from __future__ import annotations

from dataclasses import dataclass

from .resources import Resources


@dataclass(frozen=True, slots=True)
class Node:
    """A machine (or a part of one) that holds attempts up to its capacity.

    An engine that runs at most so many attempts there at once, and lets further ones
    wait by itself, says so in `slots`; 0 is not known.
    """

    name: str
    capacity: Resources
    group: str = "default"
    slots: int = 0


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike."""

    name: str
    nodes: tuple[Node, ...] = ()
