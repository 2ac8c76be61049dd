"""The figures of a recorded run: plain values, as JSON has them.

Amounts of memory are bytes, sums over time have their unit beside them, times are seconds.
What is not known is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from parsl_sizer.archive.base import LIVE


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a run as a whole."""

    run_id: str
    workflow: str | None
    user: str | None
    host: str | None
    source: str
    started_at: float | None
    ended_at: float | None
    took_s: float | None
    versions: Mapping[str, str]
    labels: Mapping[str, str]

    @property
    def is_ours(self) -> bool:
        """Whether we had a part in it: what others' logs tell of, we have not saved."""
        return self.source == LIVE


@dataclass(frozen=True, slots=True)
class Use:
    """One kind of resource, summed over time.

    `used` is of attempts that finished; all that others held was wasted. Of cores it is
    processor time where that was measured. `efficiency` leaves out what finished without
    being measured.
    """

    unit: str
    allocated: float | None
    used: float | None
    wasted: float | None
    efficiency: float | None
    largest_allocation: float | None
    largest_peak: float | None


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts and sums over tasks.

    `causes` are of the attempts that did not finish: the kind that ran out (an attempt may
    run out of several), ``raised``, ``lost`` or ``node_lost``.
    """

    tasks: int
    failed: int
    attempts: int
    retries: int
    overruns: int
    sampled: int
    wall_s: float
    endings: Mapping[str, int]
    causes: Mapping[str, int]
    kinds: Mapping[str, Use]


@dataclass(frozen=True, slots=True)
class Saving:
    """Memory, against giving every task `baseline`; `against` says in words what that is.

    `whole` is of every task's last attempt: with the baseline there would have been no other.
    An attempt without an allocation is taken to have held the baseline. All are GB·h but the
    baseline.
    """

    baseline: float
    against: str
    whole: float
    allocated: float
    saved: float
    share: float | None


@dataclass(frozen=True, slots=True)
class Bin:
    """So many tasks had a peak above `least` and up to `most`; the first has `least` too."""

    least: float
    most: float
    tasks: int


@dataclass(frozen=True, slots=True)
class Peaks:
    """How the peaks of memory of finished tasks are distributed."""

    measured: int
    quantiles: Mapping[str, float]
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True)
class Rung:
    """An allocation to three digits, how many attempts had it, and from when to when."""

    memory: float
    attempts: int
    first_at: float
    last_at: float


@dataclass(frozen=True, slots=True)
class Rungs:
    """The most frequent allocations in the order of their first use, and how many others."""

    rungs: tuple[Rung, ...]
    distinct: int
    other_attempts: int


@dataclass(frozen=True, slots=True)
class Ladder:
    """The allocations of memory as they were lived: of first attempts, and of retries.

    `final` is what the first attempt had that was launched last.
    """

    first: Rungs
    later: Rungs
    final: float | None


@dataclass(frozen=True, slots=True)
class Course:
    """Memory over time: means over equal steps that begin at `started_at`.

    `used` is the sum of the peaks of the attempts that were running.
    """

    started_at: float
    step_s: float
    allocated: tuple[float, ...]
    used: tuple[float, ...]
    running: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task that stands out. `wall_s` and `wasted` (GB·h) are of all its attempts."""

    task_id: int | str
    category: str
    attempts: int
    ending: str
    wall_s: float
    allocated: float | None
    peak: float | None
    wasted: float | None


@dataclass(frozen=True, slots=True)
class Part:
    """What is told of a run and of each of its categories alike."""

    totals: Totals
    saving: Saving | None
    course: Course | None
    slowest: tuple[TaskLine, ...]
    most_wasteful: tuple[TaskLine, ...]


@dataclass(frozen=True, slots=True)
class Category(Part):
    """One category; `specification` is the line to paste for a fixed request.

    `not_enough_for` says in words which tasks ran out of all they had, so that it is not known
    what would have been enough for them.
    """

    name: str
    peaks: Peaks | None
    ladder: Ladder
    specification: str | None
    not_enough_for: str | None


@dataclass(frozen=True, slots=True)
class Rest:
    """The categories that are not shown one by one, summed."""

    categories: int
    totals: Totals


@dataclass(frozen=True, slots=True)
class Summary(Part):
    """All that is told of a run, the category that held most memory first."""

    run: Facts
    categories: tuple[Category, ...]
    rest: Rest | None


def as_json(summary: Summary) -> dict[str, Any]:
    """The same in dictionaries, lists, texts and numbers."""
    found: dict[str, Any] = _plain(asdict(summary))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
