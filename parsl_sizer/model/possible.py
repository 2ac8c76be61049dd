"""Which measurements can be: one test for what tasks report and for what archives remember."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .outcome import Usage
from .resources import Amounts, Kind

if TYPE_CHECKING:
    from typing import TypeGuard

MOST: Amounts = {Kind.CORES: 1e6, Kind.MEMORY: 1e15, Kind.DISK: 1e18, Kind.GPUS: 1e6}
"""No node has more; the largest that were built have some 1e13 bytes of memory. What is less
may be of a larger machine than this run's, and is history like any other."""
LONGEST_S = 1e10
"""Three hundred years."""


def can_be(value: object, most: float) -> TypeGuard[float]:
    """Whether this is a number, and from 0 to the most.

    >>> [can_be(value, 10) for value in (0, 10.0, 11, -1, float("nan"), True, "5", None)]
    [True, True, False, False, False, False, False, False]
    """
    return _is_number(value) and 0 <= value <= most  # type: ignore[operator]


def _is_number(value: object) -> bool:
    kind = type(value)  # on every task's way: `isinstance` is for others than these
    return kind is float or kind is int or (isinstance(value, (int, float)) and kind is not bool)


def are_possible(amounts: Amounts) -> bool:
    """Whether a node may have these amounts."""
    for kind, amount in amounts.items():  # noqa: SIM110 - on every task's way, `all` is slower
        if not can_be(amount, MOST.get(kind, 0.0)):
            return False
    return True


def is_possible(usage: Usage) -> bool:
    """Whether a task may have been measured to use this."""
    return can_be(usage.wall_s, LONGEST_S) and are_possible(usage.peak)
