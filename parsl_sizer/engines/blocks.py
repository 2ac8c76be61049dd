"""The blocks of an inner executor, each asked for in its own shape and given back by name.

Parsl asks for blocks that are all alike, and gives back whichever has been idle the longest,
those first that still wait. Here a block has a name, a geometry and a time limit, and it is
told apart from the others until its job is over. All goes through the inner executor and its
provider; of these nothing is replaced.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from parsl.jobs.states import JobState, JobStatus

from parsl_sizer.model import logger_for
from parsl_sizer.scaling.geometry import Geometry

from .batch import Batch, JobFacts, Phase, batch_of
from .watchdog import Watchdog

logger = logger_for(__name__)

LOOK_S = 2.0
"""So often the batch system is asked, if we are: more would annoy those who run it."""
AGAIN_S = 30.0
"""A block that was refused, or that ended at once, is over only after so long: whoever wants
another does not ask the batch system again and again."""
UNSEEN = 3
"""So many times in a row the batch system has to not know a job before it is taken for over."""


UNKNOWN = JobFacts(Phase.WAITING, JobState.PENDING)


class Started(NamedTuple):
    """A block runs; `asked_at` and `wait_s` are the batch system's word where it has one."""

    block: str
    geometry: Geometry
    asked_at: float
    wait_s: float


class Over(NamedTuple):
    """A block is gone, or was refused."""

    block: str


News = Started | Over


@dataclass(slots=True, eq=False)
class _Block:
    """A block that was asked for; `number` is Parsl's, `job` the batch system's."""

    name: str
    geometry: Geometry
    walltime_s: float | None
    after: tuple[str, ...]
    asked_at: float
    number: str | None = None
    job: str | None = None
    facts: JobFacts = UNKNOWN
    unseen: int = 0
    has_run: bool = False
    is_ending: bool = False
    is_cancelled: bool = False
    over_at: float | None = None
    """When it counts as over, if it has ended too soon."""

    @property
    def is_known_to_be_over(self) -> bool:
        """Whether it has run or failed, and was not merely cancelled before it began."""
        has_been = self.has_run or self.facts.state in (JobState.FAILED, JobState.MISSING)
        return has_been and self.facts.phase is Phase.OVER


