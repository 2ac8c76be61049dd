"""What people write to look for attempts: times, durations, ranges and labels.

Each function raises `ValueError`, and says how it is written.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from datetime import datetime

from parsl_sizer.model import Kind, parse_amount

Range = tuple[float | None, float | None]
_SPAN = re.compile(r"([0-9]+(?:\.[0-9]*)?)\s*(ms|s|m|min|h|d|w)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def span(text: str) -> float:
    """The seconds of a duration.

    >>> span("3d"), span("90"), span("1.5h")
    (259200.0, 90.0, 5400.0)
    """
    found = _SPAN.fullmatch(text.strip().lower())
    if not found:
        raise ValueError(f"{text!r} is not a duration; write it like 30s, 10m, 2h or 3d")
    return float(found.group(1)) * _SECONDS[found.group(2) or "s"]


def age(text: str) -> float:
    """The moment so long ago, in seconds since the epoch."""
    if not text.strip()[-1:].isalpha():
        raise ValueError(f"{text!r} is not an age; write it like 90d or 12h")
    return time.time() - span(text)


def moment(text: str) -> float:
    """A date, a time, or how long ago; without a zone it is this machine's time.

    >>> moment("1970-01-02T00:00:00+00:00")
    86400.0
    """
    try:
        return datetime.fromisoformat(text.strip().replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        pass
    try:
        return age(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no time; write it like 2025-03-01, 2025-03-01T14:30, 3d or 2h"
        ) from None


def memory_range(text: str) -> Range:
    """From one amount of memory to another.

    >>> memory_range("1GB..4GB"), memory_range("..500MB")
    ((1000000000.0, 4000000000.0), (None, 500000000.0))
    """
    return _range(text, _bytes, "1GB..4GB, 1GB.. or ..4GB")


def time_range(text: str) -> Range:
    """From one duration to another.

    >>> time_range("10s..2h")
    (10.0, 7200.0)
    """
    return _range(text, span, "10s..2h, 10s.. or ..2h")


def _range(text: str, read: Callable[[str], float], example: str) -> Range:
    least, dots, most = (part.strip() for part in text.partition(".."))
    if not dots or not (least or most):
        raise ValueError(f"{text!r} is not a range; write it like {example}")
    found = (read(least) if least else None, read(most) if most else None)
    if found[0] is not None and found[1] is not None and found[0] > found[1]:
        raise ValueError(f"{text!r} is a range that begins after its end")
    return found


def _bytes(text: str) -> float:
    return parse_amount(Kind.MEMORY, text)


def labels(texts: Iterable[str]) -> dict[str, str]:
    """The values of labels, by their names.

    >>> labels(["sample=S1", "formula=a=b"])
    {'sample': 'S1', 'formula': 'a=b'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ValueError(f"{text!r:.60} is not of the form NAME=VALUE")
        if found.setdefault(name, value) != value:
            values = f"{found[name]!r:.60} and {value!r:.60}"
            raise ValueError(f"{name!r:.60} is given two values, {values}")
    return found
