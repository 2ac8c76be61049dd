"""One process per call, forked from this one, which already holds function and arguments."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from . import call, node, node_ledger, wire
from .account import Tidiness
from .inline import run_inline
from .supervisor import Supervisor


def run_forked(
    order: dict[str, Any], func: Callable[..., Any], args: Any, kwargs: Any
) -> dict[str, Any]:
    """Call a function in a fork of this process and report."""
    if not node.can_be_supervised():
        return run_inline(order, func, args, kwargs)

    def once(sock: socket.socket) -> None:
        tidiness = Tidiness()
        wire.send(sock, wire.READY, {"ready": tidiness.fresh})
        frame = wire.receive(sock, 1)
        if frame is not None:
            head, body = frame
            head["keep_caches"] = False  # nothing outlives this process
            wire.send(sock, 1, *call.perform(head, body, (func, args, kwargs), tidiness))

    with node_ledger.claimed(order.get("claim")) as place:
        try:
            has_own_folder = order.get("sandbox") != "cwd"
            supervisor = Supervisor(once, has_own_folder=has_own_folder).prepared(order, place)
        except OSError:  # no process, no descriptor left: better unprotected than not at all
            claim = place.claim_without(order.get("claim"))
            return run_inline({**order, "claim": claim}, func, args, kwargs)
        with supervisor:
            return supervisor.run(order, b"", "fork", place)