class Blocks:
    """Blocks by name. Used by one thread at a time; `look` tells what has become of them.

    Laws: there are never more than the provider's `max_blocks`, those counted that wait or are
    about to end; a name that was asked for is reported as `Over` once, sooner or later.
    """

    def __init__(
        self,
        inner: Any,
        *,
        mark: str,
        now: Callable[[], float] = time.time,
        look_s: float = LOOK_S,
        again_s: float = AGAIN_S,
    ) -> None:
        self._inner = inner
        self._provider = inner.provider
        self._batch: Batch = batch_of(inner.provider)
        self._mark = mark
        self._now = now
        self._look_s = look_s
        self._again_s = again_s
        self._looked_at = -math.inf
        self._blocks: dict[str, _Block] = {}
        self._numbers: dict[str, _Block] = {}
        self._unheard: set[str] = set()
        self._news: list[News] = []
        self._watchdog: Watchdog | None = None
        if (will := self._batch.will()) is not None:
            self._watchdog = Watchdog(will["list"], will["cancel"], mark)

    def __len__(self) -> int:
        """How many there are, or are asked for."""
        return len(self._blocks)

    @property
    def place(self) -> str:
        """What the batch system is called."""
        return self._batch.place

    @property
    def most(self) -> int:
        """How many there may be."""
        return int(self._provider.max_blocks)

    def start(self) -> None:
        """See to it that nothing is left when this process is killed."""
        if self._watchdog is not None:
            process = getattr(self._inner, "interchange_proc", None)
            self._watchdog.start([] if process is None else [process.pid])

    def request(
        self,
        name: str,
        geometry: Geometry,
        walltime_s: float | None = None,
        after: Sequence[str] = (),
    ) -> bool:
        """Ask for a block, to start when those in `after` are over; whether that is allowed.

        While the batch system is away it is asked for later.
        """
        if name in self._blocks or len(self._blocks) >= self.most:
            return False
        block = _Block(name, geometry, walltime_s, tuple(after), self._now())
        self._blocks[name] = block
        self._submit(block)
        return True

    def release(self, name: str) -> None:
        """Give a block back: at once if it waits, and when its tasks have ended if it runs."""
        block = self._blocks.get(name)
        if block is None or block.is_ending:
            return
        block.is_ending = True
        if block.job is None or block.over_at is not None:
            self._forget(block)
            return
        if block.facts.phase is Phase.RUNNING and hasattr(self._inner, "_hold_block"):
            self._inner._hold_block(block.number)  # no more tasks go there
        self._cancel_if_idle(block)

    def look(self) -> list[News]:
        """What has changed since the last time."""
        if self._now() >= self._looked_at + self._look_s:
            self._looked_at = self._now()
            self._look()
        news, self._news = self._news, []
        # Who followed another started after its end, though both were seen at once.
        started = {one.block for one in news if isinstance(one, Started)}
        return sorted(news, key=lambda one: one.block in started)

    def status(self) -> dict[str, JobStatus]:
        """What Parsl is to think of its blocks: what the batch system says, not what it missed.

        A block that we have given back is no failure, nor is one that ended before it began.
        """
        said = dict(self._inner.status_facade)
        for number in self._unheard:
            said.pop(number, None)
        for number, block in self._numbers.items():
            if block.is_cancelled:
                said[number] = JobStatus(JobState.SCALED_IN)
            elif not (block.is_known_to_be_over and said[number].terminal):
                said[number] = JobStatus(block.facts.state)
        return said

    def close(self) -> bool:
        """Cancel whatever there is; whether the batch system has heard it.

        If it has not, the watchdog stays until it has.
        """
        left = [block for block in self._blocks.values() if block.facts.phase is not Phase.OVER]
        jobs = [block.job for block in left if block.job is not None]
        has_heard = not jobs or self._has_cancelled(jobs)
        for block in self._blocks.values():
            block.is_cancelled = True
        self._blocks.clear()
        if self._watchdog is not None:
            self._watchdog.stop(is_clean=has_heard)
        return has_heard

    def _submit(self, block: _Block) -> None:
        with self._shaped(block):
            before = set(self._inner.status_facade)
            numbers = self._inner.scale_out_facade(1)
        if numbers:
            [block.number] = numbers
            block.job = str(self._inner.blocks_to_job_id[block.number])
            self._numbers[block.number] = block
            logger.info("Block %s (%s) is job %s", block.name, block.geometry, block.job)
        elif self._batch.jobs({}) is None:  # it was not refused: nobody was there
            self._unheard |= set(self._inner.status_facade) - before
        else:
            self._end(block)

    @contextmanager
    def _shaped(self, block: _Block) -> Iterator[None]:
        """The provider, told to ask for this block next."""
        lines = list(self._batch.marked(self._mark))
        jobs = [self._blocks[name].job for name in block.after if name in self._blocks]
        lines += self._batch.following([job for job in jobs if job is not None])
        wanted: dict[str, object] = {"nodes_per_block": block.geometry.nodes}
        if block.walltime_s is not None:
            wanted["walltime"] = _clock(block.walltime_s)
        if lines:
            options = str(self._provider.scheduler_options)
            wanted["scheduler_options"] = "\n".join([options.rstrip("\n"), *lines, ""])
        before = {name: getattr(self._provider, name) for name in wanted}
        try:
            for name, value in wanted.items():
                setattr(self._provider, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self._provider, name, value)

    def _look(self) -> None:
        numbers = {block.job: block.number for block in self._blocks.values() if block.job}
        said = self._inner.status_facade
        statuses = {job: said[number] for job, number in numbers.items() if number in said}
        facts = self._batch.jobs(statuses)
        if facts is None:
            return
        for block in list(self._blocks.values()):
            if block.over_at is not None:
                if self._now() >= block.over_at:
                    self._forget(block)
                continue
            if block.job is None:
                self._submit(block)
                continue
            found = facts.get(block.job)
            block.unseen = 0 if found else block.unseen + 1
            if found is not None:
                self._take(block, found)
            elif block.unseen >= UNSEEN:
                self._take(block, block.facts._replace(phase=Phase.OVER, state=JobState.COMPLETED))

    def _take(self, block: _Block, facts: JobFacts) -> None:
        block.facts = facts
        # What is cancelled before it starts has a time of start, too.
        runs = facts.phase is Phase.RUNNING
        ran = facts.phase is Phase.OVER and facts.state is not JobState.CANCELLED
        if (runs or (ran and facts.started_at is not None)) and not block.has_run:
            block.has_run = True
            asked_at = block.asked_at if facts.submitted_at is None else facts.submitted_at
            started_at = self._now() if facts.started_at is None else facts.started_at
            wait_s = max(0.0, started_at - asked_at)
            self._news.append(Started(block.name, block.geometry, asked_at, wait_s))
        if facts.phase is Phase.OVER:
            self._end(block)
        else:
            self._heal(block)
            if block.is_ending:
                self._cancel_if_idle(block)

    def _heal(self, block: _Block) -> None:
        """A job that lives, and that the provider takes for over, is asked for by it again."""
        known = getattr(self._provider, "resources", {}).get(block.job)
        if known and known["status"].terminal and not block.is_cancelled:
            known["status"] = JobStatus(block.facts.state)

    def _cancel_if_idle(self, block: _Block) -> None:
        if block.is_cancelled or (block.facts.phase is Phase.RUNNING and self._has_tasks(block)):
            return
        if block.job is not None and self._has_cancelled([block.job]):
            block.is_cancelled = True

    def _has_cancelled(self, jobs: Sequence[str]) -> bool:
        try:
            return all(self._provider.cancel(jobs))
        except Exception as error:  # a command that has not answered in time, say
            logger.warning("Blocks could not be cancelled: %r", error)
            return False

    def _has_tasks(self, block: _Block) -> bool:
        if not hasattr(self._inner, "connected_managers"):
            return False
        managers = self._inner.connected_managers()
        return any(one["tasks"] for one in managers if one["block_id"] == block.number)

    def _end(self, block: _Block) -> None:
        ended_at = block.facts.ended_at or self._now()
        block.facts = block.facts._replace(phase=Phase.OVER)
        if block.is_ending or ended_at >= block.asked_at + self._again_s:
            self._forget(block)
        else:
            block.over_at = block.asked_at + self._again_s

    def _forget(self, block: _Block) -> None:
        if self._blocks.pop(block.name, None) is not None:
            self._news.append(Over(block.name))


def _clock(seconds: float) -> str:
    """A time limit as providers have it.

    >>> _clock(3725.2)
    '01:02:06'
    """
    minutes, left = divmod(math.ceil(seconds), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{left:02}"
