"""ThreadPoolExecutor: threads share one process, so nothing of one task can be measured.

Only admission is left: tasks that state what they need start when that is free.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from parsl_sizer.model import NOTHING, Node, Resources
from parsl_sizer.monitor.node import facts

from .base import Engine


class Threads(Engine):
    """The threads of this very process."""

    name = "threads"
    measures = NOTHING
    isolations = ("inline",)

    def stated(self) -> Resources | None:
        return Resources(**facts()).updated(self.node or {})

    def nodes(self) -> Sequence[Node] | None:
        capacity = self.stated()
        assert capacity is not None
        return [Node(socket.gethostname(), capacity, slots=self.inner.max_threads or 1)]
