"""What is known of a queue, by all workflows that keep it in the same archive."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from random import Random

from parsl_sizer.archive import ArchiveError, Wait
from parsl_sizer.archive.open import Where, open_archive, shown
from parsl_sizer.scaling.geometry import Geometry
from parsl_sizer.scaling.waits import DEFAULT, Rule, WaitEstimator

from .history import PATIENCE_S, within

LAST = 500
"""So many of the newest waits at a place are learned from at the start."""


class SharedWaits(WaitEstimator):
    """Learns from this workflow's waits and, with `share`, from those of all others.

    The archive has the waits themselves: what is learned from them follows.
    """

    def __init__(
        self,
        where: Where | None,
        place: str,
        run_id: str,
        random: Random,
        warn: Callable[[str], None],
        *,
        rule: Rule = DEFAULT,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(rule)
        self._where = where
        self._place = place
        self._run_id = run_id
        self._random = random
        self._warn = warn
        self._now = now
        self._new: list[Wait] = []
        self._after: int | None = None

    def observe(
        self,
        geometry: Geometry,
        wait_s: float,
        random: Random,
        *,
        estimate: float | None = None,
        at_most: bool = False,
    ) -> None:
        """A block of this geometry has waited so long, or `at_most` so long."""
        super().observe(geometry, wait_s, random, estimate=estimate, at_most=at_most)
        asked_at = self._now() - wait_s
        self._new.append(Wait(self._run_id, self._place, geometry, asked_at, wait_s, at_most))

    def share(self) -> None:
        """Tell others what was seen here, and learn what they have seen."""
        where = self._where
        if where is None:
            return
        new = list(self._new)
        try:
            found = within(PATIENCE_S, lambda: self._exchanged(where, new))
        except (ArchiveError, OSError, FutureTimeoutError) as error:
            self._where = None  # to wait for it again each time would hold up the blocks
            reason = str(error) or f"The archive {shown(where)} has not answered."
            self._warn(f"{reason} So waits are not shared with other workflows.")
            return
        del self._new[: len(new)]
        for wait in found:
            if wait.run_id != self._run_id:
                super().observe(wait.geometry, wait.wait_s, self._random, at_most=wait.at_most)
            self._after = wait.number

    def _exchanged(self, where: Where, new: list[Wait]) -> list[Wait]:
        archive = open_archive(where)
        try:
            if new:
                archive.record_waits(new)
            after, last = (0, LAST) if self._after is None else (self._after, 10 * LAST)
            return archive.waits(self._place, after=after, last=last)
        finally:
            archive.close()
