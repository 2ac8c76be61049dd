"""``parsl-sizer waits``: how long blocks have waited in queues, and how long the next may."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from random import Random
from statistics import median
from typing import NamedTuple

from parsl_sizer.archive import Wait
from parsl_sizer.model import printable
from parsl_sizer.scaling.geometry import Geometry
from parsl_sizer.scaling.waits import Learner

from .archives import lasting, opened, when
from .output import console, print_json, say


class Line(NamedTuple):
    """What is known of one shape of blocks at one place."""

    place: str
    geometry: Geometry
    waits: Sequence[Wait]

    @property
    def seconds(self) -> list[float]:
        """Those waits that were seen to their end."""
        return [wait.wait_s for wait in self.waits if not wait.at_most]

    def likeliest(self) -> tuple[float, float]:
        """The wait that a workflow would most likely expect now, and how likely it is."""
        learner, random = Learner(), Random(0)
        for wait in self.waits:
            learner.observe(wait.wait_s, random, at_most=wait.at_most)
        probability, at = max((one, -at) for at, one in enumerate(learner.probabilities))
        return learner.rule.alternatives[-at], probability


def run(arguments: Namespace) -> None:
    with opened(arguments) as found:
        waits = found.archive.waits(arguments.place)
        if arguments.since is not None:
            waits = [wait for wait in waits if wait.asked_at >= arguments.since]
        lines = summed(waits)
        if arguments.json:
            print_json({"archive": found.name, "waits": [_plain(line) for line in lines]})
        elif lines:
            _show(lines)
        elif places := sorted({wait.place for wait in found.archive.waits()}):
            say(f"No such wait is in {found.name}; there are some of {', '.join(places)}.")
        else:
            say(
                f"No block has been seen to wait in {found.name} yet: "
                'SizedExecutor(scaling="asa") or another policy of ours records them.'
            )


def summed(waits: Sequence[Wait]) -> list[Line]:
    """One line for each shape at each place, those with the most waits first."""
    found: dict[tuple[str, Geometry], list[Wait]] = {}
    for wait in waits:
        found.setdefault((wait.place, wait.geometry), []).append(wait)
    lines = [Line(place, geometry, several) for (place, geometry), several in found.items()]
    return sorted(lines, key=lambda line: (line.place, -len(line.waits), line.geometry[:2]))


def _plain(line: Line) -> dict[str, object]:
    expected_s, probability = line.likeliest()
    nodes, cores, memory, queue = line.geometry
    return {
        "place": line.place,
        "queue": queue,
        "nodes": nodes,
        "cores_per_node": cores,
        "memory_per_node": memory,
        "seen": len(line.waits),
        "median_s": median(line.seconds) if line.seconds else None,
        "longest_s": max(line.seconds, default=None),
        "last_s": line.waits[-1].wait_s,
        "last_at": line.waits[-1].asked_at,
        "expected_s": expected_s,
        "probability": probability,
    }


def _show(lines: Sequence[Line]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for label in ("batch system", "blocks", "seen", "median", "longest", "last", "expected"):
        table.add_column(label, justify="left" if label in ("batch system", "blocks") else "right")
    for line in lines:
        expected_s, probability = line.likeliest()
        seconds, last = line.seconds, line.waits[-1]
        table.add_row(
            printable(line.place, keep=""),
            printable(str(line.geometry), keep=""),
            f"{len(line.waits):,}",
            lasting(median(seconds)) if seconds else "",
            lasting(max(seconds)) if seconds else "",
            f"{'< ' if last.at_most else ''}{lasting(last.wait_s)}, {when(last.asked_at)}",
            f"{lasting(expected_s)} ({probability:.0%})",
        )
    out = console()
    out.print(table)
    out.print(
        "\nExpected is what the next block of this shape is asked for ahead of its stage, and how "
        "sure\nthat is. < is a block that had to follow another: it would have started earlier."
    )
