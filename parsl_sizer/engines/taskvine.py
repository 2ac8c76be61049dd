"""TaskVineExecutor: packs tasks by specification; its workers say what they have.

A worker stops a task that uses more disk than it asked for. Parsl cannot tell that from
any other failure, so it counts as a loss; as a rule our monitor was there first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psutil
from parsl.executors.taskvine.errors import TaskVineTaskFailure

from parsl_sizer.model import Amounts, Kind, Resources

from .base import CannotWrap
from .cctools import CCTools

REGULAR = "regular"


class TaskVine(CCTools):
    """TaskVine, with a process per task."""

    name = "TaskVine"
    takes = CCTools.takes | {"exec_mode"}
    enforces = frozenset({Kind.DISK})
    failure = TaskVineTaskFailure

    def __init__(self, inner: Any, node: Amounts | None = None) -> None:
        _check_mode(f"function_exec_mode={inner.function_exec_mode!r}", inner.function_exec_mode)
        super().__init__(inner, node)

    def specification(
        self, allocation: Amounts, given: Mapping[str, object], capacity: Resources | None
    ) -> dict[str, object]:
        mode = given.get("exec_mode", REGULAR)
        _check_mode(f"exec_mode={mode!r} in a specification", mode)
        return super().specification(allocation, given, capacity)

    def _port(self) -> int | None:
        port: int = self.inner.manager_config.port
        return port or self._port_found()

    def _manager(self) -> Any:
        return self.inner._submit_process

    def _password_file(self) -> str | None:
        file: str | None = self.inner.manager_config.project_password_file
        return file

    def _stopped_for(self) -> frozenset[Kind]:
        autolabel = self.inner.manager_config.autolabel
        return frozenset({Kind.MEMORY if autolabel else Kind.DISK})

    def _port_found(self) -> int | None:
        """The port that the manager's process has chosen; it tells nobody."""
        try:
            process = psutil.Process(self.inner._submit_process.pid)
            look = getattr(process, "net_connections", None) or process.connections
            connections = look("tcp")
        except (psutil.Error, AttributeError, TypeError):  # not started yet, or over
            return None
        return next((at.laddr.port for at in connections if at.status == psutil.CONN_LISTEN), None)


def _check_mode(where: str, mode: object) -> None:
    if mode != REGULAR:
        raise CannotWrap(
            f"SizedExecutor cannot run tasks with {where}: there tasks share a process, and "
            f"what one of them uses cannot be told. Use {REGULAR!r}."
        )
