"""A call in the process that was made for it: what it gives back, and what it used itself."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from typing import Any

from . import probe, wire
from .account import Account, Tidiness
from .sandbox import working_folder

Call = tuple[Callable[..., Any], Any, Any]

PATIENCE_S = 0.5
"""What is left of a call and comes back when it is killed: then the runner goes as well."""


def serve(sock: socket.socket) -> None:
    """The life of a warm runner: call after call, until the socket is closed."""
    tidiness = Tidiness()
    wire.send(sock, wire.READY, {"ready": tidiness.fresh})
    for number in count(1):
        frame = wire.receive(sock, number)
        if frame is None:
            return
        order, buffer = frame
        head, payload = perform(order, buffer, None, tidiness)
        wire.send(sock, number, head, payload)
        if "ready" not in head:
            del frame, buffer, payload
            wire.send(sock, wire.READY, {"ready": tidiness.restore()})


def perform(
    order: dict[str, Any], buffer: bytes, given: Call | None, tidiness: Tidiness
) -> tuple[dict[str, Any], bytes]:
    """Make one call and pack what it returned or raised; the head says what it took."""
    account = Account(tidiness)
    payload: bytes | None = None
    tidiness.use_folder(order.get("tmp"))
    with Surroundings(order.get("env"), None, tidiness.home):
        try:
            loads, dumps = resolve(order["codec"][0]), resolve(order["codec"][1])
            func, args, kwargs = given or loads(buffer)
            result = func(*args, **kwargs)
            end_if_forked(tidiness.pid, result, with_atexit=True)
            is_plain = wire.is_plain(result)
            ending, payload = "returned", None if is_plain else dumps(result)
        except BaseException as error:  # SystemExit too: the task ends, not the runner
            end_if_forked(tidiness.pid, error=error, with_atexit=True)
            is_plain, ending = False, "raised"
            payload = packed_error(order["codec"], error)
        flush()
    head = account.closed()
    head["ending"] = ending
    if is_plain:
        head["result"] = result
    head["has_payload"] = payload is not None
    if os.getppid() != tidiness.keeper:  # it died: others' processes have the same parent now
        os._exit(1)
    if has_left_processes(tidiness.keeper) and not order.get("keep_caches"):
        head["left"], head["spent"], head["ended"] = _end_children(tidiness.keeper)
    return head, payload or b""


def flush() -> None:
    """Have what was printed appear before the answer does."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # it is closed, or its disk is full
            stream.flush()


def end_if_forked(
    pid: int,
    result: object = None,
    error: BaseException | None = None,
    *,
    with_atexit: bool = False,
) -> None:
    """End this process as Python ends a program, unless it is `pid`, which began the call.

    The child of a task that forks may leave the task's function as its parent does. It must not
    answer, nor clean up: folder, children and reservation are its parent's. So what is registered
    with atexit runs only in a runner, where it is tasks' own: a worker's would remove its files.
    """
    if os.getpid() == pid:
        return
    status = 1
    wrapper = getattr(sys.modules.get("parsl.app.errors"), "RemoteExceptionWrapper", None)
    if wrapper is not None and isinstance(result, wrapper):
        error = result.e_value  # Parsl's apps return what they raise
    try:
        status = _print_error(error)
        if with_atexit:
            atexit._run_exitfuncs()
        flush()
    finally:
        os._exit(status)


def _print_error(error: BaseException | None) -> int:
    """Print an exception that ends a process, as Python does; return the exit status."""
    if error is None:
        return 0
    status = 1
    if not isinstance(error, SystemExit):
        sys.excepthook(type(error), error, error.__traceback__)
    elif error.code is None or isinstance(error.code, int):
        status = (error.code or 0) & 0xFF
    else:
        print(error.code, file=sys.stderr)
    traceback.clear_frames(error.__traceback__)  # what open files still hold is written
    return status


