"""A call in this very process: measured, never stopped."""

from __future__ import annotations

import atexit
import contextlib
import os
import resource
import threading
import time
from collections.abc import Callable
from typing import Any

from . import call, keeper, node_ledger, probe, report, wire
from .account import RSS_UNIT, Account, Leftovers, Tidiness
from .files import Files
from .node_ledger import Place
from .sampler import Sampler, peak_of
from .sandbox import Sandbox, used, working_folder

LONG_S = 0.05
"""Calls that last longer than this are looked at by the sampling thread."""
BOREDOM_S = 2.0
"""Without such calls for this long the thread waits until it is woken."""


def run_inline(
    order: dict[str, Any], func: Callable[..., Any], args: Any, kwargs: Any
) -> dict[str, Any]:
    """Call a function here and now, and report."""
    run = _run_in_thread if order.get("shared_process") else _run
    with node_ledger.claimed(order.get("claim")) as place:
        return run(order, lambda: func(*args, **kwargs), place)


def run_packed_inline(order: dict[str, Any], buffer: bytes) -> dict[str, Any]:
    """Run in place what an engine's codec has packed; the result is packed as well."""
    pid = os.getpid()

    def packed() -> tuple[Any, bytes | None]:
        loads, dumps = call.resolve(order["codec"][0]), call.resolve(order["codec"][1])
        func, args, kwargs = loads(buffer)
        result = func(*args, **kwargs)
        call.end_if_forked(pid, result)
        return (result, None) if wire.is_plain(result) else (None, dumps(result))

    made = run_inline(order, packed, (), {})
    error = made.pop("error", None)
    if error is not None:
        made["result"], made["payload"] = None, call.packed_error(order["codec"], error)
    else:
        made["result"], made["payload"] = made["result"]
    return made


def _run(order: dict[str, Any], func: Callable[[], Any], place: Place) -> dict[str, Any]:
    here = _here()
    tidiness, category = here.tidiness, order.get("category")
    made = report.blank("inline", here.layers, place.waited_s)
    sandbox = None if order.get("sandbox") == "cwd" else here.sandbox()
    tmp = None if sandbox is None else sandbox.path
    with call.Surroundings(order.get("env"), tmp, tidiness.home):
        before = here.held
        base = here.left.base(category, before)
        account = Account(tidiness)
        here.begin(order, base, place, working_folder() if sandbox is None else tmp)
        _note(made, func)
        sampler = here.end()
        head = account.closed()
    made["wall_s"], made["cpu_s"] = head["wall_s"], head["cpu_s"]
    if "after" in head:
        made["peak"]["memory"] = peak_of(head, base, sampler, here.files)
        if "ready" not in head:
            tidiness.restore()
        keeps = bool(order.get("keep_caches"))
        here.left.note(category, here.held - before, adds_up=keeps)
    elif "maxrss" in head:
        made["peak"]["memory"] = max(0, head["maxrss"] - here.maxrss)
    if sandbox is not None:
        taken = sandbox.settle(stays=not order.get("clean_files"))
    else:
        taken = used(working_folder()) if order.get("sandbox") == "cwd" else None
    if taken is not None:  # what it has left behind, which may be less than it had meanwhile
        made["peak"]["disk"] = taken
    if sampler is not None:
        made["series"] = sampler.series.points
    report.fill_cores(made, sampler.cores.peak if sampler else None)
    return made


def _run_in_thread(_: object, func: Callable[[], Any], place: Place) -> dict[str, Any]:
    """Beside other calls in one process, whose memory and folders cannot be told apart."""
    place.hold()
    made = report.blank("inline", ("thread",), place.waited_s)
    began, cpu_s = time.perf_counter(), time.thread_time()
    _note(made, func)
    made["wall_s"] = time.perf_counter() - began
    made["cpu_s"] = time.thread_time() - cpu_s
    report.fill_cores(made, None)
    return made


def _note(made: dict[str, Any], func: Callable[[], Any]) -> None:
    pid = os.getpid()
    try:
        made["result"] = func()
        call.end_if_forked(pid, made["result"])
        made["ending"] = "returned"
    except BaseException as error:
        call.end_if_forked(pid, error=error)
        made["ending"], made["error"], made["result"] = "raised", error, None


class Here:
    """What this process knows of itself, and the thread that looks at calls which last.

    The thread does not have to be woken for each call: as long as calls come it looks up
    now and then.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.tidiness = Tidiness()
        self.tidiness.restore()  # else a call would be given what is free in here, unseen
        self.left = Leftovers(self.held)
        self.files = Files()
        self._children_before = frozenset(probe.descendants(self.pid))
        self.layers = ("proc", "hwm") if self.tidiness.last else ("rusage",)
        self.maxrss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT
        self._sandbox: Sandbox | None = None
        self._current: tuple[float, dict[str, Any], int, Place] | None = None
        self._sampler: Sampler | None = None
        self._looking = threading.Lock()
        self._wanted = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def held(self) -> int:
        """What was held when it was looked at last; 0 where that cannot be read."""
        return self.tidiness.last.held if self.tidiness.last else 0

    def sandbox(self) -> Sandbox:
        """The folders for temporary files of calls in this process, one after the other."""
        if self._sandbox is None:
            self._sandbox = Sandbox()
            atexit.register(self._remove_sandbox)
        return self._sandbox

    def _remove_sandbox(self) -> None:
        if self._sandbox is not None and self.pid == os.getpid():
            self._sandbox.remove()

    def begin(
        self, order: dict[str, Any], base: int, place: Place, folder: str | None = None
    ) -> None:
        """Have a call sampled if it lasts; `folder` is its own."""
        last = self.tidiness.last
        self.files.begin(self.pid, last.shared if last else 0, folder)
        if last is None:  # then no thread looks at it
            place.hold()
        elif self._thread is None:
            self._thread = threading.Thread(target=self._look, daemon=True, name="parsl_sizer")
            self._thread.start()
        self._current = time.perf_counter(), order, base, place
        if not self._wanted.is_set():
            self._wanted.set()

    def end(self) -> Sampler | None:
        """The samples of the call that has just ended, if it lasted."""
        self._current = None
        with self._looking:  # a sample that is being taken is ours still
            sampler, self._sampler = self._sampler, None
        return sampler

    def _look(self) -> None:
        since = time.perf_counter()
        while True:
            self._wanted.wait()
            time.sleep(LONG_S)
            now = time.perf_counter()
            with self._looking:
                current = self._current
                if current is not None and now - current[0] >= LONG_S:
                    since = now
                    with contextlib.suppress(Exception):  # others come after this call
                        self._sample(*current)
            if now - since > BOREDOM_S:
                since = now
                self._wanted.clear()
                if self._current is not None:  # it came in between
                    self._wanted.set()

    def _sample(self, began: float, order: dict[str, Any], base: int, place: Place) -> None:
        place.hold()
        if self._sampler is None:
            fresh, points = self.tidiness.fresh, int(order.get("series") or 0)
            others = keeper.living | self._children_before
            self._sampler = Sampler(
                self.pid,
                fresh=fresh,
                earlier=base - fresh,
                points=points,
                twin=next(iter(keeper.living), None),
                without=others,
                began=began,
                resets_root=False,
                files=self.files,
            )
        self._sampler.sample()


_known: Here | None = None
_knowing = threading.Lock()


def _here() -> Here:
    """One per process: a fork is another."""
    global _known
    with _knowing:
        if _known is None or _known.pid != os.getpid():
            _known = Here()
        return _known
