"""What the sizer is told, and what it wants done.

Drivers turn what happens (a call, a worker's report, a clock) into events and carry
actions out; nothing else passes between them and the decision loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parsl_sizer.model import Amounts, Attempt, Ending, Node, Outcome, Resources, TaskInfo


@dataclass(frozen=True, slots=True)
class Submitted:
    """A task is there to be run. No two tasks of a run have the same id."""

    task: TaskInfo


@dataclass(frozen=True, slots=True)
class Started:
    """A launched attempt runs, on the node of this name."""

    attempt: Attempt
    node: str


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt is over."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Nobody wants a task any more, and it does not run: forget it."""

    task_id: int | str


@dataclass(frozen=True, slots=True)
class Consulted:
    """The user has been asked about a task that ran out: whether others do its work instead."""

    task_id: int | str
    is_split: bool


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a category did in earlier runs is here, in the order to learn it; empty if not known."""

    category: str
    outcomes: Sequence[Outcome]


@dataclass(frozen=True, slots=True)
class Joined:
    """A node is there, or its capacity is known better than before."""

    node: Node


@dataclass(frozen=True, slots=True)
class Left:
    """The node of this name is gone; each attempt that ran there is yet to be reported Ended."""

    node: str


@dataclass(frozen=True, slots=True)
class Expected:
    """Nodes of these capacities may yet come, and are all that may."""

    capacities: tuple[Resources, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = (
    Submitted | Started | Ended | Withdrawn | Consulted | Loaded | Joined | Left | Expected | Tick
)


@dataclass(frozen=True, slots=True)
class Launch:
    """Run this attempt within its allocation, on its node if the engine lets us choose."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Load:
    """Look up what the category of this task, its first, did in earlier runs.

    Tasks of the category wait until the loop is told `Loaded`; those behind them for a moment.
    """

    task: TaskInfo


@dataclass(frozen=True, slots=True)
class Consult:
    """Ask the user about a task that ran out; it waits until the loop is told `Consulted`.

    `larger` is what it would be given next, None if no node has more.
    """

    task: TaskInfo
    outcomes: tuple[Outcome, ...]
    larger: Amounts | None


@dataclass(frozen=True, slots=True)
class Settle:
    """The task is over: hand its last outcome, or the reason there is none, to the user.

    If it `is_split` it has no result of its own: other tasks do its work.
    """

    task: TaskInfo
    ending: Ending
    outcomes: tuple[Outcome, ...]
    is_split: bool = False


Action = Launch | Load | Consult | Settle
