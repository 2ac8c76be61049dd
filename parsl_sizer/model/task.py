"""A task as the sizer sees it, and one attempt at running it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .resources import Amounts


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """What is known of a task before it starts.

    `features` are numbers that may explain its size (``input_size`` in bytes, and
    whatever the user gives); `requested` is what the user asked for, a first guess.
    """

    task_id: int | str
    category: str
    submitted_at: float = 0.0
    features: Mapping[str, float] = field(default_factory=dict)
    requested: Amounts = field(default_factory=dict)
    code_hash: str | None = None
    labels: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a task within an allocation; a kind absent from it is not controlled.

    The `str` of `why` is the sentence that explains the allocation.
    """

    task: TaskInfo
    number: int
    allocation: Amounts
    node: str | None = None
    why: object = ""
    launched_at: float = 0.0
