"""The decision loop: events in, actions out.

What happens to a task, by the ending of its attempt:

    DONE       learned, settled
    RAISED     settled at once, as it is
    EXHAUSTED  learned; queued again, larger in what ran out; settled if no node has more,
               or, if the user is asked and says so, because other tasks do its work
    LOST       not learned; queued again as it was, the second time with more memory (it
               may have been an out-of-memory kill that nobody saw), and settled after
               `lost_retries` of these

A task's opt-outs change that: FIXED gives it what is requested and nothing larger,
NO_RETRY settles it whatever happened to its first attempt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from parsl_sizer.model import (
    Amounts,
    Attempt,
    Ending,
    Kind,
    OptOut,
    Outcome,
    Resources,
    TaskInfo,
    format_amount,
    is_possible,
)
from parsl_sizer.placement import Demand, Gate, Ledger, Lines, Policy, Queue, Waiting, alike
from parsl_sizer.strategies import Proposal

from .categories import Categories
from .demand import Need, share
from .messages import (
    Action,
    Consult,
    Consulted,
    Ended,
    Event,
    Expected,
    Joined,
    Launch,
    Left,
    Loaded,
    Settle,
    Started,
    Submitted,
    Tick,
    Withdrawn,
)
from .past import Past

WINDOW = 64
"""So many waiting tasks are looked at after an event unless something else is said."""

NEWS = 1.05
"""A waiting task is sized anew when its category has learned 5 % more than when it was
sized. So waiting tasks follow what is learned, at a cost per task that grows with the
logarithm of the lessons only."""

ROUND_TRIP_S = 0.1
"""From the end of an attempt to the start of the next one, at worst: an engine with slots
has so much work in its own queue..."""
LONG_S = 0.5
"""...unless most tasks take longer than this. There it gains nothing, and room that is
claimed by who waits is missed by others."""
BRISK_S = 0.01
"""Of tasks that take less than this on average..."""
KNOWN, SAMPLE = 200, 8
"""...once so many are known, every so-many-th is learned from, and a size is shared by all
until there is news: more would take longer than the tasks do."""
SHORTEST_S = 0.002
"""What a task takes an engine at least, whatever it does."""


@dataclass(slots=True, eq=False)
class _Job:
    """A task that is not settled: it waits, or `running` is its attempt.

    `waiting` is how it waits, or has waited for this attempt. `failures` is what its strategy
    is shown: the exhausted attempts, and a lost one that is taken for exhausted.
    """

    task: TaskInfo
    waiting: Waiting
    running: Attempt | None = None
    outcomes: tuple[Outcome, ...] = ()
    failures: tuple[Outcome, ...] = ()
    losses: int = 0
    unlimited: bool = False
    """Its next attempt has all of a node and no limit: nothing else is left to try."""
    is_canary: bool = False
    is_asked_about: bool = False
    again: Proposal | None = None
    """What is tried next if the user, who is asked, leaves it to us."""


class _Shared(NamedTuple):
    """What the next tasks of a category get that are over in a moment."""

    proposal: Proposal
    good_for: float
    """How many lessons the category may have."""
    changes: int
    """How many changes the ledger had seen."""


class Sizer:
    """Decides how large every attempt is, when it starts, and when its task is over.

    Laws: every task that is submitted is settled exactly once, if nodes are there and
    attempts end; no attempt is launched where its allocation exceeds the room of its
    node; a task has at most ``categories.MAX_ATTEMPTS + lost_retries`` attempts. An
    allocation follows what is learned until its attempt is launched; an engine may let it
    grow after that, where its node has room. Events that repeat or come late (an attempt
    or a node that is not known, or not any more) change nothing.

    Who finds no room is gone past by whoever does of the first `window` in the queue's
    order, but not for ever: after `patience` launches the one that has waited longest gets a
    node kept free for it. Below `window` that would happen to tasks that merely wait for
    their turn. With a window of 1 nobody is gone past.

    `categories` hold no lesson back (lag 0): tasks in flight are real here. A `gate` lets a
    few tasks of a category that is not known run before the others. A `policy` chooses among
    the nodes with room; without one a task goes where least is left over. With
    `let_run` a task that no node is large enough for has a last attempt alone on the
    largest one, without a limit. If it `loads`, what earlier runs know of a category is asked
    for before its first task is sized; those behind that task wait with it for a moment, and
    then go past it. If it `consults`, the user is asked about every task
    that ran out. `warn` is called once if a usage record is rejected.

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
        policy: Policy | None = None,
        gate: Gate | None = None,
        lost_retries: int = 2,
        window: int = WINDOW,
        patience: int = 100,
        let_run: bool = False,
        loads: bool = False,
        consults: bool = False,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        if lost_retries < 0:
            raise ValueError(f"lost_retries must be 0 or more, not {lost_retries}")
        if window < 1:
            raise ValueError(f"window must be 1 or more, not {window}")
        self._categories = categories
        self._queue = Lines() if queue is None else queue
        self._gate = gate
        self._past = Past(categories, gate, policy, is_none=not loads)
        self._ledger = Ledger()
        self._policy = policy
        self._find: Callable[[int | str, Demand], str | None]
        self._find = self._ledger.find if policy is None else self._choose
        self._lost_retries = lost_retries
        self._window = window
        self._patience = patience
        self._let_run = let_run
        self._consults = consults
        self._warn = warn
        self.rejected = 0
        """How many usage records were not possible, and so were not learned from."""
        self._jobs: dict[int | str, _Job] = {}
        self._lessons: dict[str, int] = {}
        self._launches = 0
        self._pace_s = ROUND_TRIP_S
        self._long_ones = 1.0
        self._ledger.let_wait(0)
        self._is_brisk = False
        self._shared: dict[str, _Shared] = {}

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take an event in; what is to be done about it, in order."""
        actions: list[Action] = []
        if self._take_in(event, now, actions):
            self._launch_what_fits(now, actions)
        return actions

    def note(self, event: Event, now: float) -> list[Action]:
        """Take an event in, and launch nothing: others of the same moment are still to come."""
        actions: list[Action] = []
        self._take_in(event, now, actions)
        return actions

    def _take_in(self, event: Event, now: float, actions: list[Action]) -> bool:
        """Whether something may be launched after this event that could not be before."""
        match event:
            case Submitted(task):
                changed = self._submit(task, now, actions)
            case Started(attempt, name):
                changed = self._start(attempt, name)
            case Ended(outcome):
                changed = self._end(outcome, actions)
            case Withdrawn(task_id):
                changed = self._withdraw(task_id)
            case Consulted(task_id, is_split):
                changed = self._consulted(task_id, is_split, actions)
            case Loaded(category):
                self._shared.pop(category, None)
                changed = self._past.teach(event)
            case Joined(node):
                self._ledger.join(node)
                if self._policy is not None:
                    self._policy.joined(node)
                changed = True
            case Left(name):
                self._ledger.leave(name)
                if self._policy is not None:
                    self._policy.left(name)
                changed = True
            case Expected(capacities):
                self._ledger.expect(capacities)
                changed = True
            case Tick():
                changed = True
        return changed

    def _submit(self, task: TaskInfo, now: float, actions: list[Action]) -> bool:
        if task.task_id in self._jobs:
            return False
        waiting = Waiting(task, alike(task, 0))
        self._jobs[task.task_id] = _Job(task, waiting)
        actions.extend(self._past.meet(task, now))
        return self._queue.add(waiting)

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
        job.outcomes += (outcome,)
        task = job.task
        capacity = self._ledger.capacity(task.task_id)
        self._ledger.release(task.task_id)
        self._keep_pace(outcome.usage.wall_s)
        if outcome.ending is Ending.DONE or outcome.ending is Ending.EXHAUSTED:
            outcome = _controlled(outcome)
            self._learn(outcome, capacity)
        if outcome.ending is Ending.DONE:
            self._queue.finished(task.category, outcome.usage.wall_s)
        again = self._again(job, outcome)
        if (
            self._consults
            and outcome.ending is Ending.EXHAUSTED
            and OptOut.NO_RETRY not in task.opt_outs
        ):
            job.is_asked_about, job.again = True, again
            self._leave_gate(job, finished=False)  # a user may take long to answer
            larger = None if again is None else again.amounts
            actions.append(Consult(task, job.outcomes, larger))
        else:
            self._go_on(job, again, outcome.ending, actions)
        return True

    def _withdraw(self, task_id: int | str) -> bool:
        job = self._jobs.pop(task_id, None)
        if job is None:
            return False
        if job.running is not None:
            self._ledger.release(task_id)
        elif not job.is_asked_about:
            self._queue.remove(job.waiting)
        self._leave_gate(job, finished=False)
        return True

    def _go_on(
        self, job: _Job, again: Proposal | None, ending: Ending, actions: list[Action]
    ) -> None:
        """Let the task be tried again, or be over if there is nothing to try."""
        if again is None:
            actions.append(self._settle(job, ending))
            return
        if ending is Ending.LOST:  # it may have to wait behind others of its line
            self._leave_gate(job, finished=False)
        failures = len(job.failures)
        waiting = Waiting(job.task, alike(job.task, failures), failures=failures)
        waiting.arrival, job.waiting = job.waiting.arrival, waiting
        waiting.ask(again.amounts, again.why)
        self._queue.add(waiting)

    def _consulted(self, task_id: int | str, is_split: bool, actions: list[Action]) -> bool:
        job = self._jobs.get(task_id)
        if job is None or not job.is_asked_about:
            return False
        again, job.is_asked_about, job.again = job.again, False, None
        if is_split:
            actions.append(self._settle(job, Ending.EXHAUSTED, is_split=True))
        else:  # a larger node may have come meanwhile
            self._go_on(job, again or self._more(job), Ending.EXHAUSTED, actions)
        return True

    def _keep_pace(self, wall_s: float) -> None:
        """Let the more attempts wait in the engine the shorter tasks are."""
        if 0 <= wall_s < math.inf:
            self._pace_s += 0.1 * (min(wall_s, ROUND_TRIP_S) - self._pace_s)
            self._is_brisk = self._pace_s < BRISK_S
            self._long_ones += 0.1 * ((wall_s > LONG_S) - self._long_ones)
            times = ROUND_TRIP_S / max(self._pace_s, SHORTEST_S)
            ahead = 1 << (int(times).bit_length() - 1)
            self._ledger.let_wait(0 if self._long_ones > 0.5 else ahead)

    def _job_running(self, attempt: Attempt) -> _Job | None:
        """The job whose attempt this is; None if that is over, or was never launched."""
        job = self._jobs.get(attempt.task.task_id)
        if job is None or job.running is None or job.running.number != attempt.number:
            return None
        return job

    def _learn(self, outcome: Outcome, capacity: Resources | None) -> None:
        category = outcome.attempt.task.category
        lessons = self._lessons.get(category, 0)
        if _plausible(outcome, capacity):
            self._lessons[category] = lessons + 1
            is_news = outcome.ending is not Ending.DONE or outcome.overran
            if is_news:
                self._shared.pop(category, None)
            if is_news or not self._is_brisk or lessons <= KNOWN or not lessons % SAMPLE:
                self._categories.learn(outcome)
            if self._policy is not None and outcome.ending is Ending.DONE:
                self._policy.learn(outcome)
            return
        self.rejected += 1
        if self._warn is not None:
            self._warn(
                f"A task of category {category[:80]!r} reported a usage that is not possible "
                f"(peak {dict(outcome.usage.peak)!r:.200}, {outcome.usage.wall_s!r:.50} s), so "
                "nothing is learned from it. Further ones are left out silently."
            )
            self._warn = None

    def _again(self, job: _Job, outcome: Outcome) -> Proposal | None:
        """What to try after this outcome; None if the task is over."""
        opt_outs = job.task.opt_outs
        if OptOut.NO_RETRY in opt_outs:
            return None
        if outcome.ending is Ending.EXHAUSTED:
            job.failures += (outcome,)
            if not outcome.exhausted:  # nothing that is sized, so no size would help
                return None
            return self._more(job) or self._whole_node(job)
        if outcome.ending is Ending.LOST:
            job.losses += 1
            if job.losses > self._lost_retries:
                return None
            is_suspect = not outcome.node_lost and OptOut.FIXED not in opt_outs
            if job.losses == 2 and is_suspect and Kind.MEMORY in outcome.attempt.allocation:
                suspect = outcome._replace(
                    ending=Ending.EXHAUSTED, exhausted=frozenset({Kind.MEMORY})
                )
                larger = self._larger(job, (*job.failures, suspect), (*job.outcomes, suspect))
                if larger is not None:
                    job.failures += (suspect,)
                    return Proposal(larger.amounts, f"lost twice; {larger.why}")
            return Proposal(outcome.attempt.allocation, "lost; the same again")
        return None

    def _more(self, job: _Job) -> Proposal | None:
        """More for a task that ran out; None if it may not have more, or no node has."""
        if OptOut.FIXED in job.task.opt_outs or not job.failures[-1].exhausted:
            return None
        return self._larger(job, job.failures, job.outcomes)

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

    def _whole_node(self, job: _Job) -> Proposal | None:
        """The last thing to try, if that is wanted: all of the largest node, no limit."""
        largest = self.largest
        if not self._let_run or job.unlimited or largest is None:
            return None
        job.unlimited = True
        kinds = job.outcomes[-1].attempt.allocation
        return Proposal({kind: largest[kind] for kind in kinds}, "the largest node, without limit")

    def _settle(self, job: _Job, ending: Ending, *, is_split: bool = False) -> Settle:
        del self._jobs[job.task.task_id]
        self._leave_gate(job, finished=ending is Ending.DONE)
        return Settle(job.task, ending, job.outcomes, is_split)

    def _leave_gate(self, job: _Job, *, finished: bool) -> None:
        if self._gate is not None and job.is_canary:
            job.is_canary = False
            self._gate.end(job.task.category, finished=finished)

    def _launch_what_fits(self, now: float, actions: list[Action]) -> None:
        """Launch those waiting for whom there is room, in the queue's order."""
        ledger, queue, lessons, find = self._ledger, self._queue, self._lessons, self._find
        gate, past = self._gate, self._past
        growths = None
        while len(ledger) and ledger.growths != growths:  # a node kept no longer is room, too
            growths = ledger.growths
            queue.arrange()
            kept_for = ledger.kept_for
            longest: Waiting | None = None
            position, window = 0, self._window
            while position < window and (waiting := queue.look(position)) is not None:
                task = waiting.task
                is_loading = past.is_loading(task.category)
                if is_loading and past.holds_up(task.category, now):
                    kept_for = None
                    break
                if is_loading or (gate is not None and self._is_held(waiting, gate, now)):
                    position, window = position + 1, window + 1
                    continue
                news = lessons.get(task.category, 0) > waiting.good_for
                if (news or waiting.changes != ledger.changes) and not self._size(waiting):
                    queue.take(position)
                    actions.append(self._settle(self._jobs[task.task_id], Ending.EXHAUSTED))
                elif (node := find(task.task_id, waiting.demand)) is not None:
                    queue.take(position)
                    actions.append(self._launch(waiting, node, now))
                else:
                    position += 1
                    if task.task_id == kept_for:
                        kept_for = None
                    if waiting.blocked_at < 0:
                        waiting.blocked_at = self._launches
                    if longest is None or waiting.blocked_at < longest.blocked_at:
                        longest = waiting
            if kept_for is not None:  # others came before it: nobody would have the node
                ledger.keep_no_longer(kept_for)
            if longest is not None and self._launches - longest.blocked_at >= self._patience:
                ledger.keep(longest.task.task_id, longest.demand)

    def _choose(self, task_id: int | str, demand: Demand) -> str | None:
        """The node for a task by the policy; None if none has room."""
        places = self._ledger.places(task_id, demand)
        if not places or self._policy is None:
            return None
        return self._policy.choose(self._jobs[task_id].task, places)

    def _is_held(self, waiting: Waiting, gate: Gate, now: float) -> bool:
        task = waiting.task
        if self._jobs[task.task_id].outcomes or OptOut.FIXED in task.opt_outs:
            return False
        return gate.holds(task.category, now)

    def _launch(self, waiting: Waiting, node: str, now: float) -> Launch:
        task, amounts = waiting.task, waiting.amounts
        job = self._jobs[task.task_id]
        self._ledger.claim(task.task_id, node, waiting.demand)
        self._launches += 1
        enforced = not job.unlimited and OptOut.NEVER_KILL not in task.opt_outs
        number = len(job.outcomes) + 1
        if self._gate is not None and number == 1:
            job.is_canary = True
            self._gate.start(task.category, now)
        job.running = Attempt(task, number, amounts, node, waiting.why, now, enforced)
        return Launch(job.running)

    def _size(self, waiting: Waiting) -> bool:
        """Size a waiting task by what is known now; False if no node can hold it."""
        task = waiting.task
        job = self._jobs[task.task_id]
        proposal = self._retry(job, waiting) if job.outcomes else self._first(task)
        if proposal is None:
            return False
        waiting.ask(proposal.amounts, proposal.why)
        waiting.changes = self._ledger.changes
        waiting.good_for = self._lessons.get(task.category, 0) * NEWS
        return True

    def _first(self, task: TaskInfo) -> Proposal | None:
        largest = self._ledger.largest({}, task.requested)
        if largest is None:
            return None
        if OptOut.FIXED in task.opt_outs:
            amounts = {kind: min(amount, largest[kind]) for kind, amount in task.requested.items()}
            return Proposal(amounts, _why_fixed(task.requested, amounts))
        if not self._is_brisk or task.features or task.requested:
            proposal = self._categories.propose(task, (), largest)
            return proposal if proposal is None else _as_requested(task, proposal, largest)
        lessons, changes = self._lessons.get(task.category, 0), self._ledger.changes
        shared = self._shared.get(task.category)
        if shared is None or lessons > shared.good_for or changes != shared.changes:
            proposal = self._categories.propose(task, (), largest)
            if proposal is None:
                return None
            shared = _Shared(proposal, max(lessons * NEWS, lessons + SAMPLE - 1), changes)
            self._shared[task.category] = shared
        return shared.proposal

    @property
    def largest(self) -> Resources | None:
        """The capacity of the largest node that is here, or was last; None before any joined."""
        return self._ledger.largest({}, {})

    def demand(self, slots: int = 0) -> float | None:
        """How many of the largest nodes all unsettled tasks would fill; None before any joined.

        A task fills as much of a node as its largest share of any kind, and one of its
        `slots` if it has these.
        """
        least = 1.0 / slots if slots else 0.0
        largest = self.largest
        if largest is None:
            return None
        return math.fsum(
            need.times * max(least, share(need.amounts, largest)) for need in self.needs()
        )

    def needs(self) -> Iterator[Need]:
        """What all unsettled tasks take or are going to ask for; like ones together.

        As long as the past of a category is not known, nor so what they need, they count as one.
        """
        for job in self._jobs.values():
            if job.running:
                yield Need(job.task, job.running.allocation, node=job.running.node)
        for waiting, count in self._queue.lines():
            amounts = waiting.amounts
            if not amounts and (first := self._first(waiting.task)) is not None:
                amounts = first.amounts
            yield Need(
                waiting.task, amounts, 1 if self._past.is_loading(waiting.task.category) else count
            )

    def share(self, task: TaskInfo, slots: int = 0) -> float | None:
        """How much of the largest node a task like this would take; None if nobody knows."""
        largest, first = self.largest, self._first(task)
        if largest is None or first is None:
            return None
        return max(1.0 / slots if slots else 0.0, share(first.amounts, largest))

    def __len__(self) -> int:
        """How many tasks are not settled."""
        return len(self._jobs)

    def _retry(self, job: _Job, waiting: Waiting) -> Proposal | None:
        """What a retry asks for by what is known now, and by what nodes have that are here."""
        is_sized = OptOut.FIXED not in job.task.opt_outs and not job.unlimited
        if is_sized and job.outcomes[-1].ending is Ending.EXHAUSTED:
            larger = self._larger(job, job.failures, job.outcomes)
            if larger is not None:
                return larger
        amounts = waiting.amounts
        if not self._ledger.holds(amounts):
            largest = self._ledger.largest(_ran_out_at(job.outcomes), amounts)
            if largest is None:
                return None
            amounts = {kind: min(amount, largest[kind]) for kind, amount in amounts.items()}
        return Proposal(amounts, waiting.why)


