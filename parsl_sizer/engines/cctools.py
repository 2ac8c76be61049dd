"""What Work Queue and TaskVine have in common: both are from the same family, CCTools.

They pack tasks onto workers by what these promised and tasks ask for, in whole cores and
MB. Their MB are 2**20 bytes and count as 10**6 here, which errs on the safe side: a worker
has a little more than we say, and a task may use a little more than it asked for before
they stop it.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

from parsl.executors.errors import ExecutorError

from parsl_sizer.model import MB, Amounts, Ending, Kind, Node, Resources, is_bytes

from .base import Engine, NodeLedgers, Verdict
from .cctools_status import Status

KNOCK_S = 1.0
"""A task that lasts so long keeps the manager awake for as long as it takes to ask it."""

ALIKE = 1.05
"""Workers on equal hosts that say themselves what they have differ by some MB."""
ELSEWHERE_S = 30.0
"""To send a task that waits to another worker costs the start of a Python."""

MORE_THAN_REQUESTED = "more resources than requested"
ENDINGS: Mapping[str, Verdict] = {
    "needed more space": Verdict(Ending.EXHAUSTED, frozenset({Kind.DISK})),
    "was not transfered": Verdict(Ending.LOST),  # as it is written there
    "terminated with a signal": Verdict(Ending.LOST),
    "did not produce an output": Verdict(Ending.LOST),
    "could not be classified": Verdict(Ending.LOST),
    "unable to process": Verdict(Ending.LOST),
    "not a task error": Verdict(Ending.LOST, node_lost=True),
    "number of retries": Verdict(Ending.LOST, node_lost=True),
}
"""What Parsl writes about tasks that left no result, and what it means."""


class CCTools(Engine):
    """Workers are nodes; each task is a fresh process in a folder of its own."""

    packs = frozenset(Kind)
    takes = frozenset({"priority", "running_time_min"})
    isolations = ("fork", "inline")
    own_process = True
    sandbox = "cwd"
    failure: ClassVar[type[Exception]]
    """The error of a task that left no result."""

    def __init__(self, inner: Any, node: Amounts | None = None) -> None:
        super().__init__(inner, node)
        self._status: Status | None = None
        self._here: Sequence[Node] = ()

    @property
    def ledgers(self) -> NodeLedgers | None:
        """Which worker a task is given to is not known here, so they have to be alike."""
        if Kind.MEMORY in self._stopped_for():  # it stops what grows
            return None
        memories = [node.capacity.memory for node in self._here]
        least, most = min(memories, default=0.0), max(memories, default=0.0)
        patience_s = ELSEWHERE_S if len(memories) > 1 else math.inf
        if not 0.0 < most <= ALIKE * least:
            return NodeLedgers(None, {}, of_workers=True, patience_s=patience_s)
        capacity = {Kind.MEMORY: least}
        return NodeLedgers(least, capacity, of_workers=True, patience_s=patience_s)

    def nodes(self) -> Sequence[Node] | None:
        port = self._port()
        if port is None:
            return None
        if self._status is None:
            self._status = Status(self._password())
        found = self._ask(self._status, port)
        if found is not None:
            self._here = found
        return found

    def close(self) -> None:
        if self._status is not None:
            self._status.close()

    def probe(self) -> Future[Any] | None:
        """Give a manager at rest something to do, so that it notices workers and answers."""
        if self._here or self.inner.tasks or self._port() is None:
            return None
        try:
            knock = {"cores": 1, "memory": 1, "disk": 1}
            future: Future[Any] = self.inner.submit(time.sleep, knock, KNOCK_S)
        except ExecutorError:  # it is dead: there is nobody to wake
            return None
        return future

    def calls_to_reach(self, heard: Collection[str]) -> int:
        """A call that asks for nothing in particular is given a whole worker."""
        workers = self.nodes() or ()
        return len(workers) if len(heard) < len(workers) else 0

    def specification(
        self, allocation: Amounts, given: Mapping[str, object], capacity: Resources | None
    ) -> dict[str, object]:
        if not allocation:
            return dict(given)
        rooms = [node.capacity for node in self._here]
        asked = whole_units(allocation, capacity or largest(rooms))
        unsized = unbinding_units(allocation, [capacity, *rooms] if capacity else rooms)
        return {**given, **unsized, **asked}

    def unsized(self, requested: Amounts, given: Mapping[str, object]) -> dict[str, object]:
        return {**given, **whole_units(requested, None)}

    def verdict(self, error: BaseException) -> Verdict | None:
        if not isinstance(error, self.failure):
            return None
        reason = str(getattr(error, "reason", ""))
        if MORE_THAN_REQUESTED in reason:
            return Verdict(Ending.EXHAUSTED, self._stopped_for())
        return next((verdict for text, verdict in ENDINGS.items() if text in reason), None)

    def has_died(self) -> bool:
        process = self._manager()
        try:
            return process is not None and not process.is_alive()
        except ValueError:  # it is shut down
            return False

    @abstractmethod
    def _manager(self) -> Any:
        """The process that speaks to the workers; None before it is started."""

    @abstractmethod
    def _port(self) -> int | None:
        """Where the manager listens; None if that is not known (yet)."""

    @abstractmethod
    def _password_file(self) -> str | None:
        """Where the project's password is, if it has one."""

    @abstractmethod
    def _stopped_for(self) -> frozenset[Kind]:
        """Of what a task that a worker stopped had too little, as far as that can be told."""

    def _ask(self, status: Status, port: int) -> Sequence[Node] | None:
        workers = status.ask(port, "worker")
        if workers is None:
            return None
        nodes = [self._node(worker) for worker in workers]
        return [node for node in nodes if node.capacity.cores and node.capacity.memory]

    def _node(self, worker: Mapping[str, Any]) -> Node:
        """Return a worker as a node: no larger than it promised, nor than was asked for it.

        Unless it is told what to promise, it promises all of its machine, of which a job of the
        provider's may have been granted a part.
        """
        address = worker.get("address_port") or worker.get("addrport")
        promised = promised_by(worker)
        asked = {**self._provided(), **(self.node or {})}
        said = {kind: min(amount, promised[kind]) for kind, amount in asked.items()}
        return Node(f"{worker.get('hostname')} {address}", promised.updated(said))

    def _password(self) -> str | None:
        file = self._password_file()
        return None if file is None else Path(file).read_text()


