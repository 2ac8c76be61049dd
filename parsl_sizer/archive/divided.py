"""Writes all of some entries but those that are refused.

One that cannot be kept must not cost the others that were written with it: what is refused
is halved until it stands alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .base import ArchiveError, Entry, Refused

MANY = 100
"""With so many refused, it is not one of them that is odd: the others are not tried alone."""


class Refusal(NamedTuple):
    """Entries that were refused, and why."""

    entries: Sequence[Entry]
    error: Exception


def put(
    write: Callable[[Sequence[Entry]], int], entries: Sequence[Entry]
) -> tuple[int, list[Refusal]]:
    """How many were new, and what was refused.

    `write` keeps all that it is given or nothing. An `ArchiveError` that is not about what is
    written, but about the archive, comes out: then some may be written, which does no harm.
    """
    new, refusals, parts = 0, list[Refusal](), [entries]
    while parts:
        part = parts.pop()
        try:
            new += write(part)
        except Exception as error:
            if isinstance(error, ArchiveError) and not isinstance(error, Refused):
                raise
            if len(part) > 1 and len(refusals) < MANY:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]  # the first half is next
            else:
                refusals.append(Refusal(part, error))
    return new, refusals