def _as_requested(task: TaskInfo, proposal: Proposal, largest: Resources) -> Proposal:
    """The proposal, and of the kinds that it leaves out what the user asked for."""
    unsized = [kind for kind in task.requested if kind not in proposal.amounts]
    if not unsized:
        return proposal
    requested = {kind: min(task.requested[kind], largest[kind]) for kind in unsized}
    return Proposal({**proposal.amounts, **requested}, proposal.why)


def _why_fixed(requested: Amounts, amounts: Amounts) -> str:
    beyond = [
        f"{format_amount(kind, amount)} of {kind.value}"
        for kind, amount in requested.items()
        if amount > amounts[kind]
    ]
    if not beyond:
        return "fixed by the user"
    return f"fixed by the user at {' and '.join(beyond)}, which no node has"


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
    if not outcome.exhausted:
        return outcome
    allocation = outcome.attempt.allocation
    kinds = frozenset(kind for kind in outcome.exhausted if kind in allocation)
    return outcome if kinds == outcome.exhausted else outcome._replace(exhausted=kinds)


def _plausible(outcome: Outcome, capacity: Resources | None) -> bool:
    """Whether its usage is made of numbers that can be, on a node of this capacity."""
    if not is_possible(outcome.usage):
        return False
    # What was stopped may have had more than its node is said to have.
    if capacity is None or outcome.ending is Ending.EXHAUSTED:
        return True
    controlled = outcome.attempt.allocation
    for kind, peak in outcome.usage.peak.items():
        # It may have grown on a larger node than that for which there was room.
        if kind in controlled and peak > max(capacity[kind], controlled[kind]):
            return False
    return True
