"""The decision loop: events in, actions out.

What happens to a task, by the ending of its attempt:

    DONE       learned, settled
    RAISED     settled at once, as it is
    EXHAUSTED  learned; queued again, larger in what ran out; settled if no node has more
    LOST       not learned; queued again as it was, the second time with more memory (it
               may have been an out-of-memory kill that nobody saw), and settled after
               `lost_retries` of these
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from parsl_sizer.model import Amounts, Attempt, Ending, Kind, Outcome, Resources, TaskInfo
from parsl_sizer.placement import Fifo, Ledger, Queue, Waiting
from parsl_sizer.strategies import Proposal

from .categories import Categories
from .messages import Action, Ended, Event, Joined, Launch, Left, Settle, Started, Submitted, Tick

WINDOW = 64
"""So many waiting tasks are looked at after an event, the first in the queue's order."""

NEWS = 1.05
"""A waiting task is sized anew when its category has learned 5 % more than when it was
sized. So waiting tasks follow what is learned, at a cost per task that grows with the
logarithm of the lessons only."""


@dataclass(slots=True, eq=False)
class _Job:
    """A task that is not settled: it waits, or `running` is its attempt.

    `failures` is what its strategy is shown: the exhausted attempts, and a lost one
    that is taken for exhausted.
    """

    task: TaskInfo
    running: Attempt | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    failures: list[Outcome] = field(default_factory=list)
    losses: int = 0


