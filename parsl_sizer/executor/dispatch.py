"""On the way to the engine and back: attempts are sent, alone or with others, and come back.

All of it is for who works for the loop. What comes back does so in a thread of the engine's, which
only leaves word in the loop's inbox.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

from parsl_sizer.engines import Engine
from parsl_sizer.model import Attempt, Resources

from .bundles import ENOUGH, WAIT_S, Bundle, Bundler
from .calls import Call
from .ending import Sent

Answers = Sequence[tuple[Attempt, Future[Any] | Sent]]
"""What came of attempts that were sent together."""


class Inbox(Protocol):
    """Where word is left for the loop."""

    def put(self, message: Callable[[], None]) -> None: ...

    def qsize(self) -> int: ...

    def wake(self) -> None: ...


class Dispatch:
    """Sends attempts, and has `came_back` called in the loop with what came of them."""

    def __init__(self, engine: Engine, inbox: Inbox, came_back: Callable[[Answers], None]) -> None:
        self.slots = 0
        """Of all nodes."""
        self._engine = engine
        self._inbox = inbox
        self._came_back = came_back
        self._bundler = Bundler(engine)
        self._calls = 0  # that are with the engine
        self.took, self.doubt = self._bundler.took, self._bundler.doubt

    @property
    def wait_s(self) -> float | None:
        """After so long `look` has to be called; None if there is no need to."""
        return WAIT_S if self._bundler else None

    def launch(self, call: Call, attempt: Attempt, capacity: Resources | None) -> None:
        """Send an attempt, which may have to wait a moment for others."""
        if self._calls < self.slots or not self._bundler.may_join(call, attempt):
            self._send_waiting()  # who came first goes first
            self.send(call, attempt, capacity)
            return
        alone = partial(self.send, call, attempt, capacity)
        try:
            specification = self._engine.specification(attempt.allocation, call.given, capacity)
            order, buffer = call.order(self._engine, attempt), call.buffer()
        except Exception:  # what is wrong with it shows when it is sent alone
            alone()
            return
        bundle = Bundle(specification, order, [attempt], [buffer], alone, time.monotonic())
        if not self._bundler:
            self._inbox.wake()  # it has to look, now that somebody waits
        for full in self._bundler.add(bundle):
            self._send_bundle(full)

    def send(
        self, call: Call, attempt: Attempt, capacity: Resources | None, declined: int = 0
    ) -> None:
        """Send an attempt alone, now; `declined` is how often it was sent back unrun."""
        engine = self._engine.of(attempt)
        launch = partial(call.launch, engine, attempt, capacity, declined=declined)
        self._give(engine, launch, lambda done: [(attempt, done)])

    def look(self, now: float) -> None:
        """Let nobody wait for company for long, or while the engine has little to do."""
        if self._bundler and (self._is_wanted() or self._bundler.is_due(now)):
            self._send_waiting()

    def give_up(self) -> list[Attempt]:
        """Send nothing more; those that have waited for company."""
        return [attempt for bundle in self._bundler.close() for attempt in bundle.attempts]

    def _is_wanted(self) -> bool:
        """Whether the engine has little to do, and no more company is at the door."""
        return self._calls < ENOUGH * self.slots and not self._inbox.qsize()

    def _send_waiting(self) -> None:
        for bundle in self._bundler.close():
            self._send_bundle(bundle)

    def _send_bundle(self, bundle: Bundle) -> None:
        if len(bundle.attempts) == 1:  # nobody came
            bundle.alone()
        else:
            engine = self._engine
            self._give(engine, partial(bundle.send, engine), partial(bundle.answers, engine))

    def _give(
        self,
        engine: Engine,
        call: Callable[[], Future[Any]],
        answers: Callable[[Future[Any]], Answers],
    ) -> None:
        """Call the inner executor; if it takes no call, that one has failed."""
        self._calls += 1
        try:
            future = call()
        except Exception as error:
            future = Future()
            future.set_exception(engine.why_failed() or error)
        future.add_done_callback(lambda done: self._inbox.put(partial(self._take, answers, done)))

    def _take(self, answers: Callable[[Future[Any]], Answers], done: Future[Any]) -> None:
        self._calls -= 1
        self._came_back(answers(done))
