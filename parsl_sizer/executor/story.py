"""What was decided for a task and what came of it, kept beside its future.

Users keep futures by the hundred thousand, so what is kept is packed: some 150 bytes a
task. It is unpacked when somebody asks.
"""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from parsl_sizer.model import Ending, Kind, Outcome, format_amount, printable
from parsl_sizer.model.empty import EMPTY

_ENDINGS = tuple(Ending)
_KINDS = tuple(Kind)
_UNKNOWN = (math.nan,) * len(_KINDS)
_RECORD = struct.Struct(f"<B{2 * len(_KINDS) + 1}d")


class AttemptMade(NamedTuple):
    """One attempt: what it was given and why, what it used, how it ended."""

    number: int
    ending: Ending
    allocation: Mapping[Kind, float]
    peak: Mapping[Kind, float]
    wall_s: float
    why: str
    host: str | None

    def __str__(self) -> str:
        parts = []
        for kind in _KINDS:
            given, used = self.allocation.get(kind), self.peak.get(kind)
            if given is None and used is None:
                continue
            amount = "no limit" if given is None else format_amount(kind, given)
            use = "" if used is None else f" (used {format_amount(kind, used)})"
            parts.append(f"{kind.value} {amount}{use}")
        host = f" on {printable(self.host, keep='')}" if self.host else ""
        listed = ", ".join(parts) or "nothing sized"
        return (
            f"attempt {self.number}: {self.ending.value} after {self.wall_s:.3g} s{host}: "
            f"{listed}; {printable(self.why, keep='')}"
        )


class Sizing(NamedTuple):
    """The attempts at a task so far, the first one first."""

    category: str
    attempts: tuple[AttemptMade, ...]

    def __str__(self) -> str:
        category = printable(self.category, keep="")
        return "\n".join([category, *(f"  {attempt}" for attempt in self.attempts)])


class Story:
    """A `Sizing`, packed."""

    __slots__ = ("_before", "_host", "_record", "_why", "category")

    def __init__(self, outcomes: Sequence[Outcome], why: str) -> None:
        last = outcomes[-1]
        self.category = last.attempt.task.category
        self._before: tuple[AttemptMade, ...] = ()
        if len(outcomes) > 1:
            self._before = tuple(_made(one, str(one.attempt.why)) for one in outcomes[:-1])
        self._record = _packed(last)
        self._why = why
        self._host = last.host

    def sizing(self) -> Sizing:
        """The story in full."""
        before = self._before
        ending, *numbers = _RECORD.unpack(self._record)
        count = len(_KINDS)
        last = AttemptMade(
            len(before) + 1,
            _ENDINGS[ending],
            _known(numbers[:count]),
            _known(numbers[count : 2 * count]),
            numbers[-1],
            self._why,
            self._host,
        )
        return Sizing(self.category, (*before, last))


class _Condition:
    """What a future needs of a `threading.Condition`, in a tenth of the memory.

    Nobody waits for most futures of an executor: Parsl has a callback.
    """

    __slots__ = ("_lock", "_waited_for")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waited_for: threading.Condition | None = None

    def acquire(self) -> bool:
        return self._lock.acquire()

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        if self._waited_for is None:
            self._waited_for = threading.Condition(self._lock)
        return self._waited_for.wait(timeout)

    def notify_all(self) -> None:
        if self._waited_for is not None:
            self._waited_for.notify_all()


class SizedFuture(Future):  # type: ignore[type-arg]
    """The future that Parsl gets, with the task's story beside it."""

    exhausted: Mapping[Kind, float] = EMPTY
    """What the task ran out of although it had all of a node: the most that any node had."""

    def __init__(self, task_id: int | str) -> None:
        super().__init__()
        self._condition = _Condition()  # type: ignore[assignment]
        self.parsl_executor_task_id = task_id
        self.story: Story | None = None


def sizing_of(future: Future[Any]) -> Sizing | None:
    """The attempts, allocations, peaks and reasons of a task, by the future of its app.

    None if the task was not sized: it has not run yet, its result came from a memo or a
    checkpoint, or its executor is another one.
    """
    record = getattr(future, "task_record", None)
    inner = record.get("exec_fu") if isinstance(record, dict) else future
    story = getattr(inner, "story", None)
    return story.sizing() if isinstance(story, Story) else None


def _made(outcome: Outcome, why: str) -> AttemptMade:
    return Story([outcome], why).sizing().attempts[0]._replace(number=outcome.attempt.number)


def _packed(outcome: Outcome) -> bytes:
    allocation, peak = outcome.attempt.allocation, outcome.usage.peak
    return _RECORD.pack(
        _ENDINGS.index(outcome.ending),
        *map(allocation.get, _KINDS, _UNKNOWN),
        *map(peak.get, _KINDS, _UNKNOWN),
        outcome.usage.wall_s,
    )


def _known(numbers: list[float]) -> dict[Kind, float]:
    pairs = zip(_KINDS, numbers, strict=True)
    return {kind: number for kind, number in pairs if not math.isnan(number)}
