"""Reading and writing amounts as people do: ``memory=64GB,cores=16``, ``1.9 GB``.

1 GB is 1000 MB is 10**9 bytes, everywhere in the project.
"""

from __future__ import annotations

import math
import re

from .resources import Kind

MB = 1e6
"""Bytes in a megabyte."""

_BYTES = {"": 1.0, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15}
_BYTES |= {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BYTES |= {"KIB": 2.0**10, "MIB": 2.0**20, "GIB": 2.0**30, "TIB": 2.0**40}
_KINDS = {kind.value: kind for kind in Kind}
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")


def is_bytes(kind: Kind) -> bool:
    """Whether amounts of this kind are bytes."""
    return kind is Kind.MEMORY or kind is Kind.DISK


def parse_amount(kind: Kind, text: str) -> float:
    """The amount that a person wrote.

    >>> parse_amount(Kind.MEMORY, "1.5GB"), parse_amount(Kind.CORES, "16")
    (1500000000.0, 16.0)
    """
    found = _NUMBER.fullmatch(text)
    unit = found.group(2).upper() if found else ""
    if not found or unit not in (_BYTES if is_bytes(kind) else {"": 1.0}):
        example = "64GB or 500MB" if is_bytes(kind) else "16"
        raise ValueError(f"{kind.value}={text!r} is not an amount; write it like {example}")
    amount = float(found.group(1)) * _BYTES[unit]
    if not math.isfinite(amount):
        raise ValueError(f"{kind.value}={text!r} is not a finite amount")
    return amount


def parse_amounts(text: str) -> dict[Kind, float]:
    """Several amounts, separated by commas.

    >>> parse_amounts("cores=16,memory=64GB")
    {<Kind.CORES: 'cores'>: 16.0, <Kind.MEMORY: 'memory'>: 64000000000.0}
    """
    amounts: dict[Kind, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        kind = _KINDS.get(name.strip().lower())
        if kind is None or not equals:
            kinds = ", ".join(_KINDS)
            raise ValueError(f"{part!r} is not of the form KIND=AMOUNT with KIND one of {kinds}")
        amounts[kind] = parse_amount(kind, value)
    return amounts


def format_amount(kind: Kind, amount: float) -> str:
    """The amount as a person would write it, to three digits.

    >>> format_amount(Kind.MEMORY, 1.93e9), format_amount(Kind.CORES, 2.0)
    ('1.93 GB', '2 cores')
    """
    if not is_bytes(kind):
        number = f"{amount:.3g}"
        return f"{number} {kind.value if number != '1' else kind.value[:-1]}"
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if abs(amount) < 999.5 or unit == "TB":
            break
        amount /= 1000.0
    return f"{amount:.3g} {unit}"
