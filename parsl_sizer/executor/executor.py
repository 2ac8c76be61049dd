"""SizedExecutor: any Parsl executor, with every task given what it needs."""

from __future__ import annotations

import itertools
import math
import os
import shlex
import shutil
import signal
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from parsl.executors import HighThroughputExecutor
from parsl.executors.base import ParslExecutor
from parsl.providers import LocalProvider
from parsl.utils import RepresentationMixin

from parsl_sizer.archive.open import location
from parsl_sizer.engines import Engine
from parsl_sizer.engines.catalog import engine_for
from parsl_sizer.engines.several import Several, group_of
from parsl_sizer.model import OptOut, SizerError, TaskInfo, logger_for
from parsl_sizer.placement import Lines
from parsl_sizer.placement import order as order_named
from parsl_sizer.sizing import Consult, Settle, Sizer
from parsl_sizer.strategies import Family

from . import arguments, intake
from .calls import Call
from .carried import Chunk, carried_in
from .driver import Answered, Driver, Job
from .face import FORWARDED, face, forwarded
from .file_sizes import FileSizes
from .foreign import passed_on
from .graph import TaskGraph, calling_record
from .hints import BadHint, read
from .history import History, nothing_known
from .labelling import Labelling
from .naming import user_function
from .recognisers import PLAIN, Recognisers
from .scaling import LiveScaling, Scaling
from .several import Together
from .shown import Costs, LiveLine, show
from .splitting import Exhaustion, OnExhausted, Original, Splitter
from .story import SizedFuture

logger = logger_for(__name__)

Inner = ParslExecutor | Sequence[ParslExecutor] | None

OFF = "PARSL_SIZER"
"""An environment variable: with the value ``off`` everything passes through untouched."""


