"""The live driver of the decision loop: what happens, one thing after the other.

Whatever happens elsewhere (a call that came back, nodes that came or went) is only a message to
the loop, which tells the `Sizer` and carries out what it says; a submission, too, unless its own
thread can do that. Neither the sizer nor the inner executor is ever entered twice at a time.

A callback never raises: `concurrent.futures` would swallow it, and somebody would wait
for ever. If the loop dies, every future that is pending fails with the reason.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from parsl_sizer.engines import Engine
from parsl_sizer.model import (
    Attempt,
    Ending,
    Kind,
    Node,
    Outcome,
    Resources,
    ResourcesExhausted,
    SizerError,
    TaskInfo,
    logger_for,
)
from parsl_sizer.sizing import (
    Action,
    Consult,
    Consulted,
    Ended,
    Event,
    Expected,
    Joined,
    Launch,
    Left,
    Load,
    Loaded,
    Settle,
    Sizer,
    Started,
    Submitted,
    Tick,
    Withdrawn,
)
from parsl_sizer.sizing.past import HOLDS_UP_S

from . import ending
from .calls import Call
from .carried import Ticket
from .history import nothing_known
from .loop import Loop
from .recognisers import PLAIN, Recogniser
from .splitting import Original
from .story import SizedFuture, Sizing, Story

logger = logger_for(__name__)

TICK_S = 1.0
"""So often the loop looks around, and nodes are asked for..."""
LOADING_TICK_S = HOLDS_UP_S / 2
"""...the loop so often while the past of a category is looked up, and tasks may go past it."""
DEMAND_S = 0.25
"""For so long a figure for the demand is good."""
WHYS = 4096
"""So many sentences are kept for sharing: tasks sized alike have the same one."""


TOO_LATE = "The executor was shut down before the task could start."
TOO_EARLY = "The executor was shut down while the task was running."
PROCESSES_ENDED = (
    "Tasks of category {!r} leave processes running. These are ended with their task, because no "
    "reservation covers them; the hint {} keeps them."
)


class ShutDown(SizerError):
    """The executor was shut down before the task was over."""


@dataclass(slots=True, eq=False)
class Job:
    """A task, the call that it stands for, and the future that waits for it."""

    task: TaskInfo
    call: Call
    future: SizedFuture
    running: Attempt | None = None
    answer: ending.Answer | None = None
    declined: int = 0
    """How often this attempt was sent back unrun."""
    recogniser: Recogniser = PLAIN
    tag: object = None
    original: Original | None = None
    """The call before anything was done to it, if it may yet be split."""
    is_split: bool = False
    """Others do its work now."""
    ticket: Ticket | None = None
    """The future that a pool's user has, who may have thought better of it."""

    @property
    def waits(self) -> bool:
        return self.running is None and not self.is_split


Answered = Callable[[Future[Any] | None], None]
"""Is to be called with the future of what does a task's work instead, or None."""


