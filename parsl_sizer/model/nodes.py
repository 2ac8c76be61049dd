"""Where attempts run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class NodeProfile:
    """What a host can do, as it was measured there.

    Of each feature more is better, and one that could not be measured is absent. `methods`
    says how each was measured: figures compare if that is the same. `executor` is the label
    of the executor that reached the host, None if it was profiled by itself.
    """

    host: str
    features: Mapping[str, float]
    methods: Mapping[str, str] = field(default_factory=dict)
    measured_at: float = 0.0
    executor: str | None = None

    @property
    def name(self) -> str:
        """The host, as it is reached: one host may be reached in several ways."""
        return self.host if self.executor is None else f"{self.executor}/{self.host}"