class SizedExecutor(ParslExecutor, RepresentationMixin):
    """An executor that gives every task of the inner one what it needs, and no more.

    Parameters
    ----------
    inner
        The executor that runs the tasks. By default a HighThroughputExecutor on this
        machine. Or a list of executors, each a group of nodes: a task goes to a node of any
        of them, and a group that fails hands its tasks on to the others; see the guide to
        several groups.
    strategy
        The name of a strategy (``parsl-sizer strategies`` lists them), with options as in
        ``"percentile:p=95"``, or a function of a category that returns one.
    node
        What a node has, such as ``"cores=16,memory=64GB"``. What is left out is found out.
        Of several inner executors, a mapping from their labels to that.
    kinds
        What is sized: some of ``"cores"``, ``"memory"``, ``"disk"``. By default all that
        can be measured with the inner executor.
    category
        A function of an app's function, its arguments and its keyword arguments that
        returns the category of the task, or None for the name of the function.
    observe
        Size nothing, measure everything, and say at the end what would have been saved.
    objective
        ``"throughput"`` (as many tasks at once as fit) or ``"waste"`` (as little
        allocated and not used).
    isolation
        How tasks are run: ``"runner"``, ``"fork"`` or ``"inline"``. By default what suits
        the inner executor.
    archive
        Where it is kept what tasks used, for the next run to start with: by default a file
        of the user's own (``parsl-sizer doctor`` says which), the name of another, or the
        address of a server such as ``"postgresql://me@host/name"``. False keeps nothing.
    order
        Which of the tasks that wait start first: ``"first-come"``, ``"fifo"``, ``"bfs"``,
        ``"dfs"``, ``"topology-rank"``, ``"least-finished-first"``, ``"largest-first"``,
        ``"shortest-first"``; see the guide to orders.
    canaries
        How many tasks of a category that nothing is known of run before the others, such as
        3; by default all start as soon as there is room.
    placement
        On which node a task starts: ``"any"`` that has room for it. Or, with several inner
        executors, on one of the group that suits it: ``"tarema"``, or one of those that it
        is compared with: ``"round-robin"``, ``"fair"``, ``"fill-nodes"``,
        ``"shortest-job-fastest-node"``; see the guide to several groups.
    scaling
        Who asks for blocks, and when: ``"parsl"``, as its strategy says; ``"asa"``, for each
        stage of the workflow before it begins, by how long blocks wait in the queue; or
        ``"asa-naive"``, ``"per-stage"``, ``"big-job"``. See the guide to blocks.
    labels
        Anything to remember every task of this run by.
    grow
        Whether a task that needs more memory than it was given may have what is free on its
        node, instead of being stopped and tried again. With Work Queue and TaskVine only if
        all workers have as much memory; with threads it makes no difference.
    lost_retries
        How often a task is run again whose worker or node was lost.
    on_exhausted
        What to do with a task that runs out of all that a node has: ``"raise"``
        ResourcesExhausted, ``"let_run"`` (once more, alone and without a limit), or
        ``"split"`` (do its work in two parts, where the framework that it is of shows how:
        Coffea). Or a function of an ``Exhaustion`` that is asked about every task that runs
        out, and returns a ``Split`` or None.
    clean_files
        Whether to remove the temporary files of each task after it, on HTEX. By default what a
        task leaves in its ``TMPDIR`` stays, for the tasks that it hands a path to.
    report
        Whether to print what the run cost at its end, and on a terminal how far it is.
    """

    def __new__(cls, inner: Inner = None, *_: Any, **given: Any) -> Any:
        if "label" in given:
            raise arguments.BadArgument(
                "A SizedExecutor has the label of its inner executor: give the label to that one."
            )
        if cls is SizedExecutor and not isinstance(inner, (list, tuple)):
            cls = face(cls, HighThroughputExecutor if inner is None else type(inner))
        return super().__new__(cls)

    def __init__(
        self,
        inner: Inner = None,
        strategy: str | Family = "auto",
        node: str | Mapping[Any, Any] | None = None,
        kinds: Sequence[str] | None = None,
        category: intake.Categorise | None = None,
        observe: bool = False,
        objective: str = "throughput",
        isolation: str | None = None,
        archive: bool | str | os.PathLike[str] | None = None,
        order: str = "first-come",
        canaries: int = 0,
        placement: str = "any",
        scaling: str | Scaling = arguments.PARSLS,
        labels: Mapping[str, object] | None = None,
        grow: bool = True,
        lost_retries: int = 2,
        on_exhausted: str | OnExhausted = "raise",
        clean_files: bool = False,
        report: bool = True,
    ) -> None:
        self.inner, self._engine = _engine(inner, node)
        self.strategy = strategy
        self.node = node
        self.kinds = kinds
        self.category = category
        self.observe = observe
        self.objective = arguments.one_of("objective", objective, arguments.OBJECTIVES)
        self.isolation = isolation
        self.archive = archive
        self.order = order
        self.canaries = canaries
        self.placement = placement
        self.scaling = scaling
        self._policy = arguments.scaling(scaling, self.inner)
        self.labels = labels
        self.grow = grow
        self.lost_retries = lost_retries
        self.on_exhausted = arguments.on_exhausted(on_exhausted)
        self.clean_files = clean_files
        self.report = report
        flags = {OptOut.NEVER_KILL: observe, OptOut.CLEAN_FILES: clean_files}
        self._flags = frozenset(flag for flag, is_set in flags.items() if is_set)
        self._isolation_of(isolation)
        sized = arguments.sized_kinds(kinds, self._engine)
        self._history: History | None = None
        policy = arguments.placement_policy(placement, self._engine)
        self._labelling: Labelling | None = None
        if policy is not None and isinstance(self._engine, Several):
            self._labelling = Labelling(policy, self._engine)
        first = order_named(order if policy is None else policy.order or order)
        self._graph = TaskGraph() if first.needs_graph else None
        is_sized = bool(sized) and not observe
        self._sizer = Sizer(
            arguments.categories(strategy, sized, objective, self._warn)
            if is_sized
            else arguments.unsized(),
            queue=Lines(first),
            policy=policy,
            gate=arguments.gate(canaries),
            lost_retries=lost_retries,
            let_run=on_exhausted == "let_run",
            loads=is_sized,
            consults=self._may_split,
            warn=self._warn,
        )
        self._driver: Driver | None = None
        self._sizes: FileSizes | None = None
        self._splitter: Splitter | None = None
        self._scaling: LiveScaling | None = None
        self._recognisers = Recognisers(self._warn)
        self._ids = itertools.count(1)
        self._said: set[str] = set()
        self._payloads: set[Future[Any]] = set()
        self._ledger = uuid.uuid4().hex[:12]
        hypothetical = None
        if observe:
            hypothetical = arguments.categories(strategy, sized, objective, self._warn)
        self._costs = Costs(hypothetical)
        self._line: LiveLine | None = None

    def start(self) -> None:
        """Start the inner executor, and the loop that decides."""
        # Ctrl-C goes to all processes in the foreground. The engine's own have to outlive
        # it: without them Parsl's clean-up waits for ever. They inherit the mask.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.inner.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if os.environ.get(OFF, "").lower() == "off":
            logger.warning("%s=off: tasks of %s are not sized.", OFF, self.label)
            return
        self._sizes = FileSizes()
        self._history = self._opened_history()
        labelling = self._labelling
        if labelling is not None and self._history is not None:
            labelling.profiles = self._history.profiles()
        self._driver = Driver(
            self._sizer,
            self._engine,
            observe=self._note,
            record=self._history.record if self._history else None,
            load=self._history.load if self._history else nothing_known,
            consult=self._ask if self._may_split else None,
            look=None if labelling is None else labelling.look,
            warn=self._warn,
        )
        self._splitter = Splitter(self.submit, self._warn) if self._may_split else None
        self._driver.start()
        if self._policy is not None:
            self._scaling = LiveScaling(
                self.inner,
                self._driver,
                self._policy,
                where=location(self.archive) if self._history else None,
                before=self._history.before if self._history else lambda task: (),
                warn=self._warn,
            )
            self._scaling.start()
        if not self._engine.measures:
            logger.warning(
                "Tasks on %s share one process: they start when what they state is free, and "
                "are neither measured nor stopped.",
                self.label,
            )
        if self.report:
            self._line = LiveLine(self._driver, self.label)
            self._line.start()

    def submit(
        self, func: Any, resource_specification: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """Let a function be run with these arguments; does not wait for it."""
        driver, sizes = self._driver, self._sizes
        if driver is None or sizes is None:
            said = read(resource_specification)
            given = passed_on(said.given, self._engine, self._warn)
            return self._engine.submit_unsized(func, said.requested, given, args, kwargs)
        record = calling_record()
        before = None if record is None else record.get("exec_fu")
        if isinstance(before, SizedFuture) and driver.is_final(before):
            return before  # a Parsl retry that would run out again
        task, hints, recogniser, tag, instead = intake.task_info(
            next(self._ids),
            func,
            (args, kwargs),
            resource_specification,
            now=driver.now(),
            recognisers=self._recognisers,
            categorise=self.category,
            warn=self._warn,
        )
        if self._flags:
            task = task._replace(opt_outs=task.opt_outs | self._flags)
        given = passed_on(hints.given, self._engine, self._warn)
        if priority := self._engine.priority(hints.given):
            task = task._replace(priority=priority)
        if self._graph is not None and record is not None:
            depth, rank = self._graph.place(record)
            task = task._replace(depth=depth, rank=rank)
        if instead:
            kwargs.update(instead)
        isolation = self._isolation_of(hints.isolation or self.isolation)
        grows = self.grow and not self.observe
        call = Call(func, args, kwargs, isolation, given, self._ledger, grows)
        packs = self._engine.takes_bytes and isolation != "fork"
        size = call.pack() if packs else 0
        job = Job(task, call, SizedFuture(task.task_id), recogniser=recogniser, tag=tag)
        carried = carried_in(args)
        if carried is not None:
            args, kwargs = tuple(carried.args), dict(carried.kwargs)
            job.ticket = carried.ticket
        if self._may_split and not isinstance(carried, Chunk):
            inside = None if carried is None else carried.function
            job.original = Original(func, dict(resource_specification or {}), call, inside)
        files = intake.input_files(args, kwargs)
        if files:
            job.task = task = task._replace(inputs=tuple(map(intake.name_of, files)))
        if files and "input_size" not in hints.features:
            go = partial(sizes.ask, files, partial(_submit_with_files, driver, job, size))
        else:
            job.task = _with_input_size(task, size if size >= intake.LARGE_ARGUMENTS else None)
            go = partial(driver.submit, job)
        if self._scaling is None:
            go()
        else:
            self._scaling.submit(task, record, go)
        return job.future

    def submit_unsized(
        self, inner: ParslExecutor, func: Any, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """Have an inner executor call a function: not a task, so neither sized nor recorded."""
        call = partial(inner.submit, func, {}, *args, **kwargs)
        return call() if self._driver is None else self._driver.errand(call)

    @property
    def submit_payload(self) -> Callable[[dict[str, Any], bytes], Future[Any]]:
        """HTEX's way to run what is already serialised. These tasks are not sized."""
        return partial(self._submit_payload, self.inner.submit_payload)  # type: ignore[attr-defined]

    def _submit_payload(
        self,
        submit: Callable[[dict[str, Any], bytes], Future[Any]],
        context: dict[str, Any],
        buffer: bytes,
    ) -> Future[Any]:
        if self._driver is None:
            return submit(context, buffer)
        if self._policy is not None:
            raise SizerError(
                f"scaling={self._policy.policy!r} requests blocks for the stages of a workflow, "
                "and a task given to submit_payload is in no stage. Use scaling='parsl'."
            )
        self._warn(
            "Tasks given to submit_payload, as Globus Compute does, are not sized: nothing is "
            "reserved for them, and they are neither measured nor limited."
        )
        future = self._driver.errand(partial(submit, context, buffer))
        self._payloads.add(future)
        future.add_done_callback(self._payloads.discard)
        return future

    def outstanding(self) -> int:
        """The demand for blocks, in Parsl's unit, worker slots: from sizes, not from counts.

        What `submit_payload` was given takes a slot each.
        """
        if self._driver is None:
            return int(self.inner.outstanding())  # type: ignore[attr-defined]
        if isinstance(self.inner, Together):
            return self.inner.outstanding()
        payloads = len(self._payloads)
        tasks, nodes = len(self._driver), self._driver.demand()
        if self.observe:  # those count, too, that wait for a first node
            return max(tasks + payloads, int(self.inner.outstanding()))  # type: ignore[attr-defined]
        if not tasks or nodes is None:
            return tasks + payloads
        slots: float = self.inner.workers_per_node  # type: ignore[attr-defined]
        return max(1, math.ceil(nodes * slots - 1e-9)) + payloads

    def poll_facade(self) -> None:
        """Parsl's thread for blocks looks how they are, and so do we."""
        self.inner.poll_facade()  # type: ignore[attr-defined]
        if self._scaling is not None:
            self._scaling.poll()

    @property
    def status_facade(self) -> dict[str, Any]:
        """What Parsl is to think of blocks."""
        if self._scaling is not None:
            return self._scaling.blocks.status()
        status: dict[str, Any] = self.inner.status_facade  # type: ignore[attr-defined]
        return status

    def scale_out_facade(self, n: int) -> list[str]:
        """Ask for blocks, if that is Parsl's to decide."""
        if self._scaling is not None:
            return []
        blocks: list[str] = self.inner.scale_out_facade(n)  # type: ignore[attr-defined]
        return blocks

    def scale_in_facade(self, n: int, max_idletime: float | None = None) -> list[str]:
        """Give blocks back. HTEX takes 0 for all that are idle, those about to start too."""
        if n < 1 or self._scaling is not None:
            return []
        blocks: list[str] = self.inner.scale_in_facade(n, max_idletime)  # type: ignore[attr-defined]
        return blocks

    def shutdown(self, *args: Any, **kwargs: Any) -> None:
        """Stop: what waits fails, the inner executor is shut down, what ran comes back."""
        driver, sizes = self._driver, self._sizes
        if driver is None or sizes is None:
            self.inner.shutdown(*args, **kwargs)
            return
        try:
            if self._line is not None:
                self._line.stop()
            driver.stop_watching()
            driver.drain()
        finally:
            self._shut_down(driver, sizes, args, kwargs)

    def _shut_down(
        self, driver: Driver, sizes: FileSizes, args: Any, kwargs: Mapping[str, Any]
    ) -> None:
        try:
            if self._scaling is not None:
                self._scaling.close()
        finally:
            self._shut_down_inner(driver, sizes, args, kwargs)

    def _shut_down_inner(
        self, driver: Driver, sizes: FileSizes, args: Any, kwargs: Mapping[str, Any]
    ) -> None:
        try:
            self.inner.shutdown(*args, **kwargs)
        finally:
            driver.finish()
            sizes.close()  # whoever still waits for a file size hears it is over
            if self._splitter is not None:
                self._splitter.close()
            if self._history is not None:
                self._history.close()
            if self.report:
                show(self._costs, self.label, observed=self.observe)

    def monitor_resources(self) -> bool:
        """Whether Parsl's own monitoring makes sense with the inner executor."""
        return self.inner.monitor_resources()

    def __getattr__(self, name: str) -> Any:
        if name == "inner" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def _isolation_of(self, wanted: str | None) -> str:
        possible = self._engine.isolations
        if wanted is None:
            return possible[0]
        if wanted not in possible:
            raise BadHint(
                f"isolation={wanted!r} is not possible with {self._engine.name}; "
                f"there is {', '.join(map(repr, possible))}."
            )
        return wanted

    def _opened_history(self) -> History | None:
        """The archive, if there is to be one and it can be; without it tasks run all the same."""
        try:
            where = location(self.archive)
            if where is None or not self._engine.measures:
                return None
            history = History(where, self.labels, self._warn, node=lambda: self._sizer.largest)
            history.start()
        except Exception as error:
            self._warn(f"archive={self.archive!r} cannot be used ({error}): nothing is recorded.")
            return None
        return history

    @property
    def _may_split(self) -> bool:
        return callable(self.on_exhausted) or self.on_exhausted == "split"

    def _ask(self, job: Job, consult: Consult, answered: Answered) -> None:
        """Have the user's function, or the framework's, say how to split a task."""
        original, splitter = job.original, self._splitter
        if self.on_exhausted == "split" and job.recogniser is PLAIN:
            self._warn(
                f"Tasks of {consult.task.category[:80]!r} run out, and nobody knows how to split "
                'them: on_exhausted="split" is for Coffea\'s. Give it a function for your own.'
            )
            original = None
        if original is None or splitter is None:
            answered(None)
            return
        function = user_function(original.carried or original.function)

        def exhaustion() -> Exhaustion:  # it takes time to unpack arguments
            return Exhaustion(
                consult.task.category,
                function,
                *original.arguments(),
                consult.outcomes,
                consult.larger,
            )

        hook = self.on_exhausted if callable(self.on_exhausted) else job.recogniser.split
        splitter.ask(hook, exhaustion, original, answered)

    def _note(self, settle: Settle) -> None:
        if self._scaling is not None:
            self._scaling.settled(settle.task, settle.outcomes)
        self._costs.add(settle, self._sizer.largest)
        if isinstance(self._engine, Several) and settle.outcomes:
            self._costs.groups[group_of(settle.outcomes[-1].attempt.node)] += 1

    def _warn(self, text: str) -> None:
        """Say something once."""
        if text not in self._said and len(self._said) < 1000:
            self._said.add(text)
            logger.warning("%s", text)


for _name in FORWARDED:
    setattr(SizedExecutor, _name, forwarded(_name))


def _engine(inner: Inner, node: str | Mapping[Any, Any] | None) -> tuple[ParslExecutor, Engine]:
    """The executor that is started and shut down, and how it is spoken to."""
    if isinstance(inner, (list, tuple)):
        together = Together(inner)
        nodes = arguments.nodes_by_label(node, [member.label for member in together.members])
        parts = {one.label: engine_for(one, nodes[one.label]) for one in together.members}
        several = Several(parts)
        together.watch_over(several)
        return together, several
    executor: Any = local_engine() if inner is None else inner
    return executor, engine_for(executor, arguments.node_amounts(node))


def local_engine(workers: int | None = None) -> HighThroughputExecutor:
    """An executor on this machine, with so many workers, or one per core.

    Parsl's own programs are looked for beside this Python too: not everybody activates
    an environment.
    """
    programs = Path(sys.executable).parent
    on_path = shutil.which("interchange.py") is not None
    return HighThroughputExecutor(
        label="sized",
        address="127.0.0.1",
        cores_per_worker=1.0 if workers is None else 1e-3,  # as many as are wanted
        max_workers_per_node=workers,
        interchange_launch_cmd=None if on_path else [str(programs / "interchange.py")],
        provider=LocalProvider(
            init_blocks=1,
            min_blocks=1,
            max_blocks=1,
            worker_init="" if on_path else f"export PATH={shlex.quote(str(programs))}:$PATH",
        ),
    )


def _submit_with_files(driver: Driver, job: Job, size: int, in_files: float | None) -> None:
    if in_files is not None and size >= intake.LARGE_ARGUMENTS:
        in_files += size
    job.task = _with_input_size(job.task, in_files)
    driver.submit(job)


def _with_input_size(task: TaskInfo, size: float | None) -> TaskInfo:
    if size is None or "input_size" in task.features:
        return task
    return task._replace(features={**task.features, "input_size": float(size)})
