"""WorkQueueExecutor: packs tasks by specification; its workers say what they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parsl.executors.workqueue.errors import WorkQueueTaskFailure

from parsl_sizer.model import Amounts, Kind, Node, Resources

from .base import CannotWrap
from .cctools import CCTools
from .cctools_status import Status

MIXES_UP_DISK = "8.0.0 DEVELOPMENT"
"""The version in Debian 12 starts no task that asks for more MB of disk than its worker
has MB of memory."""


class WorkQueue(CCTools):
    """Work Queue wants all of cores, memory and disk, or nothing."""

    name = "Work Queue"
    failure = WorkQueueTaskFailure

    def __init__(self, inner: Any, node: Amounts | None = None) -> None:
        for option in ("source", "pack", "coprocess"):
            if getattr(inner, option, False):
                raise CannotWrap(
                    f"SizedExecutor cannot wrap a WorkQueueExecutor with {option}=True: the "
                    "function that measures a task travels in pickled form, and is not found "
                    f"in a source file. Leave {option}=True out."
                )
        super().__init__(inner, node)
        self._version: str | None = None

    def specification(
        self, allocation: Amounts, given: Mapping[str, object], capacity: Resources | None
    ) -> dict[str, object]:
        specification = super().specification(allocation, given, capacity)
        if not allocation:
            return specification
        if Kind.DISK not in allocation:
            specification["disk"] = 0  # no request: what is requested, some versions enforce
        return {"cores": 1, "memory": 0, **specification}

    def _port(self) -> int | None:
        port: int | None = getattr(self.inner, "_chosen_port", None)
        return port

    def _manager(self) -> Any:
        return getattr(self.inner, "submit_process", None)

    def _password_file(self) -> str | None:
        file: str | None = self.inner.project_password_file
        return file

    def _stopped_for(self) -> frozenset[Kind]:
        """Only with `autolabel` it looks at memory, too, which runs out first as a rule."""
        return frozenset({Kind.MEMORY if self.inner.autolabel else Kind.DISK})

    def _ask(self, status: Status, port: int) -> Sequence[Node] | None:
        if self._version is None:
            queue = status.ask(port, "queue")
            if not queue:
                return None
            self._version = str(queue[0].get("version"))
        return super()._ask(status, port)

    def _node(self, worker: Mapping[str, Any]) -> Node:
        node = super()._node(worker)
        if self._version != MIXES_UP_DISK:
            return node
        disk = min(node.capacity.disk, node.capacity.memory)
        return Node(node.name, node.capacity.updated({Kind.DISK: disk}))
