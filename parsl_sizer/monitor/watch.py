"""One call, looked at until it answers, breaks a limit or dies.

A limit of memory is raised instead of broken where the call may grow in its `place`.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Any

from . import probe, report, sandbox
from .files import Files
from .limit import Limit
from .node_ledger import Place
from .sampler import Sampler, peak_of

FIRST_S, SECOND_S, LONGEST_S = 0.010, 0.020, 0.050
"""Most calls that are short return before the first look at them."""
SLOWER = 1.2
SHARE = 0.03
"""At most this share of the time goes into looking, except while a limit is exceeded."""
DISK_EVERY_S, DISK_SHARE = 0.05, 0.02
GROWTH = 1.05
"""A call that may grow is given so many times what it uses, or less if less is left."""
PATRON_EVERY_S = 1.0


class Watch:
    """What is seen of one call from outside, and what its order allows."""

    def __init__(
        self,
        order: dict[str, Any],
        pid: int,
        *,
        keeper: int,
        fresh: int,
        base: int,
        folder: str | None,
        files: Files,
        patron: probe.Known | None,
        place: Place,
        at_growth: Callable[[float], None],
    ) -> None:
        self.broken: list[str] = []
        self._place = place
        self._at_growth = at_growth
        self._grown: float | None = None
        self._began = perf_counter()
        self._order = order
        self._pid, self._keeper, self._fresh, self._base = pid, keeper, fresh, base
        self._folder = folder
        self._files = files
        self._limits: dict[str, Limit] = {}
        self._sampler: Sampler | None = None
        self._most_disk = 0
        self._next_disk = self._next_patron = 0.0
        self._patron = patron

    def wait(self, poll: select.poll, at_first_look: Callable[[], None]) -> str:
        """Look again and again: "answered", "broken" or "died"."""
        if poll.poll(FIRST_S * 1000):
            return "answered"
        at_first_look()
        self._hold()
        sampler = self._sampler = self._begin()
        pause_s, usual_s = 0.0, SECOND_S
        while not poll.poll(pause_s * 1000):
            self._hold()
            took_s = sampler.sample()
            if not sampler.is_root_alive or self._is_orphaned(perf_counter()):
                return "answered" if poll.poll(0) else "died"
            self._compare("memory", sampler.now)
            self._look_at_disk(perf_counter())
            if self.broken:
                return "answered" if poll.poll(0) else "broken"
            pause_s = max(usual_s, took_s / SHARE)
            if any(limit.first_above is not None for limit in self._limits.values()):
                pause_s = min(pause_s, SECOND_S)
            usual_s = min(usual_s * SLOWER, LONGEST_S)
        return "answered"

    def _hold(self) -> None:
        """Have a call that has lasted so long hold its claim, if it began without."""
        if self._place.hold() and self._order.get("enforce"):
            limit = (self._order.get("limits") or {}).get("memory")
            if limit is not None:
                self._at_growth(limit)

    def _begin(self) -> Sampler:
        """Only what lasts longer than most calls needs all this."""
        limits = dict(self._order.get("limits") or {})
        if not self._order.get("enforce"):  # what it takes has to be known all the same
            limits = {"memory": limits.get("memory")} if self._place.growth else {}
        for kind in ("memory", "disk"):
            if limits.get(kind) is not None:
                self._limits[kind] = Limit(limits[kind], self._began)
        return Sampler(
            self._pid,
            fresh=self._fresh,
            earlier=self._base - self._fresh,
            limit=limits.get("memory"),
            points=int(self._order.get("series") or 0),
            twin=self._keeper,
            adopter=self._keeper,
            began=self._began,
            files=self._files,
        )

    def _is_orphaned(self, now: float) -> bool:
        """Whether nobody waits for this call any more."""
        if self._patron is None or now < self._next_patron:
            return False
        self._next_patron = now + PATRON_EVERY_S
        return not probe.is_same(*self._patron)

    def _compare(self, kind: str, use: int) -> None:
        limit = self._limits.get(kind)
        if limit is None or not limit.is_broken_by(use, perf_counter()):
            return
        if kind == "disk":
            self.broken.append(kind)
        elif self._sampler is not None:
            # To be sure of what the members of a tree share takes long.
            use = self._sampler.verify()
            if use <= limit.amount or self._grows_with(use, limit):
                return
            if self._order.get("enforce"):
                self.broken.append(kind)
            else:  # it has what it takes, also if that cannot be noted
                limit.raise_to(use, perf_counter())

    def _grows_with(self, use: int, limit: Limit) -> bool:
        """Have the call hold a little more memory than it uses, if it may."""
        amount = self._place.grown("memory", use, GROWTH * use)
        if amount is None:
            return False
        self._grown = amount
        limit.raise_to(amount, perf_counter())
        if self._sampler is not None:
            self._sampler.limit = amount
        if self._order.get("enforce"):
            self._at_growth(amount)
        return True

    def _look_at_disk(self, now: float) -> None:
        if self._folder is None or now < self._next_disk:
            return
        began = thread_time()
        used = sandbox.used(self._folder)
        self._next_disk = now + max(DISK_EVERY_S, (thread_time() - began) / DISK_SHARE)
        if used is not None:
            self._most_disk = max(used, self._most_disk)
            self._compare("disk", used)

    def fill(self, made: dict[str, Any]) -> None:
        """What is known of a call that gave no account of itself."""
        made["wall_s"] = perf_counter() - self._began
        if self._sampler is not None:
            self._sampler.look_at_cpu()
            made["peak"]["memory"] = self._sampler.peak
            made["cpu_s"] = self._sampler.cores.cpu_s
        self._fill_course(made)

    def fill_from(self, made: dict[str, Any], head: dict[str, Any], body: bytes) -> None:
        """The answer of a call, and its account of itself."""
        made["ending"] = head["ending"]
        made["payload"] = body if head["has_payload"] else None
        if "result" in head:
            made["result"] = head["result"]
        if head.get("ended"):
            made["ended_processes"] = True
        made["wall_s"], made["cpu_s"] = head["wall_s"], head["cpu_s"]
        if "after" in head:
            made["peak"]["memory"] = peak_of(head, self._base, self._sampler, self._files)
        self._fill_course(made)

    def _fill_course(self, made: dict[str, Any]) -> None:
        if self._grown is not None and self._order.get("enforce"):
            made["grown"] = {"memory": self._grown}
        if self._sampler is not None:
            made["series"] = self._sampler.series.points
        report.fill_cores(made, self._sampler.cores.peak if self._sampler else None)

    def fill_disk(self, made: dict[str, Any], at_end: int | None) -> None:
        """The most of the disk, also at the very end."""
        if at_end is not None:
            made["peak"]["disk"] = max(at_end, self._most_disk)
