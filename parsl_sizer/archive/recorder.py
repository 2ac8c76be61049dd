"""Keeps what a run does, in the background, and never in its way.

Outcomes go into a bounded buffer, and a thread writes them every few seconds. Where the
archive cannot be written they are set aside in a file, with a message that says where.
"""

from __future__ import annotations

import contextlib
import math
import os
import stat
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from parsl_sizer.model import Outcome, logger_for

from .base import Archive, ArchiveError, Entry, Run
from .divided import put
from .open import Where, is_on_network, open_archive, set_aside, shown
from .spool import BAD, WAITING, Spool, merged
from .sqlite import Damaged, SqliteArchive

logger = logger_for(__name__)

EVERY_S = 2.0
BATCH = 5000
MOST = 100_000
"""Outcomes that wait to be written. More are lost, and counted."""
AGAIN_S = 30.0
"""So long after an archive could not be used it is tried again."""
WHAT = {
    WAITING: "What this run did is kept in {path}; `parsl-sizer import {path}` adds it to an "
    "archive.",
    BAD: "What is refused is kept in {path}, and all else is recorded.",
}
"""What is said of what is set aside, by the end of the file's name."""


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
        self._fault = ""
        self._lost = 0
        self._set_aside: set[Path] = set()
        self._has_replaced = False
        self._stack = contextlib.ExitStack()
        self._spool = Spool.beside(where) if isinstance(where, Path) else None
        self._always_spools = False
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
        """Write what is left; where that takes too long, to a file elsewhere."""
        self._is_closing.set()
        self._thread.join(patience_s)
        if self._thread.is_alive():
            late = ArchiveError(
                f"The archive {shown(self.where)} is still being written after {patience_s:g} s."
            )
            left = [Entry(self.run, outcome) for outcome in list(self._waiting)]
            if left:
                self._keep_aside(left, late, is_away=True)
            else:
                self._warn(str(late))
            self._tell_lost()

    def _run(self) -> None:
        with self._stack:
            # Here, as all that asks the file system: one that is away may never answer.
            self._always_spools = isinstance(self.where, Path) and is_on_network(self.where)
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
                self._write(batch)
            except Damaged as error:
                self._replace(error)
                continue
            except ArchiveError as error:
                self._let_go()
                now = time.monotonic()
                if now >= self._try_at:  # so that it was tried
                    self._try_at, self._fault = now + AGAIN_S, str(error)
                if not is_last and len(self._waiting) < self._most // 2:
                    return
                self._keep_aside(batch, error)
            except Exception as error:
                logger.exception("Outcomes could not be recorded")
                self._keep_aside(batch, ArchiveError(f"Outcomes could not be recorded: {error!r}."))
            for _ in batch:
                self._waiting.popleft()

    def _write(self, batch: list[Entry]) -> None:
        """Write a batch; those of it that are refused are set aside."""
        write = self._write_aside if self._always_spools else self._opened().record
        _, refusals = put(write, batch)
        if self._has_moved():  # meanwhile, so that nobody finds what was written
            _, refusals = put(self._opened().record, batch)
        for entries, error in refusals:
            logger.error("Outcomes were refused", exc_info=error)
            if not isinstance(error, ArchiveError):
                error = ArchiveError(f"An outcome cannot be recorded: {error!r:.200}.")
            self._keep_aside(entries, error, suffix=BAD)

    def _replace(self, error: Damaged) -> None:
        """Set a damaged archive aside, once; if it is damaged again, it is not used again."""
        archive = self._let_go()
        if self._has_replaced or not isinstance(archive, SqliteArchive):
            self._give_up(error)
            return
        self._has_replaced = True
        try:
            aside = set_aside(archive.path, archive.file)
            if aside is not None:
                self._warn(f"{error} It is kept as {aside}, and a new one is begun.")
        except ArchiveError as fault:
            self._give_up(fault)

    def _give_up(self, fault: ArchiveError) -> None:
        self._try_at, self._fault = math.inf, f"{fault} This run does not use it again."

    def _places(self) -> range:
        return range(min(BATCH, len(self._waiting)))

    def _opened(self) -> Archive:
        if self._has_moved():
            self._let_go()
        if self._archive is None:
            is_last = self._is_closing.is_set() and self._try_at < math.inf
            if time.monotonic() < self._try_at and not is_last:
                raise ArchiveError(self._fault)
            self._archive = open_archive(self.where, warn=self._warn)
        return self._archive

    def _has_moved(self) -> bool:
        """Whether another process has set the archive aside, say, or somebody has removed it."""
        return isinstance(self._archive, SqliteArchive) and self._archive.has_moved()

    def _write_aside(self, batch: Sequence[Entry]) -> int:
        assert self._spool is not None
        try:
            self._spool.append(self.run.run_id, batch)
            return len(batch)
        except OSError as error:
            raise ArchiveError(f"{self._spool.folder} cannot be written to: {error}.") from error

    def _keep_aside(
        self,
        batch: Sequence[Entry],
        error: Exception,
        *,
        suffix: str = WAITING,
        is_away: bool = False,
    ) -> None:
        """Set a batch aside: beside the archive, else in the folder for temporary files."""
        spools = []
        if self._spool is not None and not self._always_spools and not is_away:
            spools.append(self._spool)
        with contextlib.suppress(OSError):
            spools.append(self._elsewhere())
        if any(self._is_kept(batch, error, spool, suffix) for spool in spools):
            return
        if not self._lost:
            self._warn(f"{error} There is no place for what this run did, so it is not recorded.")
        self._lost += len(batch)

    def _is_kept(self, batch: Sequence[Entry], error: Exception, spool: Spool, suffix: str) -> bool:
        """Whether a batch could be set aside here; the first time it is said where."""
        try:
            path = spool.append(self.run.run_id, batch, suffix)
            if path not in self._set_aside and suffix == WAITING:
                # Until the end of this run nobody else reads it.
                self._stack.enter_context(spool.writing(self.run.run_id))
        except Exception:
            return False
        if path not in self._set_aside:
            self._set_aside.add(path)
            self._warn(f"{error} {WHAT[suffix].format(path=path)}")
        return True

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
        self._tell_lost()
        self._let_go()

    def _tell_lost(self) -> None:
        """Say how many are lost, each of them once."""
        lost, self._lost = self._lost, 0
        if lost:
            self._warn(f"{lost:,} outcomes of this run were not recorded.")

    def _let_go(self) -> Archive | None:
        """Close the archive, if one is open; which one that was."""
        archive, self._archive = self._archive, None
        if archive is not None:
            with contextlib.suppress(Exception):
                archive.close()
        return archive
