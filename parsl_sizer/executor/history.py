"""What a run knows of earlier ones, and what it leaves behind for later ones."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import math
import platform
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import parsl

from parsl_sizer.archive import Run
from parsl_sizer.archive.base import Archive, ArchiveError
from parsl_sizer.archive.open import Where, open_archive, shown
from parsl_sizer.archive.recorder import Recorder
from parsl_sizer.archive.sqlite import Empty
from parsl_sizer.archive.warm import lessons
from parsl_sizer.model import Kind, NodeProfile, Outcome, Resources, TaskInfo
from parsl_sizer.report.run_summary import NODE_MEMORY
from parsl_sizer.version import __version__

LARGEST_SCRIPT = 10_000_000
PATIENCE_S = 6.0
"""So long the tasks of a run wait in all for what is known of earlier ones, answers within
`SOON_S` not counted. A lock in PostgreSQL, which says more about itself, is given up before
that."""
SOON_S = 0.1

T = TypeVar("T")


class History:
    """The archive at a place, as one run reads and writes it."""

    def __init__(
        self,
        where: Where,
        labels: Mapping[str, object] | None,
        warn: Callable[[str], None],
        *,
        node: Callable[[], Resources | None] = lambda: None,
    ) -> None:
        self._where = where
        self._warn = warn
        self._archive: Archive | None = None
        self._is_readable = True
        self._patience_s = PATIENCE_S
        self._reader = ThreadPoolExecutor(1, "parsl_sizer-history")
        self._node = node
        self._has_recorded = False
        self._recorder = Recorder(where, this_run(labels or {}), warn=warn)
        self.run_id = self._recorder.run.run_id
        self.start = self._recorder.start

    def record(self, outcome: Outcome) -> None:
        """Keep an outcome; with the first the run is written, and by then a node is known."""
        if not self._has_recorded:
            self._has_recorded = True
            self._recorder.run = with_node(self._recorder.run, self._node())
        self._recorder.record(outcome)

    def load(self, task: TaskInfo) -> Future[Sequence[Outcome]]:
        """Have what the task's category did in earlier runs looked up, in another thread."""
        try:
            return self._reader.submit(self._ask, lambda archive: lessons(archive, task))
        except RuntimeError:  # the run is over, or Python is
            return nothing_known(task)

    def before(self, task: TaskInfo) -> Sequence[Outcome]:
        """Wait for what the task's category did in earlier runs."""
        return self.load(task).result()

    def profiles(self) -> Sequence[NodeProfile]:
        """What was measured of nodes."""
        return self._ask(lambda archive: archive.profiles())

    def _ask(self, question: Callable[[Archive], Sequence[T]]) -> Sequence[T]:
        if not self._is_readable:
            return ()
        began = time.monotonic()
        try:
            return within(self._patience_s, lambda: self._answer(question))
        except FutureTimeoutError:
            reason = f"Tasks have waited {PATIENCE_S:g} s for the archive {shown(self._where)}."
        except ArchiveError as error:
            reason = str(error)
        except OSError as error:
            reason = f"The archive {shown(self._where)} cannot be used: {error}."
        finally:
            took_s = time.monotonic() - began
            if took_s > SOON_S:
                self._patience_s -= took_s
        self._is_readable = False  # to wait for it again with each category would hold up all
        self._warn(f"{reason} Nothing more is asked of it: later categories start anew.")
        return ()

    def close(self) -> None:
        """Write what is left."""
        self._is_readable = False
        self._reader.shutdown()  # it is done with at most one more question, which has its limit
        archive, self._archive = self._archive, None
        if archive is not None:
            with contextlib.suppress(Exception):
                within(PATIENCE_S, archive.close)
        self._recorder.close()  # last: who only reads leaves the log of SQLite beside its file

    def _answer(self, question: Callable[[Archive], Sequence[T]]) -> Sequence[T]:
        if self._archive is None:
            try:
                self._archive = open_archive(self._where, read_only=True)
            except Empty:
                return ()
        return question(self._archive)


def nothing_known(_: TaskInfo) -> Future[Sequence[Outcome]]:
    """Return the answer where there is no archive."""
    future: Future[Sequence[Outcome]] = Future()
    future.set_result(())
    return future


def within(patience_s: float, call: Callable[[], T]) -> T:
    """What a call gives, from a thread of its own; after so long it is left to itself.

    A file system whose server is away lets those who ask it wait for ever.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="parsl_sizer-history", daemon=True).start()
    return future.result(patience_s)


def this_run(labels: Mapping[str, object]) -> Run:
    """What is known of the run that this process is."""
    script = Path(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c", "-m") else None
    return Run(
        run_id=f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:8]}",
        started_at=time.time(),
        user=_user(),
        workflow=script.name if script else None,
        checksum=_checksum(script) if script else None,
        host=socket.gethostname(),
        versions={
            "parsl_sizer": __version__,
            "parsl": parsl.__version__,
            "python": platform.python_version(),
        },
        labels=labels,
    )


def with_node(run: Run, node: Resources | None) -> Run:
    """The run, labelled with the memory of its largest node; a label of the user's stays."""
    if node is None or not 0 < node[Kind.MEMORY] < math.inf:
        return run
    return replace(run, labels={NODE_MEMORY: round(node[Kind.MEMORY]), **run.labels})


def _user() -> str | None:
    try:
        return getpass.getuser()
    except Exception:  # no name for the number: in a container, say
        return None


def _checksum(script: Path) -> str | None:
    try:
        if script.stat().st_size > LARGEST_SCRIPT:
            return None
        return hashlib.sha256(script.read_bytes()).hexdigest()[:16]
    except OSError:
        return None
