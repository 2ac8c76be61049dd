"""Runs calls in a process of their own and watches them from this one, which stays small.

The supervisor never loads the user's code: function, arguments and result cross it as bytes.
"""

from __future__ import annotations

import atexit
import math
import os
import select
import signal
import socket
from collections.abc import Callable
from typing import Any

from . import call, cgroup, node_ledger, outgoing, probe, report, wire
from .account import Leftovers
from .files import Files
from .inline import run_packed_inline
from .keeper import Keeper
from .node import can_be_supervised, facts
from .node_ledger import Place
from .sandbox import Sandbox, used, working_folder
from .watch import Watch

LEFTOVER = 16_000_000
"""A runner is not replaced for less than this that other categories have left in it."""
LEFTOVER_SHARE = 0.1
"""All runners of a node together keep at most this share of its memory for what no task that
runs is charged for, and so no reservation covers."""
READY_S = 30.0
"""A runner that has not tidied up after a call by then is replaced: something in it hangs.

So is one of whose answer a part has come and then nothing for as long: a copy of it that was
forked unnoticed has written to its socket, or outlives it.
"""
BALLAST = 8_000_000
"""A keeper that was forked while more bytes than this were at hand holds them for ever."""
BACKSTOP_FACTOR, BACKSTOP_MORE = 1.5, 1_000_000_000
"""The kernel's limit is so far above the task's that spikes which are forgiven fit below it."""


