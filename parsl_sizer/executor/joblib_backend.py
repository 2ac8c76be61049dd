"""A backend for joblib: its batches of calls go to a `SizedPoolExecutor`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from joblib import register_parallel_backend
from joblib._parallel_backends import (
    AutoBatchingMixin,
    FallbackToBackend,
    ParallelBackendBase,
    SequentialBackend,
)

from .hints import NO_HINTS, Hinted, hints_of
from .pool import SizedPoolExecutor

NAME = "parsl_sizer"


class SizedBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs the calls of `joblib.Parallel` in a pool; what a call starts itself runs in threads."""

    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, pool: SizedPoolExecutor | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self._pool = pool or _of_this_process()
        self._futures: set[Future[Any]] = set()

    def configure(
        self,
        n_jobs: int = 1,
        parallel: Any = None,
        prefer: Any = None,
        require: Any = None,
        **_: Any,
    ) -> int:
        """How many calls to keep going; one is made right here."""
        self.parallel = parallel
        effective = self.effective_n_jobs(n_jobs)
        if effective == 1 and n_jobs == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        return effective

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """As many as are asked for; counted from the workers of the pool if that is negative."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            n_jobs = self.default_n_jobs
        return n_jobs if n_jobs > 0 else max(1, self._pool._max_workers + 1 + n_jobs)

    def submit(
        self, func: Any, callback: Callable[[Future[Any]], None] | None = None
    ) -> Future[Any]:
        """Have a batch of calls made, with the hints of its first function."""
        hints = hints_of(func.items[0][0]) if func.items else NO_HINTS
        future = self._pool.submit(func if hints is NO_HINTS else Hinted(func, hints))
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    apply_async = submit  # as it was called before joblib 1.5

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """The results of a batch, or the error that one of its calls raised."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel what has not begun; the pool stays."""
        for future in list(self._futures):
            future.cancel()

    def terminate(self) -> None:
        """A call of Parallel is over; the pool stays."""
        self.reset_batch_stats()


_pool: SizedPoolExecutor | None = None
_starting = threading.Lock()


def _of_this_process() -> SizedPoolExecutor:
    """The pool of those who gave none; it lives as long as Python does."""
    global _pool
    with _starting:
        if _pool is None or _pool._is_shut:
            _pool = SizedPoolExecutor()
        return _pool


def register(pool: SizedPoolExecutor | None) -> None:
    """Let joblib know the backend by its name."""
    register_parallel_backend(NAME, partial(SizedBackend, pool))
