"""The values that archives keep, and what every archive can do with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from parsl_sizer.model import Ending, NodeProfile, Outcome, SizerError
from parsl_sizer.scaling.geometry import Geometry

LIVE = "live"
SAMPLED = "sampled"
"""Among an outcome's layers: its peaks are the largest of some samples, so lower bounds."""


class ArchiveError(SizerError):
    """An archive that cannot be used; the message says why and what to do."""


class Refused(ArchiveError):
    """An archive that can be used, but not for what it was to keep: a number too large, say."""


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a workflow: what all its attempts have in common.

    `source` is ``"live"``, or the name of the format that it was imported from. Who imports
    the same file again makes the same `run_id`, so that nothing is counted twice.
    """

    run_id: str
    started_at: float = 0.0
    user: str | None = None
    workflow: str | None = None
    checksum: str | None = None
    host: str | None = None
    source: str = LIVE
    versions: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, object] = field(default_factory=dict)


class Entry(NamedTuple):
    """An outcome, and the run that it is of."""

    run: Run
    outcome: Outcome


class RunLine(NamedTuple):
    """A run, and how much an archive has of it."""

    run: Run
    attempts: int
    categories: int
    ended_at: float


class Wait(NamedTuple):
    """How long a block has waited in a batch queue.

    `place` is the batch system, and `at_most` says that the block would have started earlier,
    but for another that it was to follow. `number` is given by the archive, and rises.
    """

    run_id: str
    place: str
    geometry: Geometry
    asked_at: float
    wait_s: float
    at_most: bool = False
    number: int = 0


@dataclass(frozen=True, slots=True)
class Query:
    """Which attempts are looked for; what is None or empty does not matter.

    `command` and `input` are parts of what they are looked for in, `labels` are of the task
    or of its run. `memory` is the range of the measured peak, `wall_s` of the time.
    """

    run_id: str | None = None
    category: str | None = None
    task_id: int | str | None = None
    user: str | None = None
    workflow: str | None = None
    command: str | None = None
    input: str | None = None
    host: str | None = None
    source: str | None = None
    endings: tuple[Ending, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    since: float | None = None
    until: float | None = None
    memory: tuple[float | None, float | None] = (None, None)
    wall_s: tuple[float | None, float | None] = (None, None)
    last: int | None = None
    """So many, the newest."""


EVERYTHING = Query()
MOST = 10_000
"""So many waits are read at a time: older ones say nothing of a queue of today."""


class Archive(Protocol):
    """What happened before. Used by one thread at a time; raises `ArchiveError` only."""

    def record(self, entries: Sequence[Entry]) -> int:
        """Keep these for good, all or none; how many were not here before.

        Raises `Refused` if it is for one of them that they cannot be kept.
        """
        ...

    def entries(self, query: Query = EVERYTHING) -> Iterator[Entry]:
        """What was recorded, the newest first."""
        ...

    def runs(self, query: Query = EVERYTHING) -> list[RunLine]:
        """The runs of which something matches, the newest first."""
        ...

    def prune(self, run_ids: Iterable[str]) -> int:
        """Remove runs with all their attempts; how many attempts that were."""
        ...

    def keep_profiles(self, profiles: Iterable[NodeProfile]) -> int:
        """Keep what nodes can do, all or none; how many were not here before."""
        ...

    def profiles(self) -> list[NodeProfile]:
        """The newest profile of each host by each executor, in the order of their names."""
        ...

    def forget_profiles(self, names: Iterable[str]) -> int:
        """Remove all profiles of these names, old ones too; how many names had any."""
        ...

    def record_waits(self, waits: Sequence[Wait]) -> None:
        """Keep these for good, all or none. They are of queues, and stay when runs are removed."""
        ...

    def waits(self, place: str | None = None, *, after: int = 0, last: int = MOST) -> list[Wait]:
        """So many, the newest, of those with a number above `after`; the oldest of them first."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...
