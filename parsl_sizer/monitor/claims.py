"""Claims on amounts of something, kept in a folder by processes that may die at any time.

The claims are a table in a file, and each is also a file that its process holds locked: a
claim dies with its process, however that ends, and whatever it has forked. Looking and
claiming happen under one lock, so that nothing is ever promised twice. Who holds a claim may
be given more of what is free.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path

from .node import is_short_of_memory

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
"""Who was overtaken by so many for each that holds something is next: else a large claim might
wait for small ones for ever, or for days where they last for hours."""
TOLERANCE = 1e-9
"""Sums of floats are not exact: what is over by less fits."""


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

    def __init__(self, text: bytes) -> None:
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
            amount <= max(0.0, self._left(name, capacity, kind, TOLERANCE))
            for kind, amount in amounts.items()
        )

    def hold(self, name: str, amounts: Amounts) -> None:
        """Have a claim held."""
        self.held[name] = amounts
        self.taken += 1

    def grown(
        self, name: str, capacity: Amounts, kind: str, least: float, most: float
    ) -> float | None:
        """What a claim that is held has of a kind from now on; None if the least does not fit."""
        amount = min(most, self._left(name, capacity, kind))
        if name not in self.held or amount < least:
            return None
        self.held[name] = {**self.held[name], kind: amount}
        return amount

    def _left(self, name: str, capacity: Amounts, kind: str, tolerance: float = 0.0) -> float:
        """What there is that nobody else holds; what is not limited never ends."""
        others = (held for holder, held in self.held.items() if holder != name)
        taken = sum(held.get(kind, 0.0) for held in others)
        return capacity.get(kind, math.inf) * (1 + tolerance) - taken

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

    def take(self, capacity: Amounts, amounts: Amounts) -> Claim:
        """Claim for what runs already, whether there is room or not.

        Raises `OSError` if others keep the table for longer than who watches a task may wait.
        """
        claim: Claim | None = None
        try:
            with self.changing(LOCKED_S) as table:
                claim = Claim(self, capacity)
                table.hold(claim.name, amounts)
        except BaseException:
            if claim is not None:
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
            table.hold(claim.name, amounts)
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
            # Before every call: a Path takes twice as long. The first table is half written.
            with contextlib.suppress(FileNotFoundError, ValueError), FileIO(path) as file:
                return Table(file.readall())
        return Table(b"")

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
