"""Who works on what happens: one thread at a time, mostly the loop's own.

What happens elsewhere is put into an inbox, and the loop's thread carries it out. What a thread
offers it may carry out itself, if nobody else is at work: to wake another one for it, and to hand
Python's lock to that one and back, costs more than most work does. If somebody is, it waits a
moment for its turn, for the same reason.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

PATIENCE_S = 0.02
"""Nobody waits any longer for who has been at work for this long: a callback of a user's, say."""
MOST = 64
"""So many messages, and so many offers, are carried out in a turn: others want theirs."""

Message = Callable[[], None]


class Loop:
    """Carries out messages, none of them while another one is carried out.

    From the first message on, `tend` is called after each turn of the loop's own thread; it says
    in how many seconds it is to be called again at the latest. `ended` is called at the end, with
    the error if one has ended it; from then on only what is offered is carried out, by whom ever.
    """

    def __init__(
        self, tend: Callable[[], float], ended: Callable[[BaseException | None], None]
    ) -> None:
        self._tend = tend
        self._ended = ended
        self._inbox: SimpleQueue[Message] = SimpleQueue()
        self._offers: deque[tuple[Message, bool]] = deque()
        self._turn = threading.Lock()
        self._at_work: int | None = None
        self._since: float | None = None
        self._thread = threading.Thread(target=self._run, name="parsl_sizer-loop", daemon=True)
        self._failure: BaseException | None = None
        self._is_called = self._wants_its_turn = self._is_to_wake = False
        self._is_stopped = self._has_ended = False

    def start(self) -> None:
        self._thread.start()

    def put(self, message: Message) -> None:
        """Have something carried out by the loop's thread."""
        self._inbox.put(message)

    def qsize(self) -> int:
        """How many messages are in the inbox."""
        return self._inbox.qsize()

    def wake(self) -> None:
        """Let its thread tend, as soon as it is free to."""
        if self.is_mine:
            self._is_to_wake = True
        else:
            self._call()

    def offer(self, message: Message, *, anywhere: bool = True) -> None:
        """Have something carried out, in the order of offers, also if the loop ends before.

        It may be by this thread, if it may be anywhere. Never by the main one: Ctrl-C would leave
        it half done.
        """
        self._offers.append((message, anywhere))
        is_main = threading.current_thread() is threading.main_thread()
        if self.is_mine or not (self._has_ended or (anywhere and not is_main)):
            self._call()
        else:
            self._work_off()

    def ask(self, action: Callable[[], None]) -> None:
        """Wait until something is carried out, or nothing will be any more."""
        if self.is_mine:  # a callback of a user's shuts us down
            action()
            return
        done = threading.Event()

        def act() -> None:
            try:
                self._take_offers(len(self._offers))  # who asks may have offered before
                action()
            finally:
                done.set()

        self._inbox.put(act)
        while not done.wait(0.1) and self._thread.is_alive():
            continue

    def stop(self) -> None:
        """End with the message that calls this."""
        self._is_stopped = True
        self.wake()

    def join(self, timeout: float) -> None:
        """Wait for its end, unless it waits for the caller."""
        if self._thread.is_alive() and not self.is_mine:
            self._thread.join(timeout)

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread is at work."""
        return self._at_work == threading.get_ident()

    @property
    def is_elsewhere(self) -> bool:
        """Whether who is at work is not the loop's thread, though there still is one."""
        return not self._has_ended and self._at_work != self._thread.ident

    def _run(self) -> None:
        wait_s = None
        try:
            while not self._is_stopped and self._failure is None:
                message = self._next(wait_s)
                with self._own_turn():
                    if self._failure is None:
                        self._carry_out(message)
                        wait_s = self._tend()
                        self._is_to_wake = False
        except BaseException as error:
            self._failure = error
        with self._own_turn():
            self._has_ended = True
            self._ended(self._failure)
        self._work_off_late()

    def _call(self) -> None:
        """Let the loop's thread have a turn; once is enough until it has."""
        if not self._is_called:
            self._is_called = True
            self._inbox.put(_nothing)

    def _next(self, wait_s: float | None) -> Message:
        try:
            return self._inbox.get(timeout=wait_s)
        except Empty:
            return _nothing

    def _carry_out(self, first: Message) -> None:
        """One message, those behind it, and what was offered."""
        behind = min(self._inbox.qsize(), MOST)
        first()
        while behind and not self._is_stopped:
            behind -= 1
            self._inbox.get()()
        self._take_offers()
        if self._offers:
            self._call()

    def _work_off(self) -> None:
        """Carry out what is offered, if there is a turn to be had."""
        if not self._take():
            self._call()
            return
        try:
            self._take_offers()
        except BaseException as error:
            if self._has_ended:
                raise
            self._failure = error
        finally:
            is_to_wake = self._is_to_wake or bool(self._offers) or self._failure is not None
            self._is_to_wake = False
            self._release()
        if is_to_wake:  # not before: it would have to wait for its turn
            self._call()
        self._work_off_late()

    def _work_off_late(self) -> None:
        """Carry out what was left by who got no turn, if the inbox is not read any more."""
        if self._has_ended and self._offers:
            self._work_off()

    def _take_offers(self, most: int = MOST) -> None:
        """Carry out those that are here and that may be by this thread."""
        many = min(len(self._offers), most)
        is_elsewhere = self.is_elsewhere
        while self._offers:
            if not self._has_ended and (many == 0 or self._failure is not None):
                return
            if is_elsewhere and not self._offers[0][1]:
                return
            many -= 1
            message, _ = self._offers.popleft()
            message()

    @contextmanager
    def _own_turn(self) -> Iterator[None]:
        self._wants_its_turn = True
        self._turn.acquire()
        self._wants_its_turn = self._is_called = False
        self._begin()
        try:
            yield
        finally:
            self._release()

    def _take(self) -> bool:
        if self._wants_its_turn and not self._turn.locked():
            return False  # it comes first
        since, left_s = self._since, PATIENCE_S
        if since is not None:
            left_s = max(0.0, since + PATIENCE_S - time.monotonic())
        if not self._turn.acquire(timeout=left_s):
            return False
        self._begin()
        return True

    def _begin(self) -> None:
        self._at_work, self._since = threading.get_ident(), time.monotonic()

    def _release(self) -> None:
        self._at_work = self._since = None
        self._turn.release()


def _nothing() -> None:
    """What is put into the inbox to wake its reader."""
