"""What is claimed on this node, by all workers of a run together, and what a call holds of it.

Where an engine packs tasks itself, each of its workers is a node.
"""

from __future__ import annotations

import contextlib
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
from typing import Any, TypeVar

from . import node, probe, sandbox
from .claims import Amounts, Claim, Ledger

OLD_S = 86_400.0
MACHINE = "machine"
"""The ledger of all runs of a user on a host that have been granted no part of it."""

PROGRAMS = "programs"
"""The folder of the signs of all programs of a user on a host."""

Made = TypeVar("Made")


class Place:
    """What a call holds on its node; without a `claim` nothing is counted there.

    Its `growth` is None, "fitting" if it may have more where there is room, or "any" if it
    has what it takes, since nobody stops it. A call that may begin before it holds anything
    does so with `hold`, which makes the claim `later`.
    """

    def __init__(
        self,
        claim: Claim | None = None,
        waited_s: float = 0.0,
        growth: str | None = None,
        later: Callable[[], Claim] | None = None,
    ) -> None:
        self.claim = claim
        self.waited_s = waited_s
        """How long there was no room for it."""
        self.growth = None if claim is None and later is None else growth
        self._later = later

    def claim_without(self, claim: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return what is left to claim by a call that nobody looks at."""
        return None if claim is None or self._later is None else {**claim, "is_late": False}

    def hold(self) -> bool:
        """Make the claim of a call that has lasted, and return whether that was to be done.

        While others keep the ledger it is to be done again, with the next look at the call.
        """
        if self._later is None:
            return False
        try:
            self.claim = self._later()
        except BlockingIOError:
            return False
        except OSError:
            self.growth = None
        self._later = None
        return True

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


class Presence:
    """A sign to others on this host that a program of this user runs tasks here.

    It is a locked file, as claims are, so that it goes with its process.
    """

    def __init__(self) -> None:
        self._sign = _in_folder(PROGRAMS, lambda ledger: Claim(ledger, {}))

    def end(self) -> None:
        """Take the sign away."""
        self._sign.release()


def is_one_program() -> bool:
    """Return whether just one program of this user runs tasks on this host."""
    path = folder(PROGRAMS)
    count = sum(name.startswith("claim-") for name in os.listdir(path))  # noqa: PTH208
    # Only where there are several is it looked whether some are of programs that were killed.
    return count == 1 or (count > 1 and len(Ledger(path).living()) == 1)


_signs: dict[int, Presence] = {}
"""That of this process, by its number: a fork gives its own."""


def _show_presence() -> None:
    """Give the sign of a program for as long as this process, a worker, lives."""
    if os.getpid() not in _signs:
        _signs[os.getpid()] = Presence()


@contextlib.contextmanager
def claimed(claim: dict[str, Any] | None) -> Iterator[Place]:
    """Hold a claim on this node, which may have to be waited for.

    Raises `Full` if that takes longer than the claim says, or nobody wants it any more.
    Where no ledger can be kept (no folder that can be written to) the task runs all the same.

    To claim takes longer than a task that is over in a moment. So where the submit side has made
    room, and nothing else uses the node, a call begins without: unless others have grown into
    that room, which a look at the ledger says.
    """
    if not claim:
        yield UNCLAIMED
        return
    place = UNCLAIMED
    with contextlib.suppress(OSError):
        place = _place(claim)
    try:
        yield place
    finally:
        if place.claim is not None:
            place.claim.release()


def _place(claim: dict[str, Any]) -> Place:
    growth = claim.get("growth")
    if claim.get("is_late") and is_one_program() and _on_host(claim, _has_room):
        return Place(growth=growth, later=lambda: _on_host(claim, _taken))
    if "is_late" not in claim and ledger_of(claim) == MACHINE:
        # Its program may be on another host, and so gives no sign here: its workers do.
        with contextlib.suppress(OSError):
            _show_presence()
    began = time.monotonic()
    made = _claim_on_worker(claim) if claim.get("of_worker") else _on_host(claim, _waited_for)
    return Place(made, time.monotonic() - began, growth)


def _on_host(claim: dict[str, Any], act: Callable[[dict[str, Any], Amounts, Ledger], Made]) -> Made:
    """Do something about a claim with the ledger of this host."""
    # Of disk, what is free has what tasks wrote taken off already.
    capacity = {name: amount for name, amount in node.facts().items() if name != "disk"}
    capacity.update(claim["capacity"])
    return _in_folder(ledger_of(claim), lambda ledger: act(claim, capacity, ledger))


def _in_folder(name: str, act: Callable[[Ledger], Made]) -> Made:
    """Do something with a ledger of this host."""
    try:
        return act(Ledger(folder(name)))
    except FileNotFoundError:  # somebody has tidied up
        folder.cache_clear()
        return act(Ledger(folder(name)))


def _has_room(claim: dict[str, Any], capacity: Amounts, ledger: Ledger) -> bool:
    return ledger.table().has_room("", capacity, claim["amounts"])


def _taken(claim: dict[str, Any], capacity: Amounts, ledger: Ledger) -> Claim:
    return ledger.take(capacity, claim["amounts"])


def ledger_of(claim: dict[str, Any]) -> str:
    """Return the name of the ledger that a claim on this host belongs to.

    That is the run's own, if the user has said how much memory its tasks may have here. Else it is
    that of the grant, or of the machine, which other runs and executors of the user share.
    """
    run, grant = str(claim["ledger"]), node.grant_here().name
    if not claim.get("shared"):
        return run
    if grant is None:
        return MACHINE
    # A job is one wherever it is seen from; each run counts its blocks from 0.
    return grant if grant.startswith("job ") else f"{run} {grant}"


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
    return _waited_for(claim, capacity, Ledger(path), worker)


def _waited_for(
    claim: dict[str, Any], capacity: Amounts, ledger: Ledger, worker: probe.Known | None = None
) -> Claim:
    """The claim, made in this ledger, unless its worker dies meanwhile."""
    worker = worker or probe.patron()
    return ledger.wait(
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
    temporary = sandbox.outside(tempfile.gettempdir())
    above = _ours(Path(temporary, f"parsl_sizer-ledger-{os.getuid()}-{host}"))
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
