"""Answers of HTEX's worker that are still on their way out of this process.

They are written by a thread of its own. A call that ends the worker would take them with it, and
nobody would be told; if the thread is writing just then, no worker of the node can answer any
more, as it dies with the lock that all of them share. So no call is begun before they are out.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

PATIENCE_S = 10.0
"""A call begins after so long all the same: what hangs then is not for it to wait for."""
NAP_S = 0.0001


def wait() -> None:
    """Wait until all that this worker has answered is out."""
    global _known
    pid = os.getpid()
    if _known is None or _known[0] != pid:  # a fork has none of its parent's threads
        _known = pid, _found()
    answers = _known[1]
    if answers is None or is_out(answers):
        return
    until = time.monotonic() + PATIENCE_S
    while not is_out(answers) and time.monotonic() < until:
        time.sleep(NAP_S)


def is_out(answers: Any) -> bool:
    """Whether the thread of a queue of `multiprocessing` has written all and waits for more."""
    try:
        thread = answers._thread
        if thread is None or not thread.is_alive():
            return True
        return bool(answers._notempty._waiters and not answers._buffer)
    except AttributeError:  # no other way to ask is known
        return True


def _found() -> Any:
    """The queue for answers of the worker that calls us; None if there is none."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "worker" and "result_queue" in frame.f_code.co_varnames:
            variables = frame.f_locals
            found = variables.get("result_queue")
            if type(variables) is dict:  # before Python 3.13 the frame would keep them for ever
                variables.clear()
            return found
        frame = frame.f_back  # type: ignore[assignment]
    return None


_known: tuple[int, Any] | None = None
"""Which process has looked for the queue, and what it found."""
