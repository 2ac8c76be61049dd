"""What was measured as a value to keep; on the side that asks, not on nodes."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from parsl_sizer.model import NodeProfile, SizerError, can_be
from parsl_sizer.monitor import node

from .facts import EXTRAS, FLAG, unknown_extras
from .probes import LEAST_S, SECONDS, measure

MOST = 1e18
TEXT = 500
"""No feature is larger, and of no text there is more."""


def profile_here(
    seconds: float = SECONDS,
    *,
    extra: Sequence[str] = (),
    use_tools: bool = True,
    folder: str | None = None,
    tick: Callable[[str], None] = lambda feature: None,
) -> NodeProfile:
    """The profile of this machine; `tick` is called before each step."""
    check(seconds, extra)
    told = measure(seconds, folder, extra, use_tools, tick)
    return profile_of(socket.gethostname(), node.facts(), told)


def profile_of(
    host: str, facts: object, told: Mapping[str, Any], executor: str | None = None
) -> NodeProfile:
    """What a node says of itself, as far as it makes sense.

    >>> told = {"features": {"cpu_single": 1500.0, "io_read": float("nan")}, "methods": {}}
    >>> profile_of("n1", {"cores": 8, "memory": -1}, told).features
    {'cores': 8.0, 'cpu_single': 1500.0}
    """
    known = {**_mapping(facts), **_mapping(told.get("features"))}
    features = {str(name): float(amount) for name, amount in known.items() if can_be(amount, MOST)}
    methods = {str(name): str(how)[:TEXT] for name, how in _mapping(told.get("methods")).items()}
    return NodeProfile(host, features, methods, time.time(), executor)


def check(seconds: float, extra: Sequence[str]) -> None:
    """Refuse what makes no sense, before anything is started."""
    if not seconds >= LEAST_S:
        raise SizerError(f"seconds={seconds!r} is too short a time; take {LEAST_S:g} or more.")
    if unknown := unknown_extras(extra):
        raise SizerError(
            f"{unknown[0]!r} is no feature; there is {', '.join(EXTRAS)}, and {FLAG}NAME for a "
            f"flag of the processor, such as {FLAG}avx2."
        )


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}
