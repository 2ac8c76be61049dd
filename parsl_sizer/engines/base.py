"""What an inner executor can do, and how it is spoken to."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from numbers import Real
from typing import Any, ClassVar, NamedTuple

from parsl.executors.errors import BadStateException

from parsl_sizer.model import (
    NOTHING,
    Amounts,
    Attempt,
    Ending,
    Kind,
    Node,
    Resources,
    SizerError,
)
from parsl_sizer.monitor import travel
from parsl_sizer.monitor.node import facts
from parsl_sizer.monitor.wire import Plain
from parsl_sizer.sizing import Sizer

SIZED_KINDS = frozenset({Kind.CORES, Kind.MEMORY, Kind.DISK})
GB = 1e9


class CannotWrap(SizerError, TypeError):
    """An inner executor that tasks cannot be sized on."""


class Verdict(NamedTuple):
    """What an error of the inner executor's own says about an attempt."""

    ending: Ending
    exhausted: frozenset[Kind] = NOTHING
    node_lost: bool = False


class NodeLedgers(NamedTuple):
    """How each node keeps a ledger of what its tasks hold: they may have what nobody holds."""

    most: float | None
    """The memory up to which a task may grow; None if that is not known, so that none does."""
    capacity: Amounts
    """What the user says that each node has; of the other kinds, what it finds."""
    of_workers: bool = False
    """Whether each worker on a host has a ledger of its own."""
    is_late: bool = False
    """Whether a call may begin before it holds anything, where no other program uses the node: the
    submit side has made room for it."""
    patience_s: float = math.inf
    """How long a task waits at a node that is full, before it is sent elsewhere."""
    shared: bool = False
    """Whether other runs of the user reserve memory there, too, as far as the node has some."""


