"""HighThroughputExecutor: takes no request for memory or disk, and picks the node itself.

So the ledger packs and the monitor enforces. Cores are given out by its worker slots,
as long as tasks are content with a slot each.
"""

from __future__ import annotations

import math
import pickle
import socket
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
from parsl_sizer.monitor import travel
from parsl_sizer.monitor.node import facts

from .base import Engine, NodeLedgers, Verdict

NO_KWARGS = serialize({})
MOST = 1e18
ELSEWHERE_S = 0.5
"""After so long a node that has no room for a task sends it back, if there are others."""


class HighThroughput(Engine):
    """Managers are nodes, until two of them turn out to be on one host."""

    name = "HTEX"
    takes = frozenset({"priority"})
    isolations = ("runner", "fork", "inline")
    takes_bytes = True

    def __init__(self, inner: Any, node: Amounts | None = None) -> None:
        super().__init__(inner, node)
        self._is_local = isinstance(inner.provider, LocalProvider) and isinstance(
            inner.provider.launcher, (SingleNodeLauncher, SimpleLauncher)
        )
        self._host = socket.gethostname()
        self._hosts: dict[str, str] = {}  # of managers, from the reports of their tasks
        self._facts: dict[str, Resources] = {}  # of hosts
        self._latest: Resources | None = None
        self._workers = 0  # of the largest manager
        self._most = 0.0  # memory of a node
        self._is_unknown = False
        self._is_equipped = True  # until a worker says that it has not got the monitor
        self._probe: Future[Any] | None = None
        provider = inner.provider
        self._managers: int = provider.max_blocks * provider.nodes_per_block

    @property
    def is_shared(self) -> bool:
        # Where a node is, is not known before its first report: until then it has another name.
        return self._managers > 1 or not self._is_local

    @property
    def ledgers(self) -> NodeLedgers:
        patience_s = ELSEWHERE_S if self.is_shared else math.inf
        return NodeLedgers(self._most or None, self.node or {}, patience_s=patience_s)

    @property
    def slots(self) -> int:
        said = self.inner.max_workers_per_node
        return int(said) if math.isfinite(said) else self._workers

    def stated(self) -> Resources | None:
        if self._is_local:
            return self._with_node(_resources(facts()))
        return super().stated()

    def nodes(self) -> Sequence[Node] | None:
        managers = self._managers_here()
        if managers is None:
            self._is_unknown = False
            return ()
        self._managers = max(self._managers, len(managers))
        counts = [int(manager["worker_count"]) for manager in managers]
        self._workers = max(counts, default=self._workers)
        slots: dict[str, int] = {}
        for manager in managers:
            name = self._name(manager["manager"])
            slots[name] = slots.get(name, 0) + int(manager["worker_count"])
        if not slots and self._is_local and not self.group:
            slots[self._host] = 0  # its workers are about to come: tasks may wait for them there
        self._is_unknown = any(self._capacity(name) is None for name in slots)
        nodes = [
            Node(name, self._in_slots(capacity, count), slots=count)
            for name, count in slots.items()
            if (capacity := self._capacity(name)) is not None
        ]
        self._most = max([self._most, *(node.capacity.memory for node in nodes)])
        return nodes

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
        if not self._is_unknown or (self._probe is not None and not self._probe.done()):
            return None
        # A call of nothing much: what matters is the place that its report comes from.
        order = {"enforce": False, "isolation": "inline", "shared_process": True}
        self._probe = self.inner.submit(travel.wrapped(int), {}, order)
        self._probe.add_done_callback(self._probed)
        return self._probe

    def _probed(self, probe: Future[Any]) -> None:
        if probe.exception() is None and isinstance(probe.result(), Mapping):
            self.seen(probe.result())

    def seen(self, report: Mapping[str, object]) -> bool:
        if report.get("ending") == "unequipped":
            self._is_equipped = False
        host, pool, facts = report.get("host"), report.get("pool"), report.get("node")
        if not isinstance(host, str) or not isinstance(facts, Mapping):
            return False
        is_news = host not in self._facts
        if is_news:
            self._facts[host] = self._latest = self._with_node(_resources(facts))
        if isinstance(pool, str) and self._hosts.get(pool) != host:
            self._hosts[pool] = host
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
        return -super().priority(given)  # there the lowest number is first

    def verdict(self, error: BaseException) -> Verdict | None:
        if isinstance(error, ManagerLost):
            return Verdict(Ending.LOST, node_lost=True)
        if isinstance(error, WorkerLost):
            return Verdict(Ending.LOST)
        return None

    def _name(self, manager: str) -> str:
        return self._hosts.get(manager) or (self._host if self._is_local else manager)

    def _capacity(self, name: str) -> Resources | None:
        """What the node has; one not heard of yet is taken to be like the latest one."""
        return self._facts.get(name) or self._latest or self.stated()

    def _in_slots(self, capacity: Resources, slots: int) -> Resources:
        """Who has more workers than cores wants as many tasks at once as workers."""
        if Kind.CORES in (self.node or {}) or slots <= capacity.cores:
            return capacity
        return capacity.updated({Kind.CORES: float(slots)})

    def _with_node(self, facts: Resources) -> Resources:
        return facts.updated(self.node or {})


def _resources(facts: Mapping[str, object]) -> Resources:
    """What a report says of a node, as far as it makes sense."""
    amounts = {}
    for kind in Kind:
        amount = facts.get(kind.value)
        if isinstance(amount, (int, float)) and 0 < amount <= MOST:
            amounts[kind] = float(amount)
    return Resources().updated(amounts)
