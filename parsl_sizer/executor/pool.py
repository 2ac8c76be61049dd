"""SizedPoolExecutor: `concurrent.futures` in front, a sized Parsl behind."""

from __future__ import annotations

import itertools
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from functools import partial
from typing import Any

from parsl import Config, DataFlowKernel
from parsl.executors.base import ParslExecutor

from .arguments import BadArgument
from .carried import Carried, Chunk, bearer
from .executor import SizedExecutor, local_engine
from .naming import name_of_function, user_function

INTERNAL = "_parsl_internal"
"""The executor that every Parsl has for itself."""
OF_OTHERS = ("initializer", "initargs", "mp_context", "max_tasks_per_child")
"""What the pools of the standard library are given and this one cannot be."""


class SizedPoolExecutor(Executor):
    """An executor as in `concurrent.futures`, whose calls are given what they need.

    It is a drop-in for `ProcessPoolExecutor`: calls run in other processes, there or on a
    cluster, and each is measured, sized, and tried again with more if it ran out.

    Parameters
    ----------
    executor
        A number of workers on this machine, by default one per core; or a `SizedExecutor`, or
        any executor of Parsl's for one to be put around. A Parsl of its own is loaded for it,
        which does not touch one that you have loaded.
    config
        Instead, a Parsl configuration to load.
    dfk
        Instead, a Parsl that is loaded already. It is not shut down with this executor.
    max_workers
        How many calls run at once on this machine, by default one per core. Where the
        executor is given, how many calls dask and joblib keep going at once: by default as
        many as there are workers.
    executors
        The labels of those executors of `config` or `dfk` that calls may go to.
    run_dir
        The folder for Parsl's files about the run.
    options
        Arguments of `SizedExecutor` for the one that is made here, such as
        ``node="cores=16,memory=64GB"`` or ``report=False``.
    """

    def __init__(
        self,
        executor: ParslExecutor | int | None = None,
        *,
        config: Config | None = None,
        dfk: DataFlowKernel | None = None,
        max_workers: int | None = None,
        executors: Sequence[str] | None = None,
        run_dir: str | os.PathLike[str] = "runinfo",
        **options: Any,
    ) -> None:
        if isinstance(executor, int):  # as in ProcessPoolExecutor(4)
            executor, max_workers = None, executor
        if refused := [name for name in OF_OTHERS if name in options]:
            raise BadArgument(
                f"{refused[0]!r} is not for a SizedPoolExecutor: its workers are started by Parsl, "
                "and are replaced when a call runs out of memory. Set up what calls need in them."
            )
        if sum(given is not None for given in (executor, config, dfk)) > 1:
            raise BadArgument("Give one of an executor, config= and dfk=.")
        if max_workers is not None and max_workers < 1:
            raise ValueError("max_workers must be greater than 0")
        is_made_here = config is None and dfk is None and not isinstance(executor, SizedExecutor)
        if options and not is_made_here:
            raise BadArgument(
                f"{', '.join(map(repr, options))} can only be given for a SizedExecutor that is "
                "made here; give it to the one that you have."
            )
        self._is_owner = dfk is None
        if dfk is None:
            config = config or _config(executor, max_workers, str(run_dir), options)
            used = _chosen(config.executors, executors)
            dfk = DataFlowKernel(config)
        else:
            used = _chosen(list(dfk.executors.values()), executors)
        self._dfk = dfk
        self._labels = [executor.label for executor in used]
        self._max_workers = max_workers or sum(map(_workers, used))
        self._lock = threading.Lock()
        self._pending: set[Future[Any]] = set()
        self._is_shut = False
        self._closing = threading.Lock()
        self._resolving = threading.local()
        self._pid = os.getpid()
        _register(self)
        self._forgotten = weakref.finalize(self, _give_back_later, self._dfk, self._is_owner)
        self._forgotten.atexit = False

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if (
            self._pid == os.getpid()
            and exc_type is not None
            and issubclass(exc_type, KeyboardInterrupt)
        ):
            self._abandon()
        else:
            self.shutdown()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have ``fn(*args, **kwargs)`` called, and return its future.

        All arguments are the function's own, whatever they are called. It may be anything that
        can be called and pickled by value: a lambda, a closure, a method.
        """
        return self._send(Carried(fn, args, kwargs))

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[Any]:
        """The results of calls with the items of `iterables`, in order, as `map` gives them.

        With `chunksize` so many calls are one task, sized as one. With `buffersize` no more
        than so many tasks are submitted before their results are asked for. `timeout` is in
        seconds from now.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        calls = zip(*iterables)  # noqa: B905 - as `map` does
        if chunksize == 1:
            return self._results((Carried(fn, call, {}) for call in calls), timeout, buffersize)
        chunks = iter(lambda: tuple(itertools.islice(calls, chunksize)), ())
        results = self._results((Chunk(fn, chunk) for chunk in chunks), timeout, buffersize)
        return _each(results)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls, and give everything back when those that were taken are over.

        `cancel_futures` cancels the calls that were not sent to a worker yet. A Parsl that was
        given as `dfk` goes on.
        """
        if self._pid != os.getpid():  # a fork has none of its threads
            return
        with self._lock:
            self._is_shut = True
            pending = list(self._pending)
        if cancel_futures:
            for future in pending:
                future.cancel()
        # Who calls from a future's callback would wait for itself.
        if wait and not getattr(self._resolving, "now", False):
            self._close_when_done()
        else:  # not in a daemon: Python waits for it, and so for the calls, before it leaves
            threading.Thread(target=self._close_when_done, name="parsl_sizer-pool").start()

    def _abandon(self) -> None:
        """End without waiting for calls: those that run fail."""
        with self._lock:
            self._is_shut = True
            pending = list(self._pending)
        for future in pending:
            future.cancel()
        self._close()

    def _send(self, carried: Carried) -> Future[Any]:
        ticket = carried.ticket
        name = name_of_function(user_function(carried.function))
        with self._lock:  # Parsl counts tasks without one
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._dfk.cleanup_called:
                raise RuntimeError("cannot schedule new futures: the Parsl behind is shut down")
            task = self._dfk.submit(
                bearer(name),
                app_args=(carried,),
                executors=self._labels,
                cache=False,
                ignore_for_cache=None,
                app_kwargs={},
            )
            self._pending.add(ticket)
        task.add_done_callback(partial(self._resolve, ticket))
        return ticket

    def _resolve(self, ticket: Any, task: Future[Any]) -> None:
        before = getattr(self._resolving, "now", False)
        self._resolving.now = True
        try:
            if not ticket.begin():  # cancelled, and then nobody wants to know
                return
            error = task.exception()
            if error is None:
                ticket.set_result(task.result())
            else:
                ticket.set_exception(error)
        finally:
            self._resolving.now = before
            self._pending.discard(ticket)

    def _results(
        self, calls: Iterator[Carried], timeout: float | None, buffersize: int | None
    ) -> Iterator[Any]:
        until = math.inf if timeout is None else time.monotonic() + timeout
        futures = deque(self._send(call) for call in itertools.islice(calls, buffersize))

        def results() -> Iterator[Any]:
            try:
                while futures:
                    left = None if timeout is None else until - time.monotonic()
                    value = futures[0].result(left)
                    futures.popleft()  # first of all: it is not ours to cancel any more
                    if (call := next(calls, None)) is not None:
                        futures.append(self._send(call))
                    yield value
            finally:
                for future in futures:
                    future.cancel()

        return results()

    def _close_when_done(self) -> None:
        try:
            wait(list(self._pending))
            if self._is_owner and not self._dfk.cleanup_called:
                self._dfk.wait_for_current_tasks()
        except KeyboardInterrupt:
            self._abandon()
            raise
        self._close()

    def _close(self) -> None:
        with self._closing:
            self._forgotten.detach()
            if self._is_owner and not self._dfk.cleanup_called:
                self._dfk.cleanup()


_pools: weakref.WeakSet[SizedPoolExecutor] = weakref.WeakSet()
_is_registered = False


def _register(pool: SizedPoolExecutor) -> None:
    """Have a pool shut down before Python leaves, if nobody does that earlier.

    As the standard library's pools do: `atexit` comes when Parsl's own threads are gone.
    """
    if not _pools:
        threading._register_atexit(_leave)  # type: ignore[attr-defined]
    _pools.add(pool)


def _leave() -> None:
    for pool in list(_pools):
        if pool._pid == os.getpid():
            pool.shutdown()


def _give_back_later(dfk: DataFlowKernel, is_owner: bool) -> None:
    """Clean up behind a pool that nobody has any more, in a thread that is not one of its own."""
    if is_owner and not dfk.cleanup_called:
        threading.Thread(target=dfk.cleanup, name="parsl_sizer-pool").start()


def register_joblib(pool: SizedPoolExecutor | None = None) -> None:
    """Make ``joblib.parallel_config("parsl_sizer")`` run calls in a pool.

    Without one they run on this machine, in a pool that is made when it is first needed.
    """
    from .joblib_backend import register  # joblib is only needed by those who have it

    register(pool)


def _config(
    executor: ParslExecutor | None,
    max_workers: int | None,
    run_dir: str,
    options: dict[str, Any],
) -> Config:
    if executor is None:
        executor = local_engine(max_workers)
    if not isinstance(executor, SizedExecutor):
        executor = SizedExecutor(executor, **options)
    return Config(executors=[executor], run_dir=run_dir, initialize_logging=False, usage_tracking=0)


def _chosen(executors: Sequence[Any], labels: Sequence[str] | None) -> Sequence[Any]:
    """Those of the executors that calls may go to."""
    there = {executor.label: executor for executor in executors if executor.label != INTERNAL}
    if labels is None:
        return list(there.values())
    if unknown := [label for label in labels if label not in there]:
        raise BadArgument(f"There is no executor {unknown[0]!r}; there is {', '.join(there)}.")
    return [there[label] for label in labels]


def _workers(executor: ParslExecutor) -> int:
    """How many tasks an executor may run at once, as far as it says."""
    inner: Any = getattr(executor, "inner", executor)
    if members := getattr(inner, "members", None):
        return sum(map(_workers, members))
    if threads := getattr(inner, "max_threads", None):
        return int(threads)
    said = getattr(inner, "max_workers_per_node", None)
    workers = int(said) if said and math.isfinite(said) else os.cpu_count() or 1
    provider = getattr(inner, "provider", None)
    blocks = getattr(provider, "max_blocks", 1) or 1
    nodes = getattr(provider, "nodes_per_block", 1) or 1
    return max(1, math.ceil(workers * blocks * nodes)) if math.isfinite(blocks) else workers


def _each(chunks: Iterator[list[Any]]) -> Iterator[Any]:
    """The items of lists, one list at a time; who stops asking stops `chunks` too."""
    for chunk in chunks:
        yield from chunk