def packed_error(codec: tuple[str, str, str], error: BaseException) -> bytes | None:
    """An exception as the engine's codec packs it, or why it cannot be packed."""
    dumps, wrap = resolve(codec[1]), resolve(codec[2])
    try:
        return bytes(dumps(wrap(type(error), error, error.__traceback__)))
    except BaseException as reason:
        text = f"The task raised {type(error).__name__}, which cannot be packed: {reason!r}."
    with contextlib.suppress(BaseException):
        return bytes(dumps(wrap(RuntimeError, RuntimeError(text), None)))
    return None


class Surroundings:
    """The environment of one call: variables, folder for temporary files, working folder.

    What a call has changed of them is put back; `home` is where this process belongs.
    """

    def __init__(self, env: dict[str, str] | None, tmp: str | None, home: str | None) -> None:
        self._env = dict(env) if env else {}
        self._tmp = tmp
        self._home = home
        if tmp is not None:
            self._env["TMPDIR"] = tmp

    def __enter__(self) -> None:
        environ = os.environ
        self._before = [(name, environ.get(name)) for name in self._env]
        self._tempdir = tempfile.tempdir
        if self._env:
            environ.update(self._env)
        if self._tmp is not None:
            tempfile.tempdir = self._tmp

    def __exit__(self, *_: object) -> None:
        if self._tmp is not None:
            tempfile.tempdir = self._tempdir
        for name, value in self._before:
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if self._home is not None and working_folder() != self._home:
            with contextlib.suppress(OSError):
                os.chdir(self._home)


def has_left_processes(keeper: int) -> bool:
    """Return whether anything that came out of this runner is left; its keeper adopts orphans."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (ChildProcessError, AttributeError):
        pid = os.getpid()
        return any(child != pid for child in probe.children(keeper) or ())
    return True


def _end_children(keeper: int) -> tuple[int, bool, bool]:
    """Kill what a call left behind, since nobody would be charged for it.

    Gives what it held, whether this runner is no longer fit for use because what is killed
    comes back, and whether any of it was still running.
    """
    until = time.monotonic() + PATIENCE_S
    left = _left_processes(keeper, until)
    has_ended_some = any(probe.is_alive(pid) for pid in left)
    parts = [probe.shares(pid) for pid in left]
    held = sum(part.of_anonymous + part.of_shared for part in parts if part is not None)
    while left and time.monotonic() < until:
        probe.kill(left)
        time.sleep(0.001)
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        left = _left_processes(keeper, until)
    return held, bool(left), has_ended_some


def _left_processes(keeper: int, until: float) -> list[int]:
    """Return what came out of this runner, without what the keeper is about to wait for.

    What has just ended may have started another process behind the look that met it.
    """
    pid, spared = os.getpid(), _helpers()
    awaited = {(state, keeper) for state in "ZX"}
    ended: set[int] = set()
    while True:
        found = {one: probe.stat(one) for one in probe.descendants(pid, adopter=keeper)}
        left = {
            one for one, stat in found.items() if stat and (stat.state, stat.ppid) not in awaited
        }
        if found.keys() - left <= ended or time.monotonic() >= until:
            return [one for one in left if one not in spared]
        ended |= found.keys() - left


def _helpers() -> set[int]:
    """Processes of multiprocessing that serve all calls; it does not get over their death."""
    found = set()
    for name, value, attribute in (
        ("multiprocessing.resource_tracker", "_resource_tracker", "_pid"),
        ("multiprocessing.forkserver", "_forkserver", "_forkserver_pid"),
        ("joblib.externals.loky.backend.resource_tracker", "_resource_tracker", "_pid"),
    ):
        pid = getattr(getattr(sys.modules.get(name), value, None), attribute, None)
        if isinstance(pid, int):
            found.add(pid)
    return found


@lru_cache(maxsize=64)
def resolve(name: str) -> Callable[..., Any]:
    """What a dotted name, "module:function", stands for."""
    module, _, attribute = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return found
