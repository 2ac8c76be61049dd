"""A task as the sizer sees it, and one attempt at running it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from .empty import EMPTY
from .resources import Amounts, Kind


class OptOut(str, Enum):
    """What a user does not want done to a task."""

    FIXED = "fixed"
    """Give it what is requested, no less and no more, also after a failure."""
    NEVER_KILL = "never_kill"
    """Measure it, but let it run whatever it uses."""
    NO_RETRY = "no_retry"
    """Don't run it twice: it has side effects."""
    KEEP_CACHES = "keep_caches"
    """Let what it leaves in its process's memory stay there, and charge it for that."""
    CLEAN_FILES = "clean_files"
    """Remove its temporary files after it."""


NO_OPT_OUT: frozenset[OptOut] = frozenset()


def opt_outs_named(names: Iterable[str]) -> frozenset[OptOut]:
    """Return the opt-outs with these names; those that only other versions have are left out."""
    return frozenset(_BY_NAME[name] for name in names if name in _BY_NAME)


_BY_NAME = {opt_out.value: opt_out for opt_out in OptOut}


class TaskInfo(NamedTuple):
    """What is known of a task before it starts.

    `features` are numbers that may explain its size (``input_size`` in bytes, and
    whatever the user gives); `requested` is what the user asked for, a first guess.
    """

    task_id: int | str
    category: str
    submitted_at: float = 0.0
    features: Mapping[str, float] = EMPTY
    requested: Amounts = EMPTY
    code_hash: str | None = None
    labels: Mapping[str, object] = EMPTY
    opt_outs: frozenset[OptOut] = NO_OPT_OUT
    priority: float = 0.0
    """Of tasks that wait, those with the highest start first."""
    command: str | None = None
    """The command line or the full name of the function, for people to search by."""
    inputs: tuple[str, ...] = ()
    """The files that it reads, as far as they are known."""
    depth: int = 0
    """The longest way to it, in tasks, from one that waits for none."""
    rank: int = 0
    """The longest way from it, in tasks, to one that none waits for."""


class Attempt(NamedTuple):
    """One run of a task within an allocation; a kind absent from it is not controlled.

    The `str` of `why` is the sentence that explains the allocation. An attempt that is
    not `enforced` is measured only: it may use more than it was allocated.
    """

    task: TaskInfo
    number: int
    allocation: Amounts
    node: str | None = None
    why: object = ""
    launched_at: float = 0.0
    enforced: bool = True
    grown_from: float | None = None
    """The memory that it was given at first, if it has grown since."""

    @property
    def given_memory(self) -> float | None:
        """The memory that it was launched with; None if that is not controlled."""
        return self.allocation.get(Kind.MEMORY) if self.grown_from is None else self.grown_from
