"""What is claimed on this node, by all workers of a run together.

The claims are a table in a file, and each is also a file that its process holds locked: a
claim dies with its process, however that ends, and whatever it has forked. Looking and
claiming happen under one lock, so that nothing is ever promised twice. Who holds a claim may
be given more of what is free.

Where an engine packs tasks itself, each of its workers is a node.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import probe
from .node import facts, is_short_of_memory

Amounts = dict[str, float]

SHORTEST_S, LONGEST_S = 0.02, 0.05
"""Who waits looks so often at first..."""
PAUSE_SHARE, PAUSE_S = 0.01, 1.0
"""...and later once in this share of the time, but at least so often."""
DEAD_EVERY_S = 0.5
"""Where there is no room the claims of the dead are looked for so often..."""
DEAD_SHARE = 0.02
"""...or, by who has waited long, once in this share of that time."""
LOCKED_S = 0.1
"""Who watches a task does not wait for the ledger longer than this."""
ROUNDS = 2
"""Who was overtaken by so many for each that is there is next: else a large claim might wait for
small ones for ever. Those that run for hours do not take longer to be overtaken by."""
TOLERANCE = 1e-9
"""Sums of floats are not exact: what is over by less fits."""
OLD_S = 86_400.0


class Place:
    """What a call holds on its node; without a `claim` nothing is counted there.

    Its `growth` is None, "fitting" if it may have more where there is room, or "any" if it
    has what it takes, since nobody stops it.
    """

    def __init__(
        self, claim: Claim | None = None, waited_s: float = 0.0, growth: str | None = None
    ) -> None:
        self.claim = claim
        self.waited_s = waited_s
        """How long there was no room for it."""
        self.growth = None if claim is None else growth

    def free(self, kind: str) -> float:
        """So much more it might have now, as far as that can be read."""
        if self.claim is None or self.growth is None:
            return 0.0
        with contextlib.suppress(OSError):
            return self.claim.free(kind)
        return 0.0

    def grown(self, kind: str, least: float, most: float) -> float | None:
        """What it has from now on, of what is asked for; None if it may not have the least.

        Nor may it if the ledger cannot be had at once.
        """
        if self.claim is None or self.growth is None:
            return None
        with contextlib.suppress(OSError):
            return self.claim.grown(kind, least, most, must_fit=self.growth == "fitting")
        return None


UNCLAIMED = Place()


@contextlib.contextmanager
def claimed(claim: dict[str, Any] | None) -> Iterator[Place]:
    """Hold a claim on this node, which may have to be waited for.

    Raises `Full` if that takes longer than the claim says, or nobody wants it any more.
    Where no ledger can be kept (no folder that can be written to) the task runs all the same.
    """
    if not claim:
        yield UNCLAIMED
        return
    began = time.monotonic()
    made: Claim | None = None
    with contextlib.suppress(OSError):
        made = (_claim_on_worker if claim.get("of_worker") else _claim_on_host)(claim)
    try:
        yield Place(made, time.monotonic() - began, claim.get("growth"))
    finally:
        if made is not None:
            made.release()


def _claim_on_host(claim: dict[str, Any]) -> Claim:
    # Of disk, what is free has what tasks wrote taken off already.
    capacity = {name: amount for name, amount in facts().items() if name != "disk"}
    capacity.update(claim["capacity"])
    name, worker = str(claim["ledger"]), probe.patron()
    try:
        return _waited_for(claim, capacity, folder(name), worker)
    except FileNotFoundError:  # somebody has tidied up
        folder.cache_clear()
        return _waited_for(claim, capacity, folder(name), worker)


def _claim_on_worker(claim: dict[str, Any]) -> Claim:
    """A claim that ends with its worker, on what that has promised."""
    worker = probe.packer()
    if worker is None:
        raise FileNotFoundError("this process does not come out of a worker that is known")
    pid = worker[0]
    capacity: Amounts = dict(claim["capacity"])
    promised = promised_memory(probe.read(f"/proc/{pid}/cmdline") or b"")
    if "memory" in capacity and promised is not None:
        capacity["memory"] = min(capacity["memory"], promised)
    # The folder of a worker goes when it goes.
    home = Path(f"/proc/{pid}/cwd").readlink()
    path = _ours(home / f"parsl_sizer-ledger-{_safe(str(claim['ledger']))}-{pid}")
    return _waited_for(claim, capacity, path, worker)


def _waited_for(
    claim: dict[str, Any], capacity: Amounts, path: Path, worker: probe.Known | None
) -> Claim:
    """The claim, made in this folder, unless its worker dies meanwhile."""
    return Ledger(path).wait(
        capacity,
        claim["amounts"],
        claim.get("patience_s", math.inf),
        is_wanted=lambda: worker is None or probe.is_same(*worker),
    )


def promised_memory(command: bytes) -> float | None:
    """What a worker's command line says of its memory, which it has in MB.

    >>> promised_memory(b"work_queue_worker\\0--memory=12000\\0host")
    12000000000.0
    """
    words = command.split(b"\0")
    for word, following in zip(words, [*words[1:], b""], strict=True):
        name, _, amount = word.partition(b"=")
        if name == b"--memory" and (amount or following).isdigit():
            return int(amount or following) * 1e6
    return None


@lru_cache(maxsize=8)
def folder(name: str) -> Path:
    """Where the claims of one ledger on this host are: a place that nobody else can write to."""
    host = socket.gethostname()
    above = _ours(Path(tempfile.gettempdir(), f"parsl_sizer-ledger-{os.getuid()}-{host}"))
    path = above / _safe(name)
    path.mkdir(mode=0o700, exist_ok=True)
    _sweep(above)
    return path


def _safe(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)


def _ours(path: Path) -> Path:
    """The folder, made if need be, if nobody else can write to it."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{path} is not a folder of ours alone")
    return path


