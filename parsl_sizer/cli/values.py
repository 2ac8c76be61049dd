"""What people type for an argument, and what it means: numbers, amounts, times, ranges."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TypeVar

from parsl_sizer.archive import criteria
from parsl_sizer.model import Kind, Resources, parse_amounts

NODE = Resources(cores=16, memory=64e9, disk=64e9)
"""The node of Phung et al., WORKS 2021."""

T = TypeVar("T")


def count(text: str) -> int:
    """A whole number, 0 or more."""
    return _whole(text, least=0)


def positive(text: str) -> int:
    """A whole number, 1 or more."""
    return _whole(text, least=1)


def port(text: str) -> int:
    """The number of a port."""
    number = _whole(text, least=0)
    if number > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; the last one is 65535")
    return number


def _whole(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, {least} or more")
    return number


def share(text: str) -> float:
    """A number from 0 to 1."""
    number = _number(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return number


def above_zero(text: str) -> float:
    """A finite number above 0."""
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def names(text: str) -> list[str]:
    """Some names, separated by commas."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing")
    return found


def node(text: str) -> Resources:
    """The largest node; what is not said of it is as of the usual one."""
    return NODE.updated(amounts(text))


def amounts(text: str) -> dict[Kind, float]:
    """Amounts of a node that a task can run in."""
    try:
        found = parse_amounts(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    for kind, amount in found.items():
        least = {Kind.GPUS: 0.0, Kind.CORES: 1e-3}.get(kind, 1e6)
        if amount < least:
            given = text.strip()
            hint = "; a unit may be missing, as in 64GB" if least == 1e6 else ""
            raise argparse.ArgumentTypeError(f"{given!r} leaves no {kind.value} to run in{hint}")
    return found


def _told(read: Callable[[str], T]) -> Callable[[str], T]:
    """What reads a text, with its faults as argparse shows them."""

    def read_or_tell(text: str) -> T:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read_or_tell


age = _told(criteria.age)
moment = _told(criteria.moment)
memory_range = _told(criteria.memory_range)
time_range = _told(criteria.time_range)
