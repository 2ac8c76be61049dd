"""HighThroughputExecutor: takes no request for memory or disk, and picks the node itself.

So the ledger packs and the monitor enforces. Cores are given out by its worker slots,
as long as tasks are content with a slot each.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from parsl.executors.high_throughput.errors import ManagerLost, WorkerLost
from parsl.launchers import SimpleLauncher, SingleNodeLauncher
from parsl.providers import LocalProvider
from parsl.serialize import serialize
from parsl.serialize.concretes import DillSerializer
from parsl.serialize.facade import pack_buffers

from parsl_sizer.model import Amounts, Ending, Kind, Node, Resources
from parsl_sizer.monitor import node as monitored
from parsl_sizer.monitor import travel
from parsl_sizer.monitor.node_ledger import Presence

from .base import Engine, NodeLedgers, Verdict

NO_KWARGS = serialize({})
MOST = 1e18
ELSEWHERE_S = 0.5
"""After so long a node that has no room for a task sends it back, if there are others."""
SILENT_S = 10.0
"""A manager whose workers have not said in this time where they are counts as a node of its own.
Three managers on two cores with a load of 20 take 6 s to start them and hear it."""
DISK_DRIFT = 0.05
"""A node keeps the disk that it was first said to have while what is free differs by no more than
this share: other programs write there as well. With a few MB less, one of the tasks that fill the
node would not fit any more beside those that run already."""
PROBES = 64
"""So many calls of nothing are sent at once at most; they take an idle HTEX 0.1 s."""


class HighThroughput(Engine):
    """Nodes are hosts, or what jobs have been granted of them; each has one or more managers.

    On which node a manager is its workers say. Until then it counts as one by itself where nodes
    are granted; else it may share its host with others, and is left out until it was asked.
    """

    name = "HTEX"
    takes = frozenset({"priority"})
    isolations = ("runner", "fork", "inline")
    takes_bytes = True

    def __init__(self, inner: Any, node: Amounts | None = None) -> None:
        super().__init__(inner, node)
        provider = inner.provider
        # What PARSL_CORES or PARSL_MEMORY_GB in its worker_init grant, workers say themselves.
        self._is_local = (
            isinstance(provider, LocalProvider)
            and isinstance(provider.launcher, (SingleNodeLauncher, SimpleLauncher))
            and "PARSL_" not in provider.worker_init
        )
        self._here = monitored.name()
        self._names: dict[str, str] = {}  # of managers' nodes, from the reports of their tasks
        self._facts: dict[str, Resources] = {}  # of nodes
        self._disks: dict[str, float] = {}
        self._latest: Resources | None = None
        self._is_granted = False  # whether the latest node is a part of its host
        self._now = time.monotonic
        self._seen_at: dict[str, float] = {}  # managers of which the node is not known
        self._counted: frozenset[str] = frozenset()  # managers that are on one of our nodes
        self._workers = 0  # of the largest manager
        self._most = 0.0  # memory of a node
        self._calls_to_know = 0
        self._presence: Presence | None = None
        self._is_equipped = True  # until a worker says that it has not got the monitor
        self._to_ask: frozenset[str] = frozenset()  # managers, of their nodes
        self._asked: frozenset[str] = frozenset()
        self._probes: Sequence[Future[Any]] = ()
        self._probed_at = -math.inf
        self._managers: int = provider.max_blocks * provider.nodes_per_block

    @property
    def is_shared(self) -> bool:
        # Where a node is, is not known before its first report: until then it has another name.
        return self._managers > 1 or not self._is_local

    @property
    def ledgers(self) -> NodeLedgers:
        is_shared, node = self.is_shared, self.node or {}
        return NodeLedgers(
            self._most or None,
            node,
            is_late=self._presence is not None and not is_shared,
            patience_s=ELSEWHERE_S if is_shared else math.inf,
            shared=Kind.MEMORY not in node,
        )

    @property
    def slots(self) -> int:
        said = self.inner.max_workers_per_node
        return int(said) if math.isfinite(said) else self._workers

    def stated(self) -> Resources | None:
        if self._is_local:
            return self._granted(_resources(monitored.facts()))
        return super().stated()

    def nodes(self) -> Sequence[Node] | None:
        if self._is_local and self._presence is None:
            with contextlib.suppress(OSError):  # then each task is entered before it begins
                self._presence = Presence()
        managers = self._managers_here()
        if managers is None:
            self._calls_to_know = 0
            return ()
        self._managers = max(self._managers, len(managers))
        counts = [int(manager["worker_count"]) for manager in managers]
        self._workers = max(counts, default=self._workers)
        unheard = self._unheard(managers)
        self._to_ask = frozenset(str(manager["manager"]) for manager in unheard)
        # What was a node stays one: tasks run there.
        left_out = self._to_ask - self._counted
        managers = [manager for manager in managers if manager["manager"] not in left_out]
        self._counted = frozenset(str(manager["manager"]) for manager in managers)
        slots: dict[str, int] = {}
        for manager in managers:
            name = self._name(manager["manager"])
            slots[name] = slots.get(name, 0) + int(manager["worker_count"])
        if not slots and self._is_local and not self.group:
            slots[self._here] = 0  # its workers are about to come: tasks may wait for them there
        self._calls_to_know = int(any(self._capacity(name) is None for name in slots))
        if unheard:
            counts = [int(manager["worker_count"]) for manager in unheard]
            # HTEX fills one manager after the other, in any order: so many calls reach all of
            # these if no other is idle. Else they are made again and again.
            self._calls_to_know = min(sum(counts) - min(counts) + 1, PROBES)
        nodes = [
            Node(name, self._in_slots(capacity, count), slots=count)
            for name, count in slots.items()
            if (capacity := self._capacity(name)) is not None
        ]
        self._most = max([self._most, *(node.capacity.memory for node in nodes)])
        return nodes

    def _unheard(self, managers: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Return the managers that may share a node with others, and may yet say so."""
        if self._is_local or self._is_granted or self._managers == 1:
            return ()
        now = self._now()
        names = [str(manager["manager"]) for manager in managers]
        self._seen_at = {
            name: self._seen_at.get(name, now) for name in names if name not in self._names
        }
        return [
            manager
            for manager, name in zip(managers, names, strict=True)
            if now - self._seen_at.get(name, -math.inf) < SILENT_S
        ]

    def renamed(self, name: str) -> str:
        return self._names.get(name, name)

    def close(self) -> None:
        if self._presence is not None:
            self._presence.end()

    def has_died(self) -> bool:
        process = self.inner.interchange_proc
        return process is not None and process.poll() is not None

    def _managers_here(self) -> list[dict[str, Any]] | None:
        if self.inner.interchange_proc is None or self.has_died():
            return None  # to ask a dead interchange is to wait for ever
        return [
            manager
            for manager in self.inner.connected_managers()
            if manager["active"] and not manager.get("draining")
        ]

    def calls_to_reach(self, heard: Collection[str]) -> int:
        managers = self._managers_here() or []
        if all(manager["manager"] in heard for manager in managers):
            return 0
        return sum(int(manager["worker_count"]) for manager in managers)

    def probe(self) -> Future[Any] | None:
        now = self._now()
        waits = now - self._probed_at < SILENT_S and not all(one.done() for one in self._probes)
        if not self._calls_to_know or (waits and self._to_ask <= self._asked):
            return None
        self._probed_at, self._asked = now, self._to_ask
        # A call of nothing much: what matters is the place that its report comes from.
        order = {"enforce": False, "isolation": "inline", "shared_process": True}
        self._probes = [
            self.inner.submit(travel.wrapped(int), {}, order) for _ in range(self._calls_to_know)
        ]
        for probe in self._probes:
            probe.add_done_callback(self._probed)
        return self._probes[-1]

    def _probed(self, probe: Future[Any]) -> None:
        if probe.exception() is None and isinstance(probe.result(), Mapping):
            self.seen(probe.result())

    def seen(self, report: Mapping[str, object]) -> bool:
        if report.get("ending") == "unequipped":
            self._is_equipped = False
        host, pool, facts = report.get("host"), report.get("pool"), report.get("node")
        if not isinstance(host, str) or not isinstance(facts, Mapping):
            return False
        name = report.get("node_name")
        if not isinstance(name, str):
            name = host
        is_news = name not in self._facts
        if is_news:
            self._facts[name] = self._latest = self._granted(_resources(facts))
            self._is_granted = name != host
        if isinstance(pool, str) and self._names.get(pool) != name:
            self._names[pool] = name
            is_news = True
        return is_news

    def submit_packed(
        self, specification: dict[str, object], order: Mapping[str, object], buffer: bytes
    ) -> Future[Any]:
        if not hasattr(self.inner, "submit_payload"):
            return super().submit_packed(specification, order, buffer)
        if not self._is_equipped:
            return self._submit(travel.run_packed, specification, order, buffer)
        order = {**order, "package": travel.package()}
        future = self._submit(travel.run_packed_light, specification, order, buffer)
        future.is_light = True  # type: ignore[attr-defined]
        return future

    def _submit(
        self,
        function: Callable[..., Any],
        specification: dict[str, object],
        order: Mapping[str, object],
        buffer: bytes,
    ) -> Future[Any]:
        inner = self.inner
        inner.validate_resource_spec(specification)
        # Parsl pickles arguments with dill, which is written in Python: for plain values
        # pickle gives the same in a tenth of the time, and dill reads it.
        args = DillSerializer.identifier + b"\n" + pickle.dumps((order, buffer))
        context = {"resource_spec": specification} if specification else {}
        payload = pack_buffers([serialize(function), args, NO_KWARGS])
        future: Future[Any] = inner.submit_payload(context, payload)
        return future

    def is_unequipped(self, call: Future[Any]) -> bool:
        error = call.exception()
        if error is None or not getattr(call, "is_light", False) or self.verdict(error):
            return False
        self._is_equipped = False  # what the user's own code raises comes in a report
        return True

    def priority(self, given: Mapping[str, object]) -> float:
        # There the lowest number is first, and what has none is last.
        return -math.inf if given.get("priority") is None else -super().priority(given)

    def verdict(self, error: BaseException) -> Verdict | None:
        if isinstance(error, ManagerLost):
            return Verdict(Ending.LOST, node_lost=True)
        if isinstance(error, WorkerLost):
            return Verdict(Ending.LOST)
        return None

    def _name(self, manager: str) -> str:
        return self._names.get(manager) or (self._here if self._is_local else manager)

    def _capacity(self, name: str) -> Resources | None:
        """What the node has; one not heard of yet is taken to be like the latest one."""
        found = self._facts.get(name) or self._latest or self.stated()
        if found is None:
            return None
        disk = self._disks.setdefault(name, found.disk)
        if abs(found.disk - disk) <= DISK_DRIFT * disk:
            return found.updated({Kind.DISK: disk})
        self._disks[name] = found.disk
        return found

    def _in_slots(self, capacity: Resources, slots: int) -> Resources:
        """Who has more workers than cores wants as many tasks at once as workers."""
        if Kind.CORES in (self.node or {}) or slots <= capacity.cores:
            return capacity
        return capacity.updated({Kind.CORES: float(slots)})


def _resources(facts: Mapping[str, object]) -> Resources:
    """What a report says of a node, as far as it makes sense."""
    amounts = {}
    for kind in Kind:
        amount = facts.get(kind.value)
        if isinstance(amount, (int, float)) and 0 < amount <= MOST:
            amounts[kind] = float(amount)
    return Resources().updated(amounts)