def _sweep(above: Path) -> None:
    """Remove the ledgers of runs that are long over."""
    with contextlib.suppress(OSError):
        for path in above.iterdir():
            if time.time() - path.stat().st_mtime > OLD_S and not Ledger(path).living():
                shutil.rmtree(path, ignore_errors=True)


class Full(Exception):
    """There is no room on this node, and there may be on another."""


_own: set[int] = set()
"""Open files whose locks say that this very process lives, or is at work."""


def _disown() -> None:
    """In a fork: it would hold the locks of its parent after that is gone."""
    while _own:
        with contextlib.suppress(OSError):
            os.close(_own.pop())


os.register_at_fork(after_in_child=_disown)


def _opened(path: Path, flags: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)
    _own.add(descriptor)
    return descriptor


def _closed(descriptor: int) -> None:
    if descriptor in _own:  # else it is the parent's
        _own.discard(descriptor)
        os.close(descriptor)


class Claim:
    """A place in a ledger, wanted or held, for as long as its process lives."""

    def __init__(self, ledger: Ledger, capacity: Amounts) -> None:
        self._ledger = ledger
        self._capacity = capacity
        self._pid = os.getpid()
        self.name = f"claim-{self._pid}-{os.urandom(6).hex()}"
        self.path = ledger.path / self.name
        # It is locked before it can be seen: what is seen unlocked is a dead one's.
        new = self.path.with_name(f"new-{self.name}")
        self._descriptor = _opened(new, os.O_EXCL)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            new.rename(self.path)
        except BaseException:  # some file systems have no locks
            _closed(self._descriptor)
            with contextlib.suppress(OSError):
                new.unlink()
            raise

    def free(self, kind: str) -> float:
        """What nobody holds of a kind, as far as that is known."""
        held = sum(amounts.get(kind, 0.0) for amounts in self._ledger.table().held.values())
        return max(0.0, self._capacity.get(kind, 0.0) - held)

    def grown(self, kind: str, least: float, most: float, *, must_fit: bool = True) -> float | None:
        """What it holds of a kind from now on, up to the most; None if the least does not fit.

        Who waits for a place is not asked: what runs would have to be stopped. But others than
        our tasks use the machine, too: once it has hardly any memory left, nobody grows.
        """
        if must_fit and is_short_of_memory():
            return None
        capacity = self._capacity if must_fit else {}
        with self._ledger.changing(LOCKED_S) as table:
            amount = table.grown(self.name, capacity, kind, least, most)
        if amount is None and self._ledger.bury(LOCKED_S):
            with self._ledger.changing(LOCKED_S) as table:
                amount = table.grown(self.name, capacity, kind, least, most)
        return amount

    def release(self) -> None:
        """Give the place back. What cannot be written is taken back with the lock's end."""
        if self._pid != os.getpid():
            return
        with contextlib.suppress(OSError), self._ledger.changing() as table:
            table.forget(self.name)
        with contextlib.suppress(OSError):
            self.path.unlink()
        _closed(self._descriptor)


