"""A process between a worker and its runners, so that nothing a task started outlives it.

The keeper is forked from the worker once, while that is still small and has one thread,
and forks every runner. It adopts what its runners leave, so that ending them is to kill
and wait until it has no child; and it does so by itself when its worker dies, however.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from . import probe
from .account import trim

START, WAIT, KILL, QUIT = b"s", b"w", b"k", b"q"
ANSWER = struct.Struct("!qq")
GRACE_S = 1.0
"""A runner that has closed its socket is about to end; it is given this long to say how."""
PATIENCE_S = 10.0
"""What cannot be killed within this time is left to the system (a disk that hangs)."""
TRACKERS_GRACE_S = 0.3
"""A tracker of shared memory ends by itself, after it has removed what the dead have left."""
BADNESS = b"500"
"""The kernel kills tasks before the workers that supervise them."""
LOOK_UP_S = 1.0
"""A worker's death is heard at once, and seen so often, should others hold its end."""

_our_ends: weakref.WeakSet[socket.socket] = weakref.WeakSet()
_forking = threading.Lock()

living: set[int] = set()
"""The keepers of this process: they are no part of a call that is made in it."""


class End(NamedTuple):
    """How a runner ended; both None if it did not end by itself."""

    signal: int | None = None
    exit_code: int | None = None


class Keeper:
    """Starts runners and ends them; `main` is what a runner does with its end of a socket."""

    def __init__(self, main: Callable[[socket.socket], None], at_end: Callable[[], None]) -> None:
        with _forking:
            self._control, theirs = _pair()
            worker = os.getpid()
            with theirs:
                try:
                    self.pid = fork()
                except OSError:
                    self._control.close()
                    raise
                if self.pid == 0:
                    _keep(worker, theirs, main, at_end)
        living.add(self.pid)
        self._poll = select.poll()
        self._poll.register(self._control, select.POLLIN)

    def start(self) -> tuple[int, socket.socket]:
        """A new runner: its pid and our end of the socket."""
        with _forking:
            ours, theirs = _pair()
            with theirs:
                socket.send_fds(self._control, [START], [theirs.fileno()])
        try:
            return self._answer()[0], ours
        except OSError:
            ours.close()
            raise

    def reap(self) -> End:
        """How the runner, which is ending, ended; all that came out of it is killed."""
        return self._end(WAIT)

    def kill(self) -> None:
        """Kill the runner and all that came out of it."""
        self._end(KILL)

    def _end(self, how: bytes) -> End:
        try:
            self._control.sendall(how)
            ended_by_itself, status = self._answer()
        except OSError:
            return End()
        if not ended_by_itself:
            return End()
        if os.WIFSIGNALED(status):
            return End(signal=os.WTERMSIG(status))
        return End(exit_code=os.WEXITSTATUS(status))

    def is_alive(self) -> bool:
        """Whether the keeper is there; what was not ended by it has ended with it."""
        return not self._poll.poll(0)

    def close(self) -> None:
        """End everything, the keeper too."""
        living.discard(self.pid)
        with contextlib.suppress(OSError):
            self._control.sendall(QUIT)
        self._control.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _answer(self) -> tuple[int, int]:
        data = self._control.recv(ANSWER.size, socket.MSG_WAITALL)
        if len(data) < ANSWER.size:
            raise ConnectionResetError("The keeper of this worker's runners has died.")
        first, second = ANSWER.unpack(data)
        return first, second


def _pair() -> tuple[socket.socket, socket.socket]:
    """Our end and theirs. What is forked later must not hold ours: its end would go unseen."""
    ours, theirs = socket.socketpair()
    _our_ends.add(ours)
    return ours, theirs


def _begin_anew() -> None:
    """In a keeper: what was the worker's is not ours."""
    global _forking
    _forking = threading.Lock()  # the worker holds it
    atexit._clear()  # else a copy of a runner, which runs what tasks registered, ran the worker's
    living.clear()
    for ours in list(_our_ends):
        ours.close()


