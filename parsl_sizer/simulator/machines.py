"""Machines that differ: how fast is each, and how much do tasks on one hinder each other?

The two clusters of Bader et al. (IEEE Big Data 2021) are here with what was measured of
them: the kinds and sizes of Tables II and III, the speeds of Table IV.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from parsl_sizer.model import Kind, Node, Resources
from parsl_sizer.placement import grouped, named

from .trace import Row

SPEEDS = {"cpu": "cpu_single", "memory": "memory_bandwidth", "io": "io_read"}
"""What of a profile the parts of a task's time go by."""
MIB, GIB = 2**20, 2**30
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Machine:
    """A node, its group by what was measured, and that."""

    node: Node
    profile: Mapping[str, float]

    def stretch(self, shares: Mapping[str, float]) -> float:
        """How much longer a task takes here than on the `REFERENCE`, if it is alone.

        `shares` are the parts of its time there that go by each of the `SPEEDS`.

        >>> old, new = paper_cluster("5;5;5")[0], paper_cluster("5;5;5")[-1]
        >>> round(old.stretch({"cpu": 0.5, "io": 0.5}), 2), round(new.stretch({"cpu": 1.0}), 2)
        (1.01, 0.72)
        """
        return math.fsum(
            share * REFERENCE[SPEEDS[part]] / self.profile[SPEEDS[part]]
            for part, share in shares.items()
        )


def time_shares(row: Row) -> dict[str, float]:
    """The parts of a task's time: as long as it kept a core busy it goes by the CPU.

    The rest it waited for files. How much of the busy time it waited for memory no trace says;
    on the machines of Table IV, where memory is faster as the CPU is, that makes no difference.
    """
    busy = min(1.0, row.peak.get(Kind.CORES, 1.0))
    return {"cpu": busy, "io": 1.0 - busy}


def slowdown(neighbours: float, cores: float, alpha: float) -> float:
    """How much longer a task takes whose neighbours keep so many of the cores busy.

    >>> slowdown(4.0, 8.0, 0.2)
    1.1
    """
    return 1.0 + alpha * neighbours / cores


def _measured(cpu: Range, memory_mib: Range, count: int) -> list[dict[str, float]]:
    """So many profiles, spread evenly over the ranges of Table IV; disks are all alike."""
    return [
        {
            "cpu_single": _at(cpu, number, count),
            "memory_bandwidth": _at(memory_mib, number, count) * MIB,
            "io_random_write": 107.0 + number % 2,
            "io_random_read": 102.0,
            "io_write": 483.0,
            "io_read": 481.0,
        }
        for number in range(count)
    ]


def _at(limits: Range, number: int, count: int) -> float:
    return limits[0] + (limits[1] - limits[0]) * number / max(1, count - 1)


REFERENCE = _measured((375.5, 375.5), (14050, 14050), 1)[0]
"""Times are taken for those on a machine like this: the middle of the paper's N1."""

_KINDS: dict[str, list[tuple[str, int, Resources]]] = {
    "5;5;5": [(kind, 5, Resources(cores=8, memory=32 * GIB)) for kind in ("N1", "N2", "C2")],
    "5;4;4;2": [
        ("E2", 5, Resources(cores=6, memory=16 * GIB)),
        ("N1", 4, Resources(cores=6, memory=16 * GIB)),
        ("N2", 4, Resources(cores=8, memory=32 * GIB)),
        ("C2", 2, Resources(cores=16, memory=64 * GIB)),
    ],
}
_PROFILES = {
    "5;5;5": [
        *_measured((367, 384), (13800, 14300), 5),
        *_measured((458, 468), (17500, 17700), 5),
        *_measured((523, 525), (19800, 19900), 5),
    ],
    "5;4;4;2": [
        *_measured((368, 384), (13100, 14200), 9),  # of E2 and N1 the table has one line
        *_measured((469, 470), (17700, 17800), 4),
        *_measured((522, 524), (19800, 19800), 2),
    ],
}
PAPER_CLUSTERS = tuple(_KINDS)


def paper_cluster(name: str) -> tuple[Machine, ...]:
    """One of the paper's clusters, its nodes in the groups that their profiles make.

    >>> [machine.node.group for machine in paper_cluster("5;4;4;2")[8:10]]
    ['1', '2']
    """
    nodes = [
        Node(f"{kind}-{number}", capacity)
        for kind, count, capacity in _KINDS[name]
        for number in range(1, count + 1)
    ]
    return in_groups(
        [Machine(node, known) for node, known in zip(nodes, _PROFILES[name], strict=True)]
    )


def in_groups(machines: Sequence[Machine]) -> tuple[Machine, ...]:
    """The machines, each in its group: 1 is the weakest."""
    groups = named(grouped({machine.node.name: machine.profile for machine in machines}))
    group_of = {name: group for group, names in groups.items() for name in names}
    return tuple(
        replace(machine, node=replace(machine.node, group=group_of[machine.node.name]))
        for machine in machines
    )


def without(machines: Sequence[Machine], share: float) -> tuple[Machine, ...]:
    """The machines with this share of each kind switched off, the last ones of each.

    >>> [machine.node.name for machine in without(paper_cluster("5;4;4;2"), 0.4)[-3:]]
    ['N2-1', 'N2-2', 'C2-1']
    """
    left: list[Machine] = []
    for _, alike in groupby(machines, key=lambda machine: machine.node.name.partition("-")[0]):
        some = list(alike)
        left += some[: len(some) - round(share * len(some) + 1e-9)]
    return tuple(left)
