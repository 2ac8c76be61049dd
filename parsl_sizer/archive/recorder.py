"""Keeps what a run does, in the background, and never in its way.

Outcomes go into a bounded buffer, and a thread writes them every few seconds. Where the
archive cannot be written they are set aside in a file, with a message that says where.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import stat
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from parsl_sizer.model import Outcome

from .base import Archive, ArchiveError, Entry, Run
from .open import Where, is_on_network, open_archive, set_aside, shown
from .spool import Spool, merged
from .sqlite import Damaged

logger = logging.getLogger(__name__)

EVERY_S = 2.0
BATCH = 5000
MOST = 100_000
"""Outcomes that wait to be written. More are lost, and counted."""
AGAIN_S = 30.0
"""So long after an archive could not be used it is tried again."""


class Recorder:
    """Writes the outcomes of one run to the archive at a place."""

    def __init__(
        self,
        where: Where,
        run: Run,
        *,
        warn: Callable[[str], None],
        every_s: float = EVERY_S,
        most: int = MOST,
    ) -> None:
        self.run = run
        self.where = where
        self._warn = warn
        self._every_s = every_s
        self._most = most
        self._waiting: deque[Outcome] = deque()
        self._is_closing = threading.Event()
        self._archive: Archive | None = None
        self._try_at = 0.0
        self._lost = 0
        self._set_aside: Path | None = None
        self._has_replaced = False
        self._stack = contextlib.ExitStack()
        is_file = isinstance(where, Path)
        self._spool = Spool.beside(where) if isinstance(where, Path) else None
        self._always_spools = is_file and is_on_network(Path(where))
        self._thread = threading.Thread(target=self._run, name="parsl_sizer-archive", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def record(self, outcome: Outcome) -> None:
        """Keep an outcome; from any thread, at once."""
        if len(self._waiting) < self._most:
            self._waiting.append(outcome)
        else:
            self._lost += 1

    def close(self, patience_s: float = 30.0) -> None:
        """Write what is left."""
        self._is_closing.set()
        self._thread.join(patience_s)
        if self._thread.is_alive():
            self._warn(
                f"The archive {shown(self.where)} is still being written after {patience_s:g} s; "
                "what is left may be lost."
            )

    def _run(self) -> None:
        with self._stack:
            if self._always_spools and self._spool is not None:
                with contextlib.suppress(OSError):
                    self._stack.enter_context(self._spool.writing(self.run.run_id))
            while not self._is_closing.wait(self._every_s):
                self._flush()
            self._flush(is_last=True)
            self._end()

    def _flush(self, *, is_last: bool = False) -> None:
        """Write what waits; what cannot be written waits, or is set aside if that is too much."""
        while self._waiting:
            batch = [Entry(self.run, self._waiting[place]) for place in self._places()]
            try:
                if self._always_spools:
                    self._write_aside(batch)
                else:
                    self._opened().record(batch)
            except Damaged as error:
                self._replace(error)
                continue
            except ArchiveError as error:
                self._archive = None
                self._try_at = time.monotonic() + AGAIN_S
                if not is_last and len(self._waiting) < self._most // 2:
                    return
                self._keep_aside(batch, error)
            except Exception as error:  # one of them cannot be written, for whatever reason
                logger.exception("Outcomes could not be recorded")
                self._keep_aside(batch, ArchiveError(f"Outcomes could not be recorded: {error!r}."))
            for _ in batch:
                self._waiting.popleft()

    def _replace(self, error: Damaged) -> None:
        """Set a damaged archive aside, once; if it is damaged again, it is not used again."""
        if self._archive is not None:
            self._archive.close()
            self._archive = None
        if self._has_replaced or not isinstance(self.where, Path):
            self._try_at = math.inf
            return
        self._has_replaced = True
        try:
            self._warn(f"{error} It is kept as {set_aside(self.where)}, and a new one is begun.")
        except ArchiveError as fault:
            self._warn(str(fault))
            self._try_at = math.inf

    def _places(self) -> range:
        return range(min(BATCH, len(self._waiting)))

    def _opened(self) -> Archive:
        if self._archive is None:
            is_last = self._is_closing.is_set() and self._try_at < math.inf
            if time.monotonic() < self._try_at and not is_last:
                raise ArchiveError("It could not be used just now.")
            self._archive = open_archive(self.where, warn=self._warn)
        return self._archive

    def _write_aside(self, batch: list[Entry]) -> None:
        assert self._spool is not None
        try:
            self._spool.append(self.run.run_id, batch)
        except OSError as error:
            raise ArchiveError(f"{self._spool.folder} cannot be written to: {error}.") from error

    def _keep_aside(self, batch: list[Entry], error: Exception) -> None:
        """Set a batch aside: beside the archive, else in the folder for temporary files."""
        spools = [self._spool] if self._spool is not None and not self._always_spools else []
        with contextlib.suppress(OSError):
            spools.append(self._elsewhere())
        for spool in spools:
            try:
                path = spool.append(self.run.run_id, batch)
                if path != self._set_aside:  # until the end of this run nobody else reads it
                    self._stack.enter_context(spool.writing(self.run.run_id))
            except Exception:
                continue
            if path != self._set_aside:
                self._set_aside = path
                self._warn(
                    f"{error} What this run did is kept in {path}; `parsl-sizer import {path}` "
                    "adds it to an archive."
                )
            return
        if not self._lost:
            self._warn(f"{error} There is no place for what this run did, so it is not recorded.")
        self._lost += len(batch)

    @staticmethod
    def _elsewhere() -> Spool:
        """In the folder for temporary files: one that belongs to nobody else."""
        folder = Path(tempfile.gettempdir()) / f"parsl_sizer-set-aside-{os.getuid()}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            folder = Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
        return Spool(folder)

    def _end(self) -> None:
        """Put into the archive what was set aside, by this run or by one that was killed."""
        try:
            if self._spool is not None and (self._always_spools or self._archive is not None):
                merged(self._spool, self._opened(), own=self.run.run_id)
        except Exception as error:
            self._warn(f"{error} What is in {self._spool and self._spool.folder} is added later.")
        if self._lost:
            self._warn(f"{self._lost:,} outcomes of this run were not recorded.")
        if self._archive is not None:
            with contextlib.suppress(Exception):
                self._archive.close()