def fork() -> int:
    """Fork, with nothing in the buffers that would be written twice."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    with warnings.catch_warnings():
        # Since Python 3.12 forking a process with threads warns. All that the child does
        # before it is the single thread of its own process is to wait for orders.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _keep(
    worker: int,
    control: socket.socket,
    main: Callable[[socket.socket], None],
    at_end: Callable[[], None],
) -> NoReturn:
    """The keeper's life: it never returns into the program that it was forked from."""
    try:
        os.setsid()
        _begin_anew()
        gc.freeze()  # a collection in a runner would else copy every page it was forked with
        trim()  # what is free in here a task would use without being charged for it
        probe.call_me(b"sizer-keeper")
        probe.adopt_orphans()
        inherited = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
        _obey(worker, control, main, inherited)
    finally:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _end_all()
            at_end()
        finally:
            os._exit(0)


def _obey(
    worker: int,
    control: socket.socket,
    main: Callable[[socket.socket], None],
    handlers: Mapping[signal.Signals, Any],
) -> None:
    runner = 0
    control.settimeout(LOOK_UP_S)
    while True:
        _reap_orphans(runner)
        try:
            message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        except TimeoutError:
            if os.getppid() != worker:
                return
            continue
        if message in (b"", QUIT):
            return
        if message == START:
            keeper = os.getpid()
            runner = fork()
            if runner == 0:
                control.close()
                _run(keeper, socket.socket(fileno=descriptors[0]), main, handlers)
            os.close(descriptors[0])
            control.sendall(ANSWER.pack(runner, 0))
        else:
            grace_s = GRACE_S if message == WAIT else 0.0
            control.sendall(ANSWER.pack(*_end_all(runner, grace_s)))


def _reap_orphans(runner: int) -> None:
    """Wait for the children that have ended, up to the runner: how it ended is asked for later."""
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid == runner:
                return
            os.waitpid(ended.si_pid, 0)


def _run(
    keeper: int,
    sock: socket.socket,
    main: Callable[[socket.socket], None],
    handlers: Mapping[signal.Signals, Any],
) -> NoReturn:
    """A runner's life: a session of its own, which ends with its keeper.

    Its tasks find the signal handlers of the worker: under nohup, for example, SIGINT is ignored.
    """
    code = 1
    try:
        os.setsid()
        probe.call_me(b"sizer-runner")
        probe.die_with_parent(keeper)
        # The keeper adopts orphans: to os.wait() they would be children that the task has started.
        if probe.children(keeper) is None:  # then it is not known here what the keeper has adopted
            probe.adopt_orphans()
        # Else a child of a task could answer, and hide from the supervisor that the runner died.
        os.register_at_fork(after_in_child=sock.close)
        probe.write("/proc/self/oom_score_adj", BADNESS)
        for number, handler in handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        _renew_multiprocessing()
        _renew_randomness()
        main(sock)
        code = 0
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):
                stream.flush()
        os._exit(code)


def _renew_randomness() -> None:
    """Forks of one process would draw the same numbers; Python's own sees to that itself."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        with contextlib.suppress(Exception):
            numpy_random.seed()


def _renew_multiprocessing() -> None:
    """Connections to managers (Parsl's monitoring has one) must not be shared with the worker.

    Nor the tracker of shared memory: one of the runner's own removes what the runner leaves.
    """
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        with contextlib.suppress(Exception):
            util._finalizer_registry.clear()
            util._run_after_forkers()
    tracker = getattr(
        sys.modules.get("multiprocessing.resource_tracker"), "_resource_tracker", None
    )
    if tracker is not None:
        tracker._fd = tracker._pid = None


def _end_all(runner: int = 0, grace_s: float = 0.0) -> tuple[bool, int]:
    """Kill and wait until no child is left: whether the runner ended by itself, and its status."""
    began = time.monotonic()
    by_itself, status = False, 0
    pause_s = 0.001
    while (passed_s := time.monotonic() - began) < PATIENCE_S:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == runner:
                    by_itself, status = passed_s <= grace_s, ended[1]
        except ChildProcessError:
            break
        left = probe.descendants(os.getpid())
        if passed_s < grace_s:
            left = [pid for pid in left if pid != runner]
        if passed_s < TRACKERS_GRACE_S:
            left = [pid for pid in left if not is_tracker(pid)]
        probe.kill(left)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.05)
    return by_itself, status


def is_tracker(pid: int) -> bool:
    """Whether a process does nothing but remove the shared memory of others that end."""
    return b"resource_tracker" in (probe.read(f"/proc/{pid}/cmdline") or b"")