def promised_by(worker: Mapping[str, Any]) -> Resources:
    """What a worker says that it has; what it has not said yet is 0."""
    amounts = {}
    for kind in Kind:
        # Of a foreman the total is the sum of its workers, and a task runs on one of them.
        amount = worker.get(f"{kind.value}_largest", worker.get(f"{kind.value}_total"))
        if isinstance(amount, (int, float)) and 0 < amount < math.inf:
            amounts[kind] = amount * MB if is_bytes(kind) else float(amount)
    return Resources().updated(amounts)


def largest(rooms: Iterable[Resources]) -> Resources | None:
    """The most that one of these has, kind by kind."""
    rooms = list(rooms)
    if not rooms:
        return None
    return Resources(**{kind.value: max(room[kind] for room in rooms) for kind in Kind})


def whole_units(allocation: Amounts, capacity: Resources | None) -> dict[str, int]:
    """The allocation in whole cores and MB: rounded up, and not above the capacity by that.

    >>> whole_units({Kind.CORES: 1.5, Kind.MEMORY: 999.5e6}, Resources(cores=4, memory=999.7e6))
    {'cores': 2, 'memory': 999}
    """
    units = {}
    for kind, amount in allocation.items():
        unit = MB if is_bytes(kind) else 1.0
        whole = math.ceil(amount / unit)
        if capacity is not None and amount <= capacity[kind]:
            whole = min(whole, math.floor(capacity[kind] / unit))
        units[kind.value] = max(1, whole) if kind is Kind.CORES else whole
    return units


def unbinding_units(allocation: Amounts, rooms: Iterable[Resources]) -> dict[str, int]:
    """So much of the kinds not allocated that they decide nowhere how many tasks fit.

    That is the share of a node that the allocation takes of it anyway, rounded down, on
    the node where that is least.

    >>> unbinding_units({Kind.MEMORY: 1e9}, [Resources(cores=8, memory=4e9, disk=9e9)])
    {'cores': 2, 'disk': 2250}
    """
    units: dict[str, int] = {}
    for room in rooms:
        shares = [amount / room[kind] for kind, amount in allocation.items() if room[kind]]
        share = max(shares, default=1.0)
        if share > 1.0:  # it does not fit there, whatever the rest is
            continue
        for kind in (Kind.CORES, Kind.MEMORY, Kind.DISK):
            if kind not in allocation:
                whole = math.floor(room[kind] * share / (MB if is_bytes(kind) else 1.0))
                whole = max(1, whole) if kind is Kind.CORES else whole
                units[kind.value] = min(whole, units.get(kind.value, whole))
    return units