class Driver:
    """Drives a `Sizer` with real futures and a real clock."""

    def __init__(
        self,
        sizer: Sizer,
        engine: Engine,
        *,
        observe: Callable[[Settle], None] = lambda settle: None,
        record: Callable[[Outcome], None] | None = None,
        load: Callable[[TaskInfo], Future[Sequence[Outcome]]] = nothing_known,
        consult: Callable[[Job, Consult, Answered], None] | None = None,
        look: Callable[[], None] | None = None,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._sizer = sizer
        self._warn = warn
        self._consult = consult
        self._look = look
        self._engine = engine
        self._observe = observe
        self._record = record
        self._load = load
        self._loop = Loop(self._tend, self._loop_ended)
        self._jobs: dict[int | str, Job] = {}
        self._nodes: dict[str, Node] = {}
        self._epoch = time.time() - time.monotonic()
        self._watcher = threading.Thread(target=self._watch, name="parsl_sizer-nodes", daemon=True)
        self._look_again = threading.Event()
        self._is_over = threading.Event()
        self._is_draining = False
        self._tick_at = 0.0
        self._loading = 0
        """How many categories' pasts are looked up."""
        self._demand: tuple[float, float | None] = (-math.inf, 0.0)
        self._expected: tuple[Resources, ...] = ()
        self._whys: dict[str, str] = {}
        self._why: tuple[object, str] = None, ""
        self._reason: BaseException | None = None
        self.rejected = 0
        """How many reports said something that cannot be."""
        self.running = self.settled = self.retries = 0
        self.held = 0.0
        """The memory of all running attempts."""

    # From any thread

    def now(self) -> float:
        """Seconds since the epoch that never run backwards."""
        return self._epoch + time.monotonic()

    def start(self) -> None:
        """Begin; nodes are looked for until `stop_watching`."""
        stated = self._engine.stated()
        if stated is not None:  # something to size by, until the first node is here
            self._set_nodes([Node("stated", stated)])
            self._set_nodes(())
        self._loop.start()
        if self._engine.expected():
            self._loop.put(self._expect)
        self._watcher.start()

    def submit(self, job: Job) -> None:
        """Let a job be run; its future is resolved sooner or later."""
        self._loop.offer(partial(self._submit, job))

    def errand(self, submit: Callable[[], Future[Any]]) -> Future[Any]:
        """Submit something that is no job, in the loop, as the inner executor takes one at a time.

        Returns the inner executor's own future, and raises what `submit` raises.
        """
        made: Future[Future[Any]] = Future()

        def act() -> None:
            try:
                made.set_result(submit())
            except Exception as error:
                made.set_exception(error)

        self._loop.ask(act)
        return made.result() if made.done() else submit()  # nothing else submits after the loop

    def demand(self) -> float | None:
        """How many nodes the tasks that are not over would fill, about; None if not known."""
        return self._demand[1]

    def __len__(self) -> int:
        """How many tasks are not over."""
        return len(self._jobs)

    def share(self, task: TaskInfo, past: Sequence[Outcome]) -> float | None:
        """How much of a node a task like this, with this past, would take; None if not known."""
        found: list[float | None] = []

        def ask() -> None:
            try:
                self._handle(Loaded(task.category, past))
                found.append(self._sizer.share(task, self._engine.slots))
            except Exception:
                logger.exception("A task of %r could not be sized", task.category)

        self._loop.ask(ask)
        return found[0] if found else None

    def is_final(self, future: SizedFuture) -> bool:
        """Return whether its task ran out of all of a node, and none with more has come since."""
        exhausted = future.exhausted
        most = self._most(exhausted)
        return bool(exhausted) and all(0 < most[kind] <= had for kind, had in exhausted.items())

    def _most(self, kinds: Iterable[Kind]) -> dict[Kind, float]:
        """Return how much of each kind the node has that has most of it; 0 without nodes."""
        shapes = [node.capacity for node in list(self._nodes.values())] + [*self._expected]
        return {kind: max((shape[kind] for shape in shapes), default=0.0) for kind in kinds}

    def launched(self) -> list[tuple[int | str, float]]:
        """The tasks that run, and since when."""
        return [
            (job.task.task_id, attempt.launched_at)
            for job in list(self._jobs.values())
            if (attempt := job.running) is not None
        ]

    def room(self) -> float:
        """The memory of all nodes that are here."""
        return math.fsum(node.capacity.memory for node in list(self._nodes.values()))

    def stop_watching(self) -> None:
        """Ask the inner executor for its nodes no more."""
        self._is_over.set()
        self._look_again.set()
        if self._watcher.is_alive():
            self._watcher.join(timeout=5)

    def drain(self) -> None:
        """Launch nothing more: what waits fails, what runs may still come back."""
        self._loop.ask(self._drain)

    def finish(self) -> None:
        """Let everything that is not over fail, and stop."""
        self._loop.ask(self._finish)
        self._loop.join(timeout=30)

    # In the watching thread

    def _watch(self) -> None:
        while not self._is_over.is_set():
            try:
                nodes = self._engine.nodes()
            except Exception as error:
                logger.warning("The nodes could not be asked for: %r", error)
                nodes = None
            self._loop.put(partial(self._look_at, nodes))
            self._look_again.wait(TICK_S)
            self._look_again.clear()
        self._engine.close()

    # In the loop

    def _tend(self) -> float:
        now = time.monotonic()
        if now >= self._tick_at:
            self._tick_at = now + (LOADING_TICK_S if self._loading else TICK_S)
            self._look_around()
        if self._is_demand_old and not self._loop.qsize():
            self._demand = time.monotonic(), self._engine.demand(self._sizer)
        return max(0.0, self._tick_at - time.monotonic())

    def _loop_ended(self, failure: BaseException | None) -> None:
        """Nothing is carried out any more: let everything fail with the reason."""
        if failure is None:
            self._reason = ShutDown("The executor is shut down.")
        else:
            logger.error("The sizing loop failed", exc_info=failure)
            self._reason = SizerError(f"The sizing loop failed: {failure!r}.")
            self._reason.__cause__ = failure
        for job in list(self._jobs.values()):
            self._over(job, None, self._reason)

    def _handle(self, event: Event) -> None:
        self._act(self._sizer.handle(event, self.now()))

    def _note(self, event: Event) -> None:
        """Take an event in, and launch nothing yet."""
        self._act(self._sizer.note(event, self.now()))

    def _act(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Launch):
                self._launch(action.attempt)
            elif isinstance(action, Settle):
                self._settle(action)
            elif isinstance(action, Load):
                self._look_up(action.task)
            else:
                self._ask(action)

    def _submit(self, job: Job) -> None:
        if not job.future.set_running_or_notify_cancel():
            return
        if self._reason is not None or self._is_draining:
            self._resolve(job, None, self._reason or ShutDown(TOO_LATE))
            return
        self._jobs[job.task.task_id] = job
        if job.ticket is not None:
            job.ticket.when_cancelled = partial(self._loop.put, partial(self._withdraw, job))
            if job.ticket.cancelled():
                self._withdraw(job)
                return
        self._handle(Submitted(job.task))
        if self._is_demand_old:
            self._loop.wake()

    def _withdraw(self, job: Job) -> None:
        """Forget a job that nobody wants any more, unless it runs."""
        if job.ticket is None or not job.waits or self._jobs.get(job.task.task_id) is not job:
            return
        if not job.ticket.begin():
            self._over(job, None, CancelledError())
            self._handle(Withdrawn(job.task.task_id))

    def _launch(self, attempt: Attempt) -> None:
        job = self._jobs.get(attempt.task.task_id)
        if job is None:  # it is over already: the engine went bad, say
            return
        if self._is_draining:
            self._over(job, None, ShutDown(TOO_LATE))
            return
        if job.ticket is not None and not job.ticket.begin():
            self._over(job, None, CancelledError())
            self._loop.put(partial(self._handle, Withdrawn(attempt.task.task_id)))
            return
        job.running, job.declined = attempt, 0
        self.running += 1
        self.held += attempt.allocation.get(Kind.MEMORY, 0.0)
        self.retries += attempt.number > 1
        self._send(job, attempt)

    def _send(self, job: Job, attempt: Attempt) -> None:
        """Call the inner executor; if it takes no call, that one has failed."""
        engine, node = self._engine.of(attempt), self._nodes.get(attempt.node or "")
        capacity = node.capacity if node else None
        try:
            future = job.call.launch(engine, attempt, capacity, declined=job.declined)
        except Exception as error:
            future = Future()
            future.set_exception(engine.why_failed() or error)
        future.add_done_callback(lambda done: self._loop.put(partial(self._ended, attempt, done)))

    def _ended(self, attempt: Attempt, future: Future[Any]) -> None:
        job = self._jobs.get(attempt.task.task_id)
        if job is None or job.running is not attempt:
            return
        answer = job.answer = self._read(future, attempt, job.recogniser)
        self.rejected += answer.rejected
        if answer.report is not None and answer.report.get("ended_processes") is True:
            # Under `fork` no process is there that could keep them.
            is_warm = answer.report.get("isolation") == "runner"
            keeps = "keep_caches=True" if is_warm else "isolation='inline'"
            self._warn(PROCESSES_ENDED.format(f"{attempt.task.category:.80}", keeps))
        if answer.report is not None and self._engine.of(attempt).seen(answer.report):
            self._look_again.set()
        if answer.declined and not self._is_draining:
            job.declined += 1
            self._send(job, attempt)
            return
        job.running = None
        self.running -= 1
        self.held -= attempt.allocation.get(Kind.MEMORY, 0.0)
        if not self.running:
            self.held = 0.0  # sums of floats are not exact
        if answer.declined:
            self._over(job, None, ShutDown(TOO_LATE))
            return
        if self._record is not None:
            self._record(answer.outcome)
        self._handle(Ended(answer.outcome))

    def _read(self, future: Future[Any], attempt: Attempt, recogniser: Recogniser) -> ending.Answer:
        """What came of an attempt; no report, whatever is in it, ends the loop."""
        try:
            engine = self._engine.of(attempt)
            answer = ending.read(future, attempt, engine, self.now(), recogniser)
        except Exception as error:
            logger.exception("The report of task %s cannot be read", attempt.task.task_id)
            return ending.Answer(Outcome(attempt, Ending.RAISED, self.now()), None, error)
        if answer.error is not None and answer.report is None and self._goes_on_without(attempt):
            self._set_nodes(list(self._nodes.values()))
            answer.outcome = answer.outcome._replace(ending=Ending.LOST, node_lost=True)
        return answer

    def _goes_on_without(self, attempt: Attempt) -> bool:
        """Whether what ran an attempt has failed, and there is something else to run it."""
        return self._engine.has_failed(attempt) and self._engine.why_failed() is None

    def _settle(self, settle: Settle) -> None:
        job = self._jobs.get(settle.task.task_id)
        if job is None:
            return
        if settle.outcomes:
            why = self._sentence(settle.outcomes[-1].attempt.why)
            job.future.story = Story(settle.outcomes, why)
            if job.ticket is not None:
                job.ticket.story = job.future.story
        try:
            self._observe(settle)
        except Exception:
            logger.exception("What the run cost could not be noted")
        if settle.is_split:  # it is over when its parts are
            job.is_split, job.answer, job.original = True, None, None
            job.call.drop()
            return
        answer = job.answer
        if settle.ending is Ending.EXHAUSTED or answer is None:
            error = ResourcesExhausted(settle.task.task_id, settle.task.category, settle.outcomes)
            self._keep_exhausted(job, error)
            error.__cause__ = answer.cause() if answer else None
            self._over(job, None, error)
        else:
            self._over(job, answer.value, answer.error)

    def _look_up(self, task: TaskInfo) -> None:
        """Have the past of its category loaded elsewhere; whatever comes of that is an answer."""
        try:
            past = self._load(task)
        except Exception as error:
            past = Future()
            past.set_exception(error)
        self._loading += 1
        self._tick_at = min(self._tick_at, time.monotonic() + LOADING_TICK_S)
        self._loop.wake()
        past.add_done_callback(lambda done: self._loop.put(partial(self._loaded, task, done)))

    def _loaded(self, task: TaskInfo, past: Future[Sequence[Outcome]]) -> None:
        self._loading -= 1
        error = CancelledError() if past.cancelled() else past.exception()
        if error is not None:
            category = task.category[:80]
            logger.warning("Of %r nothing is known of earlier runs: %r", category, error)
        self._handle(Loaded(task.category, () if error else past.result()))

    def _ask(self, consult: Consult) -> None:
        """Let the user say whether a task that ran out is to be split."""
        job = self._jobs.get(consult.task.task_id)
        if job is None:
            return

        def answered(parts: Future[Any] | None) -> None:
            self._loop.put(partial(self._answered, job, parts))

        if self._consult is None or job.original is None or self._is_draining:
            answered(None)
            return
        try:
            self._consult(job, consult, answered)
        except Exception:
            logger.exception("The user could not be asked about task %s", job.task.task_id)
            answered(None)

    def _answered(self, job: Job, parts: Future[Any] | None) -> None:
        self._handle(Consulted(job.task.task_id, parts is not None))
        if parts is not None:
            parts.add_done_callback(
                lambda done: self._loop.put(partial(self._parts_done, job, done))
            )

    def _parts_done(self, job: Job, parts: Future[Any]) -> None:
        if self._jobs.get(job.task.task_id) is job:
            error = parts.exception()
            if isinstance(error, ResourcesExhausted):
                self._keep_exhausted(job, error)
            self._over(job, None if error else parts.result(), error)

    def _keep_exhausted(self, job: Job, error: ResourcesExhausted) -> None:
        for last in error.outcomes[-1:]:
            most, given = self._most(last.exhausted), last.attempt.allocation
            if all(given.get(kind, 0.0) >= most[kind] for kind in most):
                job.future.exhausted = most

    def _sentence(self, why: object) -> str:
        """The sentence for a reason: one object for all that are the same."""
        if why is not self._why[0]:
            sentence = str(why)
            if len(self._whys) >= WHYS:
                self._whys.clear()
            self._why = why, self._whys.setdefault(sentence, sentence)
        return self._why[1]

    def _set_nodes(self, nodes: Sequence[Node]) -> None:
        here = {node.name: node for node in self._engine.still_here(nodes)}
        gone = [name for name in self._nodes if name not in here]
        come = [node for name, node in here.items() if self._nodes.get(name) != node]
        for name in gone:
            del self._nodes[name]
            self._note(Left(name))
        for node in come:
            logger.info("Node %s has %s", node.name, node.capacity)
            self._nodes[node.name] = node
            self._note(Joined(node))
        if gone:
            self._move_to_renamed()
        if gone or come:
            self._handle(Tick())

    def _move_to_renamed(self) -> None:
        """Have what runs on nodes that have another name now hold what it has there."""
        for job in self._jobs.values():
            attempt = job.running
            if attempt is None or attempt.node is None or attempt.node in self._nodes:
                continue
            name = self._engine.renamed(attempt.node)
            if name in self._nodes:
                self._note(Started(attempt, name))

    def _look_at(self, nodes: Sequence[Node] | None) -> None:
        """Take note of the nodes, if the engine could say; and ask one that has not said yet."""
        if nodes is not None:
            self._set_nodes(nodes)
            self._expect()
        if self._is_draining:
            return
        try:
            probe = self._engine.probe()
        except Exception as error:
            logger.warning("A node could not be asked what it has: %r", error)
            return
        if probe is not None:
            self._look_again.set()
            probe.add_done_callback(self._probed)

    def _expect(self) -> None:
        if self._look is not None:
            self._look()
        expected = tuple(self._engine.expected())
        if expected != self._expected:
            self._expected = expected
            self._handle(Expected(expected))

    def _probed(self, probe: Future[Any]) -> None:
        if not probe.cancelled() and probe.exception() is None:
            self._look_again.set()  # else it is asked again with the next look

    def _look_around(self) -> None:
        if (bad := self._engine.why_failed()) is not None:
            for job in [job for job in self._jobs.values() if job.waits]:
                self._over(job, None, bad)
        if not self._is_draining and self._engine.hand_on():
            self._hand_on()
        self._handle(Tick())

    def _hand_on(self) -> None:
        """Give up what runs where nothing comes back: others run it."""
        for job in list(self._jobs.values()):
            attempt = job.running
            if attempt is not None and self._engine.has_failed(attempt):
                failed: Future[Any] = Future()
                why = self._engine.of(attempt).why_failed()
                failed.set_exception(why or ending.TaskLost("What ran the task is gone."))
                self._ended(attempt, failed)

    @property
    def _is_demand_old(self) -> bool:
        return time.monotonic() - self._demand[0] >= DEMAND_S

    def _drain(self) -> None:
        self._is_draining = True
        for job in [job for job in self._jobs.values() if job.waits]:
            self._over(job, None, ShutDown(TOO_LATE))

    def _finish(self) -> None:
        self._drain()
        for job in list(self._jobs.values()):
            self._over(
                job, None, ShutDown("The executor was shut down while the task was running.")
            )
        self._loop.stop()

    def _over(self, job: Job, value: object, error: BaseException | None) -> None:
        """The task is over, whatever the sizer thinks: its events are not heard any more."""
        self._jobs.pop(job.task.task_id, None)
        self.settled += 1
        if job.recogniser is not PLAIN:
            story = job.future.story
            sizing = story.sizing() if story else Sizing(job.task.category, ())
            job.recogniser.over(job.tag, value, error, sizing)
        if self._loop.is_elsewhere:  # what waits for it is not for who submits another one
            self._loop.offer(partial(self._resolve, job, value, error), anywhere=False)
        else:
            self._resolve(job, value, error)

    @staticmethod
    def _resolve(job: Job, value: object, error: BaseException | None) -> None:
        try:
            if error is None:
                job.future.set_result(value)
            else:
                job.future.set_exception(error)
        except BaseException:  # resolved before, or Parsl's callbacks raised: the loop goes on
            logger.exception("The future of task %s could not be resolved", job.task.task_id)