class Engine(ABC):
    """One dialect: an inner executor's specifications, errors and nodes.

    What it does not pack our ledger packs, and what it does not enforce our monitor
    does. Nothing here blocks for more than about a second, and only `nodes`, which is
    called from a thread of its own, blocks at all.
    """

    name: str
    packs: ClassVar[frozenset[Kind]] = NOTHING
    """The kinds for which the inner executor finds room itself, by specification."""
    enforces: ClassVar[frozenset[Kind]] = NOTHING
    """The kinds of which it stops a task that uses too much."""
    measures: frozenset[Kind] = SIZED_KINDS
    """The kinds whose use by one task can be told there, so that they can be sized."""
    takes: frozenset[str] = frozenset()
    """The words of a specification that it understands, besides amounts."""
    isolations: tuple[str, ...]
    """How tasks can be run, the default first."""
    takes_bytes: bool = False
    """Whether a call may cross it serialised: nothing there looks at the arguments."""
    own_process: ClassVar[bool] = False
    """Whether each attempt starts a Python of its own, which is a part of the time it takes."""
    sandbox: ClassVar[str] = "tmp"
    """Where a task's files are its own: ``"cwd"``, or ``"tmp"`` for a TMPDIR of its own."""

    def __init__(self, inner: Any, node: Amounts | None = None) -> None:
        self.inner = inner
        self.node = node
        """What the user says that a node has; kinds left out are learned."""
        self.group = ""
        """Its name among several, if it is one of these."""

    @property
    def is_shared(self) -> bool:
        """Whether it picks the node of a task that we pack for: then nodes need a ledger."""
        return False

    @property
    def ledgers(self) -> NodeLedgers | None:
        """What nodes know of what their tasks hold; None if tasks can neither grow nor collide."""
        return None

    @property
    def slots(self) -> int:
        """How many tasks it runs on a node at once, if somebody has said so; else 0."""
        return 0

    def stated(self) -> Resources | None:
        """What a node will have, as far as that is known before one is here; None if not.

        What is not said of its disk is taken to be as here.
        """
        known = {**self._provided(), **(self.node or {})}
        if Kind.MEMORY not in known:
            return None
        return Resources(cores=1.0, disk=facts().get("disk", 0.0)).updated(known)

    def _granted(self, found: Resources) -> Resources:
        """Return what a node has, of what it finds, by the provider's and the user's words."""
        provided = {
            kind: min(amount, found[kind] or amount) for kind, amount in self._provided().items()
        }
        return found.updated({**provided, **(self.node or {})})

    def _provided(self) -> Amounts:
        """Return what the provider asks for on each node."""
        provider = getattr(self.inner, "provider", None)
        cores = getattr(provider, "cores_per_node", None)
        memory = getattr(provider, "mem_per_node", None)
        said = {Kind.CORES: cores or 0.0, Kind.MEMORY: (memory or 0.0) * GB}
        return {kind: float(amount) for kind, amount in said.items() if amount > 0}

    def of(self, attempt: Attempt) -> Engine:
        """The engine that runs this attempt."""
        return self

    def why_failed(self) -> Exception | None:
        """Why nothing can be run any more, if that is so."""
        if not getattr(self.inner, "bad_state_is_set", False):
            return None
        return BadStateException(self.inner, self.inner.executor_exception)

    def has_died(self) -> bool:
        """Whether the program is gone without which nothing comes back, and nobody has noticed."""
        return False

    def hand_on(self) -> bool:
        """Whether some of it has failed, so that what was there has to be run elsewhere."""
        return False

    def has_failed(self, attempt: Attempt) -> bool:
        """Whether that part of it has failed which runs this attempt."""
        return False

    def still_here(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Those of the nodes that it had just now on which something can be run."""
        return nodes

    def demand(self, sizer: Sizer) -> float | None:
        """How many nodes the tasks that are not over would fill, about; None if not known."""
        return sizer.demand(self.slots)

    def expected(self) -> Sequence[Resources]:
        """What nodes have that may yet come beside others that are here."""
        return ()

    @abstractmethod
    def nodes(self) -> Sequence[Node] | None:
        """The nodes that are here now; None if the inner executor cannot say."""

    def renamed(self, name: str) -> str:
        """Return the name that a node has by now, of which `nodes` once spoke by this one."""
        return name

    def close(self) -> None:  # noqa: B027
        """Nobody asks for `nodes` any more: give back what it holds. From the same thread."""

    def seen(self, report: Mapping[str, object]) -> bool:
        """A task reported from a node; whether `nodes` says something else since then."""
        return False

    def probe(self) -> Future[Any] | None:
        """Ask a node what it has, if there is one of which that is not known. Does not block.

        Called by the one thread that may submit then; `nodes` knows when the future is done.
        """
        return None

    def calls_to_reach(self, heard: Collection[str]) -> int:
        """How many calls to make at once so that each node gets some; 0 if all were heard of.

        `heard` are the places that calls of `profiling` came back from. Blocks as `nodes` does.
        """
        return 0 if heard else 1

    def specification(
        self, allocation: Amounts, given: Mapping[str, object], capacity: Resources | None
    ) -> dict[str, object]:
        """The allocation in the inner executor's words, with the other keys that were `given`.

        `capacity` is that of the node for which the attempt was sized, if it is still here.
        """
        return dict(given)

    def submit_packed(
        self, specification: dict[str, object], order: Mapping[str, object], buffer: bytes
    ) -> Future[Any]:
        """Have `travel.run_packed` called; an engine may know a quicker way than to `submit`."""
        packed = travel.run_packed
        future: Future[Any] = self.inner.submit(packed, specification, Plain(order), buffer)
        return future

    def is_unequipped(self, call: Future[Any]) -> bool:
        """Whether a call failed because the worker has not got the monitor: nothing was run."""
        return False

    def unsized(self, requested: Amounts, given: Mapping[str, object]) -> dict[str, object]:
        """What the user has said, in the inner executor's words, when nothing is sized."""
        return dict(given)

    def priority(self, given: Mapping[str, object]) -> float:
        """What the user's specification says of a task's turn; the highest is first."""
        priority = given.get("priority")
        return float(priority) if isinstance(priority, Real) else 0.0

    def submit_unsized(
        self,
        function: Any,
        requested: Amounts,
        given: Mapping[str, object],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Future[Any]:
        """Have a function called as if we were not there."""
        plain = self.unsized(requested, given)
        future: Future[Any] = self.inner.submit(function, plain, *args, **kwargs)
        return future

    def verdict(self, error: BaseException) -> Verdict | None:
        """What an error of the inner executor's own means; None if it says nothing special."""
        return None
