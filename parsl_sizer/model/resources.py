"""Amounts of resources: what a task asks for, what it used, what a node has.

Memory and disk are bytes, cores and GPUs are counts. A *partial* set of amounts
is a plain mapping in which an absent kind is unknown (or not controlled) and 0
means none; a *complete* one is :class:`Resources`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum


class Kind(str, Enum):
    """A kind of resource that a task holds while it runs."""

    CORES = "cores"
    MEMORY = "memory"
    DISK = "disk"
    GPUS = "gpus"

    # Enum's own hash is a Python function; kinds are dictionary keys on every hot path.
    __hash__ = str.__hash__
    __str__ = str.__str__


Amounts = Mapping[Kind, float]


@dataclass(frozen=True, slots=True)
class Resources(Mapping[Kind, float]):
    """A complete set of amounts, such as the capacity of a node or the room left on it.

    >>> node = Resources(cores=16, memory=64e9)
    >>> node - {Kind.MEMORY: 4e9}
    Resources(cores=16, memory=60000000000.0, disk=0.0, gpus=0.0)
    >>> sorted(node.exceeded_by({Kind.CORES: 32, Kind.MEMORY: 1e9}))
    [<Kind.CORES: 'cores'>]
    """

    cores: float = 0.0
    memory: float = 0.0
    disk: float = 0.0
    gpus: float = 0.0
    _amounts: dict[Kind, float] = field(init=False, repr=False, compare=False)
    """The same again: looked up on every hot path, and quicker than attributes by name."""

    def __post_init__(self) -> None:
        amounts = {kind: getattr(self, kind.value) for kind in Kind}
        for kind, amount in amounts.items():
            if not math.isfinite(amount):
                raise ValueError(f"{kind.value} must be a finite number, not {amount!r}")
        object.__setattr__(self, "_amounts", amounts)

    def __getitem__(self, kind: Kind) -> float:
        return self._amounts[kind]

    def __iter__(self) -> Iterator[Kind]:
        return iter(Kind)

    def __len__(self) -> int:
        return len(Kind)

    def __add__(self, other: Amounts) -> Resources:
        """The sum, kind by kind; a kind absent from `other` stays as it is."""
        return self.updated({kind: self[kind] + amount for kind, amount in other.items()})

    def __sub__(self, other: Amounts) -> Resources:
        """The difference, kind by kind; a kind absent from `other` stays as it is."""
        return self.updated({kind: self[kind] - amount for kind, amount in other.items()})

    def updated(self, amounts: Amounts) -> Resources:
        """These amounts with the given kinds replaced."""
        values = {kind.value: getattr(self, kind.value) for kind in Kind}
        values.update({Kind(kind).value: amount for kind, amount in amounts.items()})
        return Resources(**values)

    def fits_in(self, other: Amounts) -> bool:
        """Whether no kind known in `other` is exceeded by these amounts."""
        return all(self[kind] <= amount for kind, amount in other.items())

    def exceeded_by(self, amounts: Amounts) -> frozenset[Kind]:
        """The kinds of which `amounts` has more than these."""
        return exceeded(self, amounts)


def exceeded(limits: Amounts, amounts: Amounts) -> frozenset[Kind]:
    """The kinds that both mappings know and of which `amounts` has more than `limits`.

    >>> exceeded({Kind.MEMORY: 1.0}, {Kind.MEMORY: 2.0, Kind.DISK: 9.0})
    frozenset({<Kind.MEMORY: 'memory'>})
    """
    over = [kind for kind, amount in amounts.items() if kind in limits and amount > limits[kind]]
    return frozenset(over) if over else NOTHING


NOTHING: frozenset[Kind] = frozenset()
