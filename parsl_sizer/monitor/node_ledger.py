"""What is claimed on this node, by all workers of a run together.

The claims are a table in a file, and each is also a file that its process holds locked: a
claim dies with its process, however that ends. Looking and claiming happen under one lock,
so that nothing is ever promised twice. Who holds a claim may be given more of what is free.

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
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import probe
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
WORKERS = ("work_queue_worker", "vine_worker")
"""Programs that pack tasks themselves; a host may have several."""


class Held:
    """What a call holds on its node; without a `claim` nothing is counted there."""

    def __init__(
        self, claim: Claim | None = None, waited_s: float = 0.0, *, may_grow: bool = False
    ) -> None:
        self.claim = claim
        self.waited_s = waited_s
        """How long there was no room for it."""
        self._may_grow = may_grow

    def grows_to(self, kind: str, amount: float) -> bool:
        """Have so much instead, if that is allowed and there is room for it now."""
        if self.claim is None or not self._may_grow:
            return False
        with contextlib.suppress(OSError):
            return self.claim.grows_to(kind, amount)
        return False


UNCLAIMED = Held()


@contextlib.contextmanager
def claimed(claim: dict[str, Any] | None) -> Iterator[Held]:
    """Hold a claim on this node, which may have to be waited for.

    Raises `Full` if that takes longer than the claim says.
    Where no ledger can be kept (no folder that can be written to) the task runs all the same.
    """
    began = time.monotonic()
    made: Claim | None = None
    if claim:
        with contextlib.suppress(OSError):
            # Of disk, what is free has what tasks wrote taken off already.
            capacity = {name: amount for name, amount in facts().items() if name != "disk"}
            capacity.update(claim["capacity"])
            place = folder_of_worker if claim.get("of_worker") else folder
            ledger = Ledger(place(str(claim["ledger"])))
            made = ledger.wait(capacity, claim["amounts"], claim.get("patience_s", math.inf))
    waited_s = time.monotonic() - began if claim else 0.0
    try:
        yield Held(made, waited_s, may_grow=bool(claim and claim.get("may_grow")))
    finally:
        if made is not None:
            made.release()


@lru_cache(maxsize=8)
def folder(name: str) -> Path:
    """Where the claims of one ledger on this host are: a place that nobody else can write to."""
    host = socket.gethostname()
    above = _ours(Path(tempfile.gettempdir(), f"parsl_sizer-ledger-{os.getuid()}-{host}"))
    path = above / _safe(name)
    path.mkdir(mode=0o700, exist_ok=True)
    _sweep(above)
    return path


def folder_of_worker(name: str) -> Path:
    """Where the claims on one worker are: in its own folder, which goes when it goes."""
    worker = probe.ancestor(WORKERS)
    if worker is None:
        raise FileNotFoundError("this process does not come out of a worker that is known")
    home = Path(f"/proc/{worker[0]}/cwd").readlink()
    return _ours(home / f"parsl_sizer-ledger-{_safe(name)}")


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


class Claim:
    """A place in a ledger, wanted or held, for as long as its process lives."""

    def __init__(self, ledger: Ledger, capacity: Amounts) -> None:
        self._ledger = ledger
        self._capacity = capacity
        self.name = f"claim-{os.getpid()}-{os.urandom(6).hex()}"
        self.path = ledger.path / self.name
        # It is locked before it can be seen: what is seen unlocked is a dead one's.
        new = self.path.with_name(f"new-{self.name}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(new, flags, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        new.rename(self.path)

    def grows_to(self, kind: str, amount: float) -> bool:
        """Hold so much of a kind instead, if there is room for that now.

        Who waits for a place is not asked: what runs would have to be stopped.
        """
        for is_last_try in (False, True):
            with self._ledger.changing() as table:
                if table.grows_to(self.name, self._capacity, kind, amount):
                    return True
            if not is_last_try:
                self._ledger.bury()
        return False

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
        return not self.held or self._fits(name, capacity, amounts)

    def grows_to(self, name: str, capacity: Amounts, kind: str, amount: float) -> bool:
        """Have a claim that is held hold so much of a kind, if that fits beside the others."""
        if name not in self.held or not self._fits(name, capacity, {kind: amount}):
            return False
        self.held[name] = {**self.held[name], kind: amount}
        return True

    def _fits(self, name: str, capacity: Amounts, amounts: Amounts) -> bool:
        """Whether there is so much that nobody else holds."""
        for kind, amount in amounts.items():
            most = capacity.get(kind)
            if most is not None and amount > 0:
                others = (held for holder, held in self.held.items() if holder != name)
                taken = sum(held.get(kind, 0.0) for held in others)
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
        claim = Claim(self, capacity)
        try:
            began, looked = time.monotonic(), -math.inf
            pause_s = SHORTEST_S
            while not self._takes(claim, capacity, amounts):
                now = time.monotonic()
                if now - looked > DEAD_EVERY_S:
                    looked = now
                    self.bury()
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

    def bury(self) -> None:
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