class Sizer:
    """Decides how large every attempt is, when it starts, and when its task is over.

    Laws: every task that is submitted is settled exactly once, if nodes are there and
    attempts end; no attempt is launched where its allocation exceeds the room of its
    node; a task has at most ``categories.MAX_ATTEMPTS + lost_retries`` attempts. An
    allocation is fixed when its attempt is launched; until then it follows what is
    learned. Events that repeat or come late (an attempt or a node that is not known, or
    not any more) change nothing.

    Who finds no room is gone past by whoever does, but not for ever: after `patience`
    launches the one that has waited longest gets a node kept free for it. Below WINDOW
    that would happen to tasks that merely wait for their turn.

    `categories` hold no lesson back (lag 0): tasks in flight are real here. `warn` is
    called once if a usage record is rejected.

    >>> from parsl_sizer.model import Node
    >>> from parsl_sizer.strategies import Setting, catalog
    >>> from parsl_sizer.sizing import *
    >>> sizer = Sizer(Categories(catalog.family("whole-machine", Setting((Kind.MEMORY,)))))
    >>> sizer.handle(Submitted(TaskInfo("t1", "align")), now=0.0)
    []
    >>> [launch] = sizer.handle(Joined(Node("n1", Resources(memory=8e9))), now=1.0)
    >>> launch.attempt.node, launch.attempt.allocation
    ('n1', {<Kind.MEMORY: 'memory'>: 8000000000.0})
    >>> [settle] = sizer.handle(Ended(Outcome(launch.attempt, Ending.DONE)), now=9.0)
    >>> settle.ending
    <Ending.DONE: 'done'>
    """

    def __init__(
        self,
        categories: Categories,
        *,
        queue: Queue | None = None,
        lost_retries: int = 2,
        patience: int = 100,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        if lost_retries < 0:
            raise ValueError(f"lost_retries must be 0 or more, not {lost_retries}")
        self._categories = categories
        self._queue = Fifo() if queue is None else queue
        self._ledger = Ledger()
        self._lost_retries = lost_retries
        self._patience = patience
        self._warn = warn
        self._jobs: dict[int | str, _Job] = {}
        self._lessons: dict[str, int] = {}
        self._launches = 0

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take an event in; what is to be done about it, in order."""
        actions: list[Action] = []
        match event:
            case Submitted(task):
                changed = self._submit(task)
            case Started(attempt, name):
                changed = self._start(attempt, name)
            case Ended(outcome):
                changed = self._end(outcome, actions)
            case Joined(node):
                self._ledger.join(node)
                changed = True
            case Left(name):
                self._ledger.leave(name)
                changed = True
            case Tick():
                changed = True
        if changed:
            self._launch_what_fits(now, actions)
        return actions

    def _submit(self, task: TaskInfo) -> bool:
        if task.task_id in self._jobs:
            return False
        self._jobs[task.task_id] = _Job(task)
        return self._queue.add(Waiting(task, (task.category, 0)))

    def _start(self, attempt: Attempt, node: str) -> bool:
        growths = self._ledger.growths
        if self._job_running(attempt) is not None:
            self._ledger.started(attempt.task.task_id, node)
        return self._ledger.growths != growths

    def _end(self, outcome: Outcome, actions: list[Action]) -> bool:
        job = self._job_running(outcome.attempt)
        if job is None:
            return False
        job.running = None
        job.outcomes.append(outcome)
        task = job.task
        capacity = self._ledger.capacity(task.task_id)
        self._ledger.release(task.task_id)
        if outcome.ending is Ending.DONE or outcome.ending is Ending.EXHAUSTED:
            outcome = _controlled(outcome)
            self._learn(outcome, capacity)
        again = self._again(job, outcome)
        if again is None:
            actions.append(self._settle(job, outcome.ending))
        else:
            waiting = Waiting(task, (task.category, len(job.failures)))
            waiting.ask(again.amounts, again.why)
            self._queue.add(waiting)
        return True

    def _job_running(self, attempt: Attempt) -> _Job | None:
        """The job whose attempt this is; None if that is over, or was never launched."""
        job = self._jobs.get(attempt.task.task_id)
        if job is None or job.running is None or job.running.number != attempt.number:
            return None
        return job

    def _learn(self, outcome: Outcome, capacity: Resources | None) -> None:
        category = outcome.attempt.task.category
        if _plausible(outcome, capacity):
            self._categories.learn(outcome)
            self._lessons[category] = self._lessons.get(category, 0) + 1
        elif self._warn is not None:
            self._warn(
                f"A task of category {category[:80]!r} reported the usage {outcome.usage!r}, "
                f"which is not possible on a node with {capacity!r}, so nothing is learned "
                "from it. Further ones are left out silently."
            )
            self._warn = None

    def _again(self, job: _Job, outcome: Outcome) -> Proposal | None:
        """What to try after this outcome; None if the task is over."""
        if outcome.ending is Ending.EXHAUSTED:
            job.failures.append(outcome)
            if not outcome.exhausted:  # nothing that is sized, so no size would help
                return None
            return self._larger(job, job.failures, job.outcomes)
        if outcome.ending is Ending.LOST:
            job.losses += 1
            if job.losses > self._lost_retries:
                return None
            if job.losses == 2 and Kind.MEMORY in outcome.attempt.allocation:
                suspect = replace(
                    outcome, ending=Ending.EXHAUSTED, exhausted=frozenset({Kind.MEMORY})
                )
                larger = self._larger(job, [*job.failures, suspect], [*job.outcomes, suspect])
                if larger is not None:
                    job.failures.append(suspect)
                    return Proposal(larger.amounts, f"lost twice; {larger.why}")
            return Proposal(outcome.attempt.allocation, "lost; the same again")
        return None

    def _larger(
        self, job: _Job, failures: Sequence[Outcome], outcomes: Sequence[Outcome]
    ) -> Proposal | None:
        """More of what the last failure ran out of; None if no node has more."""
        last = failures[-1]
        kept = {
            kind: amount
            for kind, amount in last.attempt.allocation.items()
            if kind not in last.exhausted
        }
        largest = self._ledger.largest(_ran_out_at(outcomes), kept)
        return None if largest is None else self._categories.propose(job.task, failures, largest)

    def _settle(self, job: _Job, ending: Ending) -> Settle:
        del self._jobs[job.task.task_id]
        return Settle(job.task, ending, tuple(job.outcomes))

    def _launch_what_fits(self, now: float, actions: list[Action]) -> None:
        """Launch those waiting for whom there is room, in the queue's order."""
        ledger, queue, lessons = self._ledger, self._queue, self._lessons
        growths = None
        while len(ledger) and ledger.growths != growths:  # a node kept no longer is room, too
            growths = ledger.growths
            longest: Waiting | None = None
            position = 0
            while position < WINDOW and (waiting := queue.look(position)) is not None:
                task = waiting.task
                news = lessons.get(task.category, 0) > waiting.good_for
                if (news or waiting.changes != ledger.changes) and not self._size(waiting):
                    queue.take(position)
                    actions.append(self._settle(self._jobs[task.task_id], Ending.EXHAUSTED))
                elif (node := ledger.find(task.task_id, waiting.demand)) is not None:
                    queue.take(position)
                    actions.append(self._launch(waiting, node, now))
                else:
                    position += 1
                    if waiting.blocked_at < 0:
                        waiting.blocked_at = self._launches
                    if longest is None or waiting.blocked_at < longest.blocked_at:
                        longest = waiting
            if longest is not None and self._launches - longest.blocked_at >= self._patience:
                ledger.keep(longest.task.task_id, longest.demand)

    def _launch(self, waiting: Waiting, node: str, now: float) -> Launch:
        task, amounts = waiting.task, waiting.amounts
        job = self._jobs[task.task_id]
        self._ledger.claim(task.task_id, node, waiting.demand)
        self._launches += 1
        job.running = Attempt(task, len(job.outcomes) + 1, amounts, node, waiting.why, now)
        return Launch(job.running)

    def _size(self, waiting: Waiting) -> bool:
        """Size a waiting task by what is known now; False if no node can hold it."""
        task = waiting.task
        job = self._jobs[task.task_id]
        proposal = self._cut_down(job, waiting) if job.outcomes else self._first(task)
        if proposal is None:
            return False
        waiting.ask(proposal.amounts, proposal.why)
        waiting.changes = self._ledger.changes
        if not job.outcomes:
            waiting.good_for = self._lessons.get(task.category, 0) * NEWS
        return True

    def _first(self, task: TaskInfo) -> Proposal | None:
        largest = self._ledger.largest({}, task.requested)
        return None if largest is None else self._categories.propose(task, (), largest)

    def _cut_down(self, job: _Job, waiting: Waiting) -> Proposal | None:
        """What a retry asks for, or as much of it as a node has after others have left."""
        amounts = waiting.amounts
        if not self._ledger.holds(amounts):
            largest = self._ledger.largest(_ran_out_at(job.outcomes), amounts)
            if largest is None:
                return None
            amounts = {kind: min(amount, largest[kind]) for kind, amount in amounts.items()}
        return Proposal(amounts, waiting.why)


def _ran_out_at(outcomes: Sequence[Outcome]) -> Amounts:
    """The most of each kind that attempts ran out of, the latest kind first."""
    most: dict[Kind, float] = {}
    for outcome in reversed(outcomes):
        if outcome.ending is Ending.EXHAUSTED:
            for kind, amount in outcome.attempt.allocation.items():
                if kind in outcome.exhausted:
                    most[kind] = max(amount, most.get(kind, amount))
    return most


def _controlled(outcome: Outcome) -> Outcome:
    """The outcome without the exhausted kinds of which the attempt was allocated nothing."""
    allocation = outcome.attempt.allocation
    kinds = frozenset(kind for kind in outcome.exhausted if kind in allocation)
    return outcome if kinds == outcome.exhausted else replace(outcome, exhausted=kinds)


def _plausible(outcome: Outcome, capacity: Resources | None) -> bool:
    """Whether its usage is made of numbers that can be, on a node of this capacity."""
    usage = outcome.usage
    most: Amounts = {} if capacity is None else capacity
    controlled = outcome.attempt.allocation
    return _in_range(usage.wall_s, math.inf) and all(
        _in_range(peak, most.get(kind, math.inf) if kind in controlled else math.inf)
        for kind, peak in usage.peak.items()
    )


def _in_range(value: object, most: float) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= most and value < math.inf
