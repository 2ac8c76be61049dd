"""What the logs of CCTools have in common: their lines, and amounts with units.

An amount is a pair like ``[309, "MB"]``, or just a number. Memory and disk are counted in MB
of 2**20 bytes there. What was measured is taken for exactly that, here; where we ask the
engines for something we count their MB as 10**6 bytes, which errs on the safe side.

Their resource monitor looks at a task from time to time, every 5 s if nobody says otherwise,
so all peaks are those of samples. It does not measure GPUs, and writes 0 for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from parsl_sizer.model import Kind

from .base import ImportFailed, amount
from .cells import LONGEST, epoch, positive

TOO_LONG = "a line of more than 1 MB"
UNITS = {"B": 1.0, "KB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40}
UNITS |= {"s": 1.0, "ms": 1e-3, "us": 1e-6, "cores": 1.0, "gpus": 1.0}
NAMES = {
    "cores": Kind.CORES,
    "memory": Kind.MEMORY,
    "resident_memory": Kind.MEMORY,  # until 2016
    "disk": Kind.DISK,
    "workdir_footprint": Kind.DISK,  # until 2016
    "gpus": Kind.GPUS,
}
DEFAULT = {Kind.MEMORY: "MB", Kind.DISK: "MB"}

Resources = Mapping[str, object]


def lines(path: Path) -> Iterator[tuple[int, str | None]]:
    """The lines of a file and their numbers; None for one that is longer than any should be."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST):
                number += 1
                whole = line.endswith(b"\n") or len(line) < LONGEST
                yield number, line.decode("utf-8", "replace").rstrip() if whole else None
                while not whole:
                    rest = file.readline(LONGEST)
                    whole = rest.endswith(b"\n") or not rest
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ImportFailed(f"{path} cannot be read: {reason}.") from None


def parsed(text: str, start: int = 0) -> tuple[Resources, int]:
    """The object in a text, and where it ends; an empty one if there is none.

    >>> parsed('0 {"memory":[1,"MB"]} {}', 2)
    ({'memory': [1, 'MB']}, 21)
    """
    try:
        found, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return {}, len(text)
    return (found if isinstance(found, dict) else {}), end


def measure(value: object, unit: str = "") -> float | None:
    """The number in a pair, in bytes, seconds or cores; None if it is not known.

    A number alone is in the `unit` given.

    >>> measure([2, "MB"]), measure([1617129468898113, "us"]), measure([-1, "MB"]), measure("N/A")
    (2097152.0, 1617129468.898113, None, None)
    """
    if isinstance(value, list):
        if len(value) != 2 or not isinstance(value[1], str) or value[1] not in UNITS:
            return None
        value, unit = value
    if isinstance(value, bool):
        return None
    return amount(value, UNITS.get(unit, 1.0))


def moment(value: object) -> float | None:
    """A time since the epoch; old versions counted it in microseconds and did not say so."""
    number = measure(value)
    if number is not None and epoch(number) is None:
        number *= UNITS["us"]
    return epoch(positive(number))


def limits(resources: Resources) -> dict[Kind, float]:
    """What was asked for, allocated or not to be exceeded; a 0 says that nothing was."""
    found = {}
    for name, kind in NAMES.items():
        number = positive(measure(resources.get(name), DEFAULT.get(kind, "")))
        if number is not None:
            found[kind] = number
    return found


def peaks(resources: Resources) -> dict[Kind, float]:
    """What the monitor has seen.

    Nothing lives in no memory and on no core: a 0 of these is that of a task which the
    monitor had no time to look at. Its cores are those of the last while; a task had at
    least those of its whole time.
    """
    found = limits(resources)
    found.pop(Kind.GPUS, None)
    average = positive(measure(resources.get("cores_avg")))
    if average is not None:
        found[Kind.CORES] = max(average, found.get(Kind.CORES, 0.0))
    if Kind.DISK not in found:
        empty = measure(resources.get("disk", resources.get("workdir_footprint")), "MB")
        if empty is not None:
            found[Kind.DISK] = empty
    return found