class Table:
    """Who holds what, and who is next."""

    def __init__(self, text: str) -> None:
        known = json.loads(text) if text else {}
        self.held: dict[str, Amounts] = known.get("held", {})
        self.next: str | None = known.get("next")
        self.taken: int = known.get("taken", 0)
        """How many there have been."""

    def __str__(self) -> str:
        return json.dumps({"held": self.held, "next": self.next, "taken": self.taken})

    def has_room(self, name: str, capacity: Amounts, amounts: Amounts) -> bool:
        """Whether a claim fits beside those that are held; one that never fits is let in alone."""
        if self.next not in (None, name):
            return False
        return not self.held or all(
            amount <= max(0.0, self._left(name, capacity, kind)) for kind, amount in amounts.items()
        )

    def grown(
        self, name: str, capacity: Amounts, kind: str, least: float, most: float
    ) -> float | None:
        """What a claim that is held has of a kind from now on; None if the least does not fit."""
        amount = min(most, self._left(name, capacity, kind))
        if name not in self.held or amount < least:
            return None
        self.held[name] = {**self.held[name], kind: amount}
        return amount

    def _left(self, name: str, capacity: Amounts, kind: str) -> float:
        """What there is that nobody else holds; what is not limited never ends."""
        others = (held for holder, held in self.held.items() if holder != name)
        taken = sum(held.get(kind, 0.0) for held in others)
        return capacity.get(kind, math.inf) * (1 + TOLERANCE) - taken

    def names(self) -> set[str]:
        """All claims that count."""
        return {*self.held, *([self.next] if self.next else ())}

    def forget(self, name: str) -> None:
        """Have a claim neither held nor next."""
        self.held.pop(name, None)
        if self.next == name:
            self.next = None


class Ledger:
    """The claims in one folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._table, self._new = path / "table", path / "table.new"

    def wait(
        self,
        capacity: Amounts,
        amounts: Amounts,
        patience_s: float = math.inf,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Claim:
        """Claim as soon as there is room; raises `Full` if there is none for too long."""
        claim = Claim(self, capacity)
        try:
            began, looked = time.monotonic(), -math.inf
            taken, pause_s = self.table().taken, SHORTEST_S
            while not self._takes(claim, capacity, amounts):
                now = time.monotonic()
                if now - looked > max(DEAD_EVERY_S, DEAD_SHARE * (now - began)):
                    looked = now
                    self.bury()
                    if not is_wanted():
                        raise Full
                if now - began > patience_s:
                    raise Full
                self._queue(claim, taken)
                time.sleep(pause_s)
                longest_s = max(LONGEST_S, min(PAUSE_SHARE * (now - began), PAUSE_S))
                pause_s = min(1.2 * pause_s, longest_s)
        except BaseException:
            claim.release()
            raise
        return claim

    def _takes(self, claim: Claim, capacity: Amounts, amounts: Amounts) -> bool:
        # A look without the lock is cheap, and right if it says no.
        if not self.table().has_room(claim.name, capacity, amounts):
            return False
        with self.changing() as table:
            if not table.has_room(claim.name, capacity, amounts):
                return False
            table.forget(claim.name)
            table.held[claim.name] = amounts
            table.taken += 1
        return True

    def _queue(self, claim: Claim, taken: int) -> None:
        """Have it next, if nobody is, and enough were taken since it came."""
        table = self.table()
        if table.next is None and table.taken - taken > ROUNDS * len(table.held):
            with self.changing() as table:
                table.next = table.next or claim.name

    def bury(self, patience_s: float = math.inf) -> bool:
        """Take back what the dead have claimed, if anything."""
        dead = {name for name in self.table().names() if not _is_locked(self.path / name)}
        if dead:  # a name is nobody else's ever again
            with self.changing(patience_s) as table:
                for name in dead:
                    table.forget(name)
        return bool(dead)

    def living(self) -> set[str]:
        """The claims, wanted or held, whose processes live; the files of others are removed."""
        return {path.name for path in self.path.glob("claim-*") if _is_locked(path)}

    def table(self) -> Table:
        """The table as it is now."""
        for path in (self._table, self._new, self._table):  # it may be on its way
            with contextlib.suppress(FileNotFoundError, ValueError):  # the first is half written
                return Table(path.read_text())
        return Table("")

    @contextlib.contextmanager
    def changing(self, patience_s: float = math.inf) -> Iterator[Table]:
        """The table, to be changed by nobody else meanwhile, and written if that goes well.

        Raises `OSError` if others keep it for longer than this.
        """
        lock = _opened(self.path / "lock", 0)
        try:
            _lock(lock, patience_s)
            if not self._table.exists():  # it is the first, or somebody died on the way
                with contextlib.suppress(FileNotFoundError):
                    self._new.rename(self._table)
            table = self.table()
            before = str(table)
            yield table
            if str(table) != before:
                self._write(str(table))
        finally:
            _closed(lock)

    def _write(self, text: str) -> None:
        """Under the lock. Somewhere there is a whole table at any time."""
        self._new.write_text(text)
        # To replace a file is to wait for the disk, on some file systems.
        self._table.unlink(missing_ok=True)
        self._new.rename(self._table)


def _lock(descriptor: int, patience_s: float) -> None:
    if patience_s == math.inf:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.001)
        else:
            return


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:  # that says nothing about its process
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(descriptor)
