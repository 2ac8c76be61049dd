"""Answers of HTEX's worker that are still on their way out of this process.

They are written by a thread of its own. A call that ends the worker would take them with it, and
nobody would be told; if the thread is writing just then, no worker of the node can answer any
more, as it dies with the lock that all of them share. So no call is begun before they are out.
"""

from __future__ import annotations

import sys
import time
from typing import Any

PATIENCE_S = 10.0
"""Nobody reads them for so long: then it is not this call that ends the worker."""
NAP_S = 0.0001


def wait() -> None:
    """Wait until all that this worker has answered is out."""
    global _known
    if _known is None:
        _known = (_found(),)
    answers = _known[0]
    if answers is None or is_out(answers):
        return
    until = time.monotonic() + PATIENCE_S
    while not is_out(answers) and time.monotonic() < until:
        time.sleep(NAP_S)


def is_out(answers: Any) -> bool:
    """Whether the thread of a queue of `multiprocessing` has written all and waits for more."""
    try:
        return answers._thread is None or bool(answers._notempty._waiters and not answers._buffer)
    except AttributeError:  # no other way to ask is known
        return True


def _found() -> Any:
    """The queue for answers of the worker that calls us; None if there is none."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "worker" and "result_queue" in frame.f_code.co_varnames:
            return frame.f_locals["result_queue"]
        frame = frame.f_back  # type: ignore[assignment]
    return None


_known: tuple[Any] | None = None
"""What was found, once it was looked for; a spawned worker looks for its own."""
