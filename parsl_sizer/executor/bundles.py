"""Calls that are over in a moment, sent several at a time.

A call crosses four processes, whatever it does: where the calls themselves take less than that,
to send them together makes more of them. Each is still measured, limited and answered for
itself, by one worker, one after the other. But they are all answered when the last of them is
over, so only what has been short for long goes together, and only while the engine has enough to
do without it. If one does take long, those behind it are sent back, and sent again alone.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from parsl_sizer.engines import Engine
from parsl_sizer.model import Attempt, OptOut
from parsl_sizer.monitor.wire import opened_all

from .calls import Call
from .ending import Sent, TaskLost

SIZE = 8
"""So many calls go together."""
ENOUGH = 3
"""So many calls for each slot are with the engine before any have to wait for company."""
MOMENT_S = 0.005
"""Calls that go together take no longer than this each..."""
PROVEN = 1000
"""...as so many of their category in a row have shown."""
LARGE = 1 << 16
"""Bytes of a call that is better sent alone."""
APART = frozenset({OptOut.ALONE, OptOut.NO_RETRY})
"""What says that others must not matter: if one of them ends the worker, all are run again."""


@dataclass(slots=True, eq=False)
class Bundle:
    """Attempts that are sent with the same order, and what each of them calls."""

    specification: dict[str, object]
    order: dict[str, object]
    attempts: list[Attempt] = field(default_factory=list)
    buffers: list[bytes] = field(default_factory=list)

    def send(self, engine: Engine) -> Future[Any]:
        """Give it to the engine."""
        return engine.submit_together(self.specification, self.order, self.buffers)

    def answers(self, future: Future[Any]) -> list[Future[Any] | Sent]:
        """The answer to each attempt; if the bundle failed as a whole, its failure to all."""
        if future.exception() is not None:
            return [future] * len(self.attempts)
        came = opened_all(future.result())
        if came is not None and len(came) == len(self.attempts):
            return [Sent(value) for value in came]
        failed: Future[Any] = Future()
        failed.set_exception(
            TaskLost(f"What {len(self.attempts)} calls gave back is not readable.")
        )
        return [failed] * len(self.attempts)


class Bundler:
    """Says which attempts may go with others, and keeps those that wait for company."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._short: dict[str, int] = {}  # of each category, how many calls in a row were
        self.open: Bundle | None = None
        """Attempts that wait for more of their kind."""

    def took(self, category: str, wall_s: float) -> None:
        """A call of this category took so long."""
        self._short[category] = self._short.get(category, 0) + 1 if wall_s <= MOMENT_S else 0

    def may_join(self, call: Call, attempt: Attempt) -> bool:
        """Whether an attempt may be sent with others: it must not matter to it what they do."""
        task = attempt.task
        return (
            self._short.get(task.category, 0) >= PROVEN
            and attempt.number == 1
            and not task.opt_outs & APART
            and call.packed is not None
            and sum(map(len, call.packed)) <= LARGE
            and self._engine.sends_together
        )

    def add(self, bundle: Bundle) -> Bundle | None:
        """Let an attempt wait for others; what is to be sent now, if anything."""
        open_ = self.open
        if open_ is None:
            self.open = bundle
            return None
        if open_.order != bundle.order or open_.specification != bundle.specification:
            self.open = bundle
            return open_
        open_.attempts += bundle.attempts
        open_.buffers += bundle.buffers
        return self.close() if len(open_.attempts) >= SIZE else None

    def close(self) -> Bundle | None:
        """What waits for company, which it does no longer."""
        bundle, self.open = self.open, None
        return bundle