class Supervisor:
    """One runner at a time, started when it is needed and replaced when it must be.

    `main` is the life of a runner: it says that it is ready, takes orders and answers. Its
    folder for temporary files is private unless the engine gives each task a working folder.
    """

    def __init__(
        self,
        main: Callable[[socket.socket], None] = call.serve,
        *,
        has_own_folder: bool = True,
        ballast: int = 0,
    ) -> None:
        self.ballast = ballast
        self.has_own_folder = has_own_folder
        self.pid = self.fresh = self._calls = 0
        self._sock: socket.socket | None = None
        self._poll = select.poll()
        self._held: int | None = None
        self._left = Leftovers(0)
        self._category: str | None = None
        self._keeps = False
        self._before = self._base = 0  # held when the last call began, and not charged for
        self._sandbox = Sandbox() if has_own_folder else None
        self._patron = probe.patron()
        place = cgroup.place("memory")
        self._group = cgroup.make(place)
        self._witness = self._group or (place and cgroup.Group(place.folder, place.version))
        self._files = Files(self._group)
        self._shared = 0  # mapped by the runner when its last call ended
        self._layers = ("proc", "hwm", *([self._group.layer] if self._group else ()))
        try:
            self._keeper = Keeper(lambda sock: self._live(main, sock), self._clean_up)
        except OSError:
            self._clean_up()
            self._unlock()
            raise

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the runner and the keeper, which removes what they had."""
        self._drop()
        self._keeper.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._sandbox is not None:
            self._sandbox.unlock()

    def is_alive(self) -> bool:
        """Whether calls can still be run: somebody may have killed the keeper."""
        return self._keeper.is_alive()

    def _live(self, main: Callable[[socket.socket], None], sock: socket.socket) -> None:
        """In the runner."""
        self._unlock()
        if self._group is not None:
            self._group.join()
        main(sock)

    def _clean_up(self) -> None:
        """In the keeper, which is there when nobody else is left."""
        if self._sandbox is not None:
            self._sandbox.remove()
        if self._group is not None:
            self._group.remove()

    def run(
        self, order: dict[str, Any], buffer: bytes, isolation: str, place: Place
    ) -> dict[str, Any]:
        """Run one call in the runner that was prepared, and report."""
        sock = self._sock
        assert sock is not None, "a supervisor has to be prepared"
        made = report.blank(isolation, self._layers, place.waited_s)
        made["base"] = self.fresh
        tmp = None if self._sandbox is None else self._sandbox.path
        folder = working_folder() if self._sandbox is None else tmp
        watch = Watch(
            order,
            self.pid,
            keeper=self._keeper.pid,
            fresh=self.fresh,
            base=self._base,
            folder=folder,
            files=self._files,
            patron=self._patron,
            place=place,
            at_growth=lambda amount: self._limit(amount, place),
        )
        self._files.begin(self.pid, self._shared, folder)
        is_sent = self._send(sock, order, tmp, buffer)
        verdict = watch.wait(self._poll, self._note_kills) if is_sent else "died"
        frame = self._receive(sock, made) if verdict == "answered" else None
        if verdict == "broken":
            made["ending"], made["exhausted"] = "stopped", watch.broken
            watch.fill(made)
            self._drop()
            self._files.end()
        elif frame is None:
            watch.fill(made)
            if "reason" not in made:
                self._bury(made)
            self._drop()
            self._files.end()
        else:
            watch.fill_from(made, *frame)
            self._held = frame[0].get("ready")
            self._shared = frame[0]["after"][-1] if "after" in frame[0] else 0
            if frame[0].get("spent"):
                self._drop()
        if self._sandbox is None:
            watch.fill_disk(made, used(folder))
        else:
            has_ended = made["ending"] in ("returned", "raised")
            stays = has_ended and not order.get("clean_files")
            watch.fill_disk(made, self._sandbox.settle(stays=stays))
        return made

    def prepared(self, order: dict[str, Any], place: Place) -> Supervisor:
        """This supervisor, with a runner that is fit for a call.

        Raises `OSError` if there is none to be had.
        """
        try:
            self._prepare(order, place)
        except BaseException:
            self.close()
            raise
        return self

    def _prepare(self, order: dict[str, Any], place: Place) -> None:
        """Have a runner that the node can bear what is left in, and limit it."""
        limit = (order.get("limits") or {}).get("memory") if order.get("enforce") else None
        held = self._held_by_runner()
        category, keeps = order.get("category"), bool(order.get("keep_caches"))
        if held is not None:
            self._left.note(self._category, held - self._before, adds_up=self._keeps)
            own = held - self._left.base(category, held)
            others = held - self.fresh - own
            is_borne = others <= LEFTOVER or keeps
            if own > (math.inf if limit is None else limit):
                held = None  # it would be stopped for what a fresh runner does not hold
            elif not is_borne and others > _bearable(limit, place):
                held = None
        if held is None:
            self._drop()
            held = self._start()
        self._category, self._keeps, self._before = category, keeps, held
        self._base = self._left.base(category, held)
        self._limit(limit, place)

    def _held_by_runner(self) -> int | None:
        """What the runner holds, if there is one and it is ready."""
        if self._sock is None:
            return None
        return self._await_ready(self._sock) if self._held is None else self._held

    def _start(self) -> int:
        """Start a runner; gives what it holds."""
        self.pid, self._sock = self._keeper.start()
        wire.limit_wait(self._sock, READY_S)
        self._calls = 0
        self._poll = select.poll()
        self._poll.register(self._sock, select.POLLIN)
        fresh = self._await_ready(self._sock)
        if fresh is None:
            raise ConnectionResetError("The runner of this worker died before it was ready.")
        self.fresh = self._held = fresh
        self._shared = 0
        self._left = Leftovers(fresh)
        return fresh

    def _limit(self, amount: float | None, place: Place) -> None:
        """Have the kernel stop the call above its limit, and above what it may grow to at once."""
        if self._group is not None:
            most = None if amount is None else (amount + place.free("memory")) * BACKSTOP_FACTOR
            earlier = self._base - self.fresh + self._files.before
            self._group.limit(None if most is None else int(most + earlier + BACKSTOP_MORE))

    def _await_ready(self, sock: socket.socket) -> int | None:
        """What the runner holds when it is ready for a call; None if it died, or hangs."""
        if not self._poll.poll(READY_S * 1000):
            return None
        try:
            frame = wire.receive(sock, wire.READY)
        except wire.WrongFrame:
            return None
        return None if frame is None else int(frame[0]["ready"])

    def _send(
        self, sock: socket.socket, order: dict[str, Any], tmp: str | None, buffer: bytes
    ) -> bool:
        needed = {name: order.get(name) for name in ("codec", "env", "keep_caches")}
        needed["tmp"] = tmp
        self._calls += 1
        try:
            wire.send(sock, self._calls, needed, buffer)
        except OSError:
            return False
        return True

    def _receive(
        self, sock: socket.socket, made: dict[str, Any]
    ) -> tuple[dict[str, Any], bytes] | None:
        """Return the answer; None if the runner died, or sent something else: the `reason`."""
        try:
            return wire.receive(sock, self._calls)
        except wire.WrongFrame as error:
            made["reason"] = str(error)
            return None

    def _note_kills(self) -> None:
        """Where the group is not ours alone, only what is killed from now on may be our task."""
        if self._witness is not None and self._group is None:
            self._witness.has_killed()

    def _bury(self, made: dict[str, Any]) -> None:
        end = self._keeper.reap()
        made["signal"], made["exit_code"] = end.signal, end.exit_code
        has_killed = self._witness is not None and self._witness.has_killed()
        if has_killed and end.signal == signal.SIGKILL:
            made["out_of_memory"], made["exhausted"] = True, ["memory"]

    def _drop(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None
            self._keeper.kill()


def _bearable(limit: float | None, place: Place) -> float:
    """So much that others have left in a runner may stay in it while a call runs."""
    here = facts()
    per_core = here.get("memory", 0.0) / max(1.0, here.get("cores", 1.0))
    room = math.inf if limit is None else limit + place.free("memory")
    return min(room, LEFTOVER_SHARE * per_core)


_idle: list[Supervisor] = []
_owner = 0


def run_packed(order: dict[str, Any], buffer: bytes) -> dict[str, Any]:
    """Run what an engine's codec has packed in a warm runner of this process."""
    outgoing.wait()
    if order.get("isolation") == "inline" or not can_be_supervised():
        return run_packed_inline(order, buffer)
    with node_ledger.claimed(order.get("claim")) as place:
        return _run(order, buffer, place)


def _run(order: dict[str, Any], buffer: bytes, place: Place) -> dict[str, Any]:
    try:
        supervisor = _take(order, len(buffer)).prepared(order, place)
    except OSError:  # no process, no descriptor left: better unprotected than not at all
        left = place.claim_without(order.get("claim"))
        return run_packed_inline({**order, "claim": left}, buffer)
    try:
        made = supervisor.run(order, buffer, "runner", place)
    except BaseException:
        supervisor.close()
        raise
    _idle.append(supervisor)
    return made


def close() -> None:
    """End the runners of this process that have nothing to do."""
    while _idle and _owner == os.getpid():
        _idle.pop().close()


atexit.register(close)


def _take(order: dict[str, Any], size: int) -> Supervisor:
    """A supervisor that nobody uses; each thread that runs calls needs its own."""
    global _owner
    if _owner != os.getpid():  # this is a fork: those are its parent's
        _owner = os.getpid()
        _idle.clear()
    has_own_folder = order.get("sandbox") != "cwd"
    while _idle:
        found = _idle.pop()
        is_light = found.ballast <= max(BALLAST, 2 * size)
        if is_light and found.has_own_folder == has_own_folder and found.is_alive():
            return found
        found.close()
    return Supervisor(has_own_folder=has_own_folder, ballast=size)
