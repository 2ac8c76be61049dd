"""What is claimed on this node, by all workers of a run together.

The claims are a table in a file, and each is also a file that its process holds locked: a
claim dies with its process, however that ends. Looking and claiming happen under one lock,
so that nothing is ever promised twice.
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
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from .node import facts

Amounts = dict[str, float]

SHORTEST_S, LONGEST_S = 0.02, 0.05
DEAD_EVERY_S = 0.5
"""Where there is no room the claims of the dead are looked for so often."""
LONG_S = 2.0
"""Who has waited so long is next: else a large claim might wait for small ones for ever."""
TOLERANCE = 1e-9
"""Sums of floats are not exact: what is over by less fits."""
OLD_S = 86_400.0


@contextlib.contextmanager
def claimed(claim: dict[str, Any] | None) -> Iterator[float]:
    """Hold a claim on this node; gives the seconds that it had to be waited for.

    Raises `Full` if it would have to be waited for longer than the claim says.
    Where no ledger can be kept (no folder that can be written to) the task runs all the same.
    """
    began = time.monotonic()
    held: Claim | None = None
    if claim:
        with contextlib.suppress(OSError):
            # Of disk, what is free has what tasks wrote taken off already.
            capacity = {name: amount for name, amount in facts().items() if name != "disk"}
            capacity.update(claim["capacity"])
            ledger = Ledger(folder(str(claim["ledger"])))
            held = ledger.wait(capacity, claim["amounts"], claim.get("patience_s", math.inf))
    try:
        yield time.monotonic() - began if claim else 0.0
    finally:
        if held is not None:
            held.release()


@lru_cache(maxsize=8)
def folder(name: str) -> Path:
    """Where the claims of one ledger on this host are: a place that nobody else can write to."""
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
    user, host = os.getuid(), socket.gethostname()
    above = Path(tempfile.gettempdir(), f"parsl_sizer-ledger-{user}-{host}")
    with contextlib.suppress(FileExistsError):
        above.mkdir(mode=0o700)
    found = above.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user or found.st_mode & 0o077:
        raise PermissionError(f"{above} is not a folder of ours alone")
    path = above / safe
    path.mkdir(mode=0o700, exist_ok=True)
    _sweep(above)
    return path


def _sweep(above: Path) -> None:
    """Remove the ledgers of runs that are long over."""
    with contextlib.suppress(OSError):
        for path in above.iterdir():
            if time.time() - path.stat().st_mtime > OLD_S and not Ledger(path).living():
                shutil.rmtree(path, ignore_errors=True)


class Full(Exception):
    """There is no room on this node, and there may be on another."""


class Claim:
    """A place in a ledger, wanted or held, for as long as its process lives."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.name = f"claim-{os.getpid()}-{os.urandom(6).hex()}"
        self.path = ledger.path / self.name
        # It is locked before it can be seen: what is seen unlocked is a dead one's.
        new = self.path.with_name(f"new-{self.name}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(new, flags, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        new.rename(self.path)

    def release(self) -> None:
        """Give the place back. What cannot be written is taken back with the lock's end."""
        with contextlib.suppress(OSError), self._ledger.changing() as table:
            table.forget(self.name)
        with contextlib.suppress(OSError):
            self.path.unlink()
        os.close(self._descriptor)


class Table:
    """Who holds what, and who is next."""

    def __init__(self, text: str) -> None:
        known = json.loads(text) if text else {}
        self.held: dict[str, Amounts] = known.get("held", {})
        self.next: str | None = known.get("next")

    def __str__(self) -> str:
        return json.dumps({"held": self.held, "next": self.next})

    def has_room(self, name: str, capacity: Amounts, amounts: Amounts) -> bool:
        """Whether a claim fits beside those that are held; one that never fits is let in alone."""
        if self.next not in (None, name):
            return False
        if not self.held:
            return True
        for kind, amount in amounts.items():
            most = capacity.get(kind)
            if most is not None and amount > 0:
                taken = sum(claim.get(kind, 0.0) for claim in self.held.values())
                if taken + amount > most * (1 + TOLERANCE):
                    return False
        return True

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
        self._table = path / "table"

    def wait(self, capacity: Amounts, amounts: Amounts, patience_s: float = math.inf) -> Claim:
        """Claim as soon as there is room; raises `Full` if there is none for too long."""
        claim = Claim(self)
        try:
            began, looked = time.monotonic(), -math.inf
            pause_s = SHORTEST_S
            while not self._takes(claim, capacity, amounts):
                now = time.monotonic()
                if now - looked > DEAD_EVERY_S:
                    looked = now
                    self._bury()
                if now - began > patience_s:
                    raise Full
                if now - began > LONG_S:
                    self._queue(claim)
                time.sleep(pause_s)
                pause_s = min(1.2 * pause_s, LONGEST_S)
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
        return True

    def _queue(self, claim: Claim) -> None:
        if self.table().next is None:
            with self.changing() as table:
                table.next = table.next or claim.name

    def _bury(self) -> None:
        """Take back what the dead have claimed."""
        if self.table().names() - self.living():
            with self.changing() as table:
                for name in table.names() - self.living():
                    table.forget(name)

    def living(self) -> set[str]:
        """The claims, wanted or held, whose processes live; the files of others are removed."""
        return {path.name for path in self.path.glob("claim-*") if _is_locked(path)}

    def table(self) -> Table:
        """The table as it is now."""
        try:
            return Table(self._table.read_text())
        except FileNotFoundError:
            return Table("")

    @contextlib.contextmanager
    def changing(self) -> Iterator[Table]:
        """The table, to be changed by nobody else meanwhile, and written if that goes well."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        lock = os.open(self.path / "lock", flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            table = self.table()
            before = str(table)
            yield table
            if str(table) != before:
                new = self.path / "table.new"
                new.write_text(str(table))
                new.replace(self._table)
        finally:
            os.close(lock)


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(descriptor)
