"""Calls that are over in a moment, sent several at a time.

A call crosses four processes, whatever it does: where the calls themselves take less than that,
to send them together makes more of them. Each is still measured, limited and answered for
itself, by one worker, one after the other. But they are all answered when the last of them is
over, so only what has been short for long goes together, and only while every slot has a call.
Nobody waits for others while the engine has little to do: who is there by then goes. If one does
take long, those behind it are sent back when it is over, and sent again alone; so are all of them
if the worker was lost, and who is to blame shows then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from parsl_sizer.engines import Engine
from parsl_sizer.model import Attempt, OptOut
from parsl_sizer.monitor.wire import opened_all

from .calls import Call
from .ending import Sent

logger = logging.getLogger(__name__)

SIZE = 8
"""So many calls go together."""
ENOUGH = 3
"""So many calls for each slot are with the engine before any have to wait for company that is
not there yet."""
MOMENT_S = 0.005
"""Calls that go together take no longer than this on average..."""
PROVEN = 1000
"""...of about so many before them of their category..."""
LONG = 10
"""...of which none took longer than so many moments: a busy machine makes a call that long."""
WAIT_S = 0.02
"""For company nobody waits longer than this."""
KINDS = 4
"""Bundles with so many different orders are open at a time."""
LARGE = 1 << 16
"""Bytes of a call that is better sent alone."""
APART = frozenset({OptOut.ALONE, OptOut.NO_RETRY})
"""What says that others must not matter: if one of them ends the worker, all are run again."""
NONE = (0, 0.0)
NOT_RUN: dict[str, object] = {"parsl_sizer": 1, "ending": "refused"}
"""The report of an attempt that is to be sent again, alone."""


@dataclass(slots=True, eq=False)
class Bundle:
    """Attempts that are sent with the same order, and what each of them calls."""

    specification: dict[str, object]
    order: dict[str, object]
    attempts: list[Attempt]
    buffers: list[bytes]
    alone: Callable[[], None]
    """Sends the first of them, if nobody joins it."""
    opened_at: float

    def goes_with(self, other: Bundle) -> bool:
        """Whether they can be one."""
        return self.order == other.order and self.specification == other.specification

    def send(self, engine: Engine) -> Future[Any]:
        """Give it to the engine."""
        return engine.submit_together(self.specification, self.order, self.buffers)

    def answers(self, engine: Engine, future: Future[Any]) -> list[tuple[Attempt, Sent]]:
        """The answer to each attempt. If that of all is a failure, each has to be asked alone."""
        came = None
        try:
            if future.exception() is None:
                came = opened_all(future.result())
            else:
                engine.is_unequipped(future)
        except Exception:  # it was cancelled, or is nothing that can be read
            logger.exception("What %d calls gave back cannot be read", len(self.attempts))
        if came is None or len(came) != len(self.attempts):
            came = [NOT_RUN] * len(self.attempts)
        return [(attempt, Sent(value)) for attempt, value in zip(self.attempts, came, strict=True)]


class Bundler:
    """Says which attempts may go with others, and keeps those that wait for company."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._short: dict[str, tuple[int, float]] = {}  # how many calls, and their average
        self._open: list[Bundle] = []

    def took(self, category: str, wall_s: float) -> None:
        """A call of this category took so long."""
        if wall_s > LONG * MOMENT_S:
            self.doubt(category)
            return
        count, mean = self._short.get(category, NONE)
        count = min(count + 1, PROVEN)
        self._short[category] = count, mean + (wall_s - mean) / count

    def doubt(self, category: str) -> None:
        """Let a category prove anew that its calls are short."""
        self._short[category] = NONE

    def may_join(self, call: Call, attempt: Attempt) -> bool:
        """Whether an attempt may be sent with others: it must not matter to it what they do."""
        task = attempt.task
        count, mean = self._short.get(task.category, NONE)
        return (
            count >= PROVEN
            and mean <= MOMENT_S
            and attempt.number == 1
            and not task.opt_outs & APART
            and call.packed is not None
            and sum(map(len, call.packed)) <= LARGE
            and self._engine.sends_together
        )

    def add(self, bundle: Bundle) -> list[Bundle]:
        """Let an attempt wait for others; what is to be sent now."""
        for found in self._open:
            if found.goes_with(bundle):
                found.attempts += bundle.attempts
                found.buffers += bundle.buffers
                if len(found.attempts) < SIZE:
                    return []
                self._open.remove(found)
                return [found]
        self._open.append(bundle)
        return [self._open.pop(0)] if len(self._open) > KINDS else []

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._open)

    def is_due(self, now: float) -> bool:
        """Whether somebody has waited for long enough."""
        return bool(self._open) and now - self._open[0].opened_at >= WAIT_S

    def close(self) -> list[Bundle]:
        """All who wait for company, which they do no longer."""
        bundles, self._open = self._open, []
        return bundles
