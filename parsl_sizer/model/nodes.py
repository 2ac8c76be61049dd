"""Where attempts run."""

from __future__ import annotations

from dataclasses import dataclass

from .resources import Resources


@dataclass(frozen=True, slots=True)
class Node:
    """A machine (or a part of one) that holds attempts up to its capacity."""

    name: str
    capacity: Resources
    group: str = "default"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike."""

    name: str
    nodes: tuple[Node, ...] = ()
