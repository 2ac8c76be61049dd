"""What is to be done, one thing at a time and in order, by whoever is free.

Most messages are of calls that came back. To hand each to a thread of its own would switch
threads twice per task, which costs more than what is done about it. So who brings such a
message acts on it, and on all that wait, unless somebody is acting: then that one will.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

Message = Callable[[], None]

TICK_S = 1.0
"""So often at least its thread looks around."""


class Inbox:
    """Messages are called one at a time, in the order in which they came.

    Its thread calls `look_around` now and then, and that is a message like any other. The
    first that raises is the last one: `fail` is told why.
    """

    def __init__(
        self, name: str, look_around: Message, fail: Callable[[BaseException], None]
    ) -> None:
        self._look_around, self._fail = look_around, fail
        self._messages: deque[Message] = deque()
        self._acting = threading.Lock()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._has_rung = False
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to act, in a thread of its own."""
        self._thread.start()

    def post(self, message: Message) -> None:
        """Have it called soon, in the thread of the inbox or in that of who acts meanwhile."""
        self._messages.append(message)
        if not self._has_rung:  # it is cleared before the messages are looked at
            self._has_rung = True
            self._bell.put(None)

    def act(self, message: Message) -> None:
        """Have it called here and now, or by whoever is acting. Never raises."""
        messages = self._messages
        messages.append(message)
        # Who could not act because of us has left a message: so look again after the release.
        while messages and not self._is_over and self._acting.acquire(blocking=False):
            try:
                while messages and not self._is_over:
                    self._called(messages.popleft())
            finally:
                self._acting.release()

    def call(self, message: Message) -> None:
        """Have it called, and wait until that is done; or until nothing is called any more."""
        done = threading.Event()

        def called() -> None:
            try:
                message()
            finally:
                done.set()

        self.post(called)
        while not done.wait(0.1) and self._thread.is_alive():
            continue

    def end(self) -> None:
        """From within a message: nothing is called after it."""
        self._is_over = True

    def join(self, patience_s: float) -> None:
        """Wait for the end of the thread."""
        if self._thread.is_alive():
            self._thread.join(patience_s)

    def left(self) -> list[Message]:
        """What is not going to be called any more."""
        found = []
        while True:
            try:
                found.append(self._messages.popleft())
            except IndexError:
                return found

    def _run(self) -> None:
        while not self._is_over:
            with suppress(Empty):
                self._bell.get(timeout=TICK_S)
            self._has_rung = False
            self.act(self._look_around)

    def _called(self, message: Message) -> None:
        try:
            message()
        except BaseException as error:
            self._is_over = True
            self._fail(error)
