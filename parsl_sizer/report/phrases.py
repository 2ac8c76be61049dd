"""Figures of a run as people read them, in the terminal and on the page alike."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

from parsl_sizer.model import Kind, format_amount

from .text import UNKNOWN, number

CAUSES = {
    "memory": "ran out of memory",
    "disk": "ran out of disk",
    "cores": "ran out of cores",
    "gpus": "ran out of GPUs",
    "exhausted": "ran out of something that was not recorded",
    "raised": "raised an error",
    "lost": "lost with its worker",
    "node_lost": "lost with its node",
}
"""Why an attempt did not finish."""

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def time_unit(longest_s: float) -> tuple[float, str]:
    """The unit for times up to so long: its seconds, and its name."""
    return next((unit for unit in _UNITS if longest_s >= 2 * unit[0]), _UNITS[-1])


def duration(seconds: float | None) -> str:
    """A time as people say it.

    >>> duration(90.0), duration(9000.0), duration(0.5), duration(None)
    ('90 s', '2.5 h', '0.5 s', '–')
    """
    if seconds is None:
        return UNKNOWN
    unit, name = time_unit(seconds)
    return f"{number(seconds / unit)} {name}"


def moment(at: float | None) -> str:
    """A point in time.

    >>> moment(1.79e9)
    '2026-09-21 14:13 UTC'
    """
    if at is None:
        return UNKNOWN
    try:
        return f"{datetime.fromtimestamp(at, tz=timezone.utc):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, OSError, ValueError):
        return UNKNOWN


def share(part: float | None) -> str:
    """A part of 1 in percent.

    >>> share(0.123), share(0.0001), share(0.0)
    ('12 %', 'under 1 %', '0 %')
    """
    if part is None:
        return UNKNOWN
    return "under 1 %" if 0 < part < 0.005 else f"{100 * part:.0f} %"


def memory(amount: float | None) -> str:
    """Bytes, to three digits."""
    return UNKNOWN if amount is None else format_amount(Kind.MEMORY, amount)


def with_unit(unit: str) -> Callable[[float | None], str]:
    """What shows numbers in a unit.

    >>> with_unit("GB·h")(1234.5)
    '1,234 GB·h'
    """
    return lambda value: UNKNOWN if value is None else f"{number(value)} {unit}"


gb_h = with_unit("GB·h")


def cause(name: str) -> str:
    """Why an attempt did not finish, in words."""
    return CAUSES.get(name, name)


def plural(count: int, what: str) -> str:
    """So many of something.

    >>> plural(1, "task"), plural(1200, "task"), plural(2, "retry")
    ('1 task', '1,200 tasks', '2 retries')
    """
    if count == 1:
        return f"1 {what}"
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count:,} {many}"
