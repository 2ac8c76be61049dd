"""A user's call, as it is given to the inner executor: once per attempt, measured.

Where the engine lets them, function and arguments are serialised once, at submission, and
cross the worker as bytes. Otherwise they are passed as they are, with the files at the top level,
where Work Queue and TaskVine look for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from parsl.serialize import deserialize, serialize
from parsl.serialize.errors import SerializationError
from parsl.serialize.facade import pack_buffers

from parsl_sizer.engines import Engine
from parsl_sizer.model import Attempt, Kind, OptOut, Resources
from parsl_sizer.monitor import travel
from parsl_sizer.monitor.wire import Plain

CODEC = (
    "parsl.serialize:unpack_apply_message",
    "parsl.serialize:serialize",
    "parsl.app.errors:RemoteExceptionWrapper",
)
NO_ARGS, NO_KWARGS = serialize(()), serialize({})
ELSEWHERE = 20
"""So often a node that has no room for a task sends it elsewhere."""
SERIES = 32
"""Points of memory over time that a task sends back at most."""
WARN_ABOVE = 1 << 20
"""Bytes from which Parsl warns about the size of an argument, as HTEX has it."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(slots=True, eq=False)
class Call:
    """What is called, and how."""

    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    isolation: str
    given: Mapping[str, object]
    ledger: str
    grows: bool = True
    packed: tuple[bytes, bytes, bytes] | None = None

    def pack(self) -> int:
        """Serialise it; the bytes of its arguments."""
        try:
            function = serialize(self.function, buffer_threshold=WARN_ABOVE)
            args = serialize(tuple(self.args), WARN_ABOVE) if self.args else NO_ARGS
            kwargs = serialize(dict(self.kwargs), WARN_ABOVE) if self.kwargs else NO_KWARGS
        except TypeError:
            raise SerializationError(getattr(self.function, "__name__", "?")) from None
        self.packed = function, args, kwargs
        self.args, self.kwargs = (), {}
        return len(args) + len(kwargs)

    def arguments(self) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The arguments as they are sent: what has become of them meanwhile does not count."""
        if self.packed is None:
            return self.args, self.kwargs
        return deserialize(self.packed[1]), deserialize(self.packed[2])

    def drop(self) -> None:
        """Forget what is called: it is not going to be sent again."""
        self.args, self.kwargs, self.packed = (), {}, None

    def launch(
        self, engine: Engine, attempt: Attempt, capacity: Resources | None, *, declined: int
    ) -> Future[Any]:
        """Give it to the inner executor, for a node of this capacity.

        `declined` is how often nodes have said that this attempt should be tried elsewhere.
        """
        order = self.order(engine, attempt, declined)
        specification = engine.specification(attempt.allocation, self.given, capacity)
        if self.packed is not None:
            return engine.submit_packed(specification, order, pack_buffers(list(self.packed)))
        wrapped = travel.wrapped(self.function)
        return engine.inner.submit(wrapped, specification, Plain(order), *self.args, **self.kwargs)  # type: ignore[no-any-return]

    def order(self, engine: Engine, attempt: Attempt, declined: int = 0) -> dict[str, object]:
        """What the monitor is told about this attempt."""
        limits = {kind.value: amount for kind, amount in attempt.allocation.items()}
        task = attempt.task
        claim = self._claim(engine, attempt, limits, declined)
        order: dict[str, object] = {
            "limits": limits,
            "isolation": self.isolation,
            "codec": CODEC,
            "series": SERIES,
            "category": task.category,
        }
        # What is not so is left out: four processes copy it.
        if attempt.enforced:
            order["enforce"] = True
        if OptOut.KEEP_CACHES in task.opt_outs:
            order["keep_caches"] = True
        if engine.sandbox != "tmp":
            order["sandbox"] = engine.sandbox
        elif OptOut.CLEAN_FILES in task.opt_outs:
            order["clean_files"] = True
        if engine.own_process:
            order["own_process"] = True
        if cores := task.requested.get(Kind.CORES):
            order["env"] = _told(cores)
        if claim is not None:
            order["claim"] = claim
        if not engine.measures:
            order["shared_process"] = True
        return order

    def _claim(
        self, engine: Engine, attempt: Attempt, limits: Mapping[str, float], declined: int
    ) -> dict[str, object] | None:
        """What the attempt holds in the ledger of its node, if that keeps one."""
        ledgers = engine.ledgers
        grows = self.grows and "memory" in limits
        # Also what does not grow is counted: others must not grow into it.
        kinds = ("memory", "disk") if engine.is_shared else ("memory",)
        amounts = {name: limits[name] for name in kinds if name in limits}
        if ledgers is None or not amounts:
            return None
        if not (grows or engine.is_shared or ledgers.shared):
            return None
        claim: dict[str, object] = {
            "ledger": self.ledger + engine.group,
            "capacity": {kind.value: amount for kind, amount in ledgers.capacity.items()},
            "amounts": amounts,
        }
        if ledgers.shared:
            claim["shared"] = True
        if ledgers.of_workers:
            claim["of_worker"] = True
        if ledgers.is_late:
            claim["is_late"] = True
        if grows and not attempt.enforced:
            claim["growth"] = "any"
        elif grows and ledgers.most is not None and OptOut.FIXED not in attempt.task.opt_outs:
            claim["growth"] = "fitting"
        if ledgers.patience_s < math.inf and declined < ELSEWHERE:
            claim["patience_s"] = ledgers.patience_s
        return claim


def _told(cores: float) -> dict[str, str]:
    """How many threads to start, as the user has said for how many cores.

    Who was not told starts as many as it likes: that is how its cores are learned.
    """
    return dict.fromkeys(THREADS, str(max(1, int(cores))))
