"""How large are input files? Asked in threads of its own: file systems take their time.

One that has not answered after `PATIENCE_S` is not waited for: its task is sized without.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import SimpleQueue

from parsl.data_provider.files import File

from parsl_sizer.model import logger_for

from .intake import size_of

logger = logger_for(__name__)

PATIENCE_S = 20.0
THREADS = 4


@dataclass(slots=True, eq=False)
class _Question:
    files: Iterable[File]
    tell: Callable[[float | None], None] | None
    give_up_at: float

    @property
    def is_open(self) -> bool:
        return self.tell is not None


class FileSizes:
    """Answers every question exactly once: with a size, or None if that is not known."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._questions: SimpleQueue[_Question | None] = SimpleQueue()
        self._open: deque[_Question] = deque()
        self._is_closed = threading.Event()
        self._has_any = threading.Event()
        targets = [self._answer] * THREADS + [self._give_up]
        self._threads = [
            # Daemons: one that hangs in a file system must not keep Python from leaving.
            threading.Thread(target=target, name="parsl_sizer-files", daemon=True)
            for target in targets
        ]
        self._is_started = self._has_warned = False

    def ask(self, files: Iterable[File], tell: Callable[[float | None], None]) -> None:
        """Have `tell` called with the bytes in all these files together."""
        question = _Question(files, tell, time.monotonic() + self._patience_s)
        with self._lock:
            if not self._is_started:
                self._is_started = True
                for thread in self._threads:
                    thread.start()
            self._open.append(question)
        self._questions.put(question)
        self._has_any.set()
        if self._is_closed.is_set():
            self._close(question, None)

    def close(self) -> None:
        """Whoever still waits for a size is told that it is not known."""
        with self._lock:  # else who gives up would begin to wait after it was woken
            self._is_closed.set()
            self._has_any.set()
            waiting = list(self._open)
        for _ in range(THREADS):
            self._questions.put(None)
        for question in waiting:
            self._close(question, None)

    def _answer(self) -> None:
        while (question := self._questions.get()) is not None:
            if question.is_open:
                self._close(question, size_of(question.files))

    def _give_up(self) -> None:
        """Close questions that nobody has answered in time; the oldest is the first."""
        while True:
            with self._lock:
                if self._is_closed.is_set():
                    return
                while self._open and not self._open[0].is_open:
                    self._open.popleft()
                oldest = self._open[0] if self._open else None
                if oldest is None:
                    self._has_any.clear()
            if oldest is None:
                self._has_any.wait()
            elif not self._is_closed.wait(max(0.0, oldest.give_up_at - time.monotonic())):
                if oldest.is_open and not self._has_warned:
                    self._has_warned = True
                    logger.warning(
                        "The sizes of input files are not known after %g s; tasks that read "
                        "them are sized without.",
                        self._patience_s,
                    )
                self._close(oldest, None)

    def _close(self, question: _Question, size: float | None) -> None:
        with self._lock:
            tell = question.tell
            question.tell, question.files = None, ()  # nothing is kept that it stands for
        if tell is None:
            return
        try:
            tell(size)
        except Exception:
            logger.exception("A task whose file sizes were asked for could not go on")
