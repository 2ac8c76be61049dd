"""The archive that a command works on, and how its contents are shown."""

from __future__ import annotations

import logging
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from parsl_sizer.archive.base import Archive, ArchiveError, Query, RunLine
from parsl_sizer.archive.facts import size_of
from parsl_sizer.archive.open import OFF, VARIABLE, Where, location, open_archive, shown
from parsl_sizer.model import Amounts, Kind, SizerError, format_amount
from parsl_sizer.report.text import UNKNOWN

from .output import say
from .search import LAST_RUN

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
MOMENT = "%Y-%m-%d %H:%M:%S"
SUGGESTED = 3


class UnknownRun(SizerError):
    """No run of that name, or several; the message says which there are."""


class Opened(NamedTuple):
    """An archive, and where it is."""

    archive: Archive
    where: Where

    @property
    def name(self) -> str:
        return shown(self.where)

    @property
    def size(self) -> str:
        """How large its file is, in a sentence; empty of what is not a file."""
        size = size_of(self.where) if isinstance(self.where, Path) else None
        if size is None:
            return ""
        return f" The file has {format_amount(Kind.MEMORY, size)}."


def place(arguments: Namespace) -> Where:
    """Where the archive is that was asked for."""
    if (found := location(arguments.archive)) is None:
        raise ArchiveError(
            f"There is no archive, as {VARIABLE} is {OFF}; name one with --archive WHERE."
        )
    return found


@contextmanager
def opened(arguments: Namespace, *, read_only: bool = True) -> Iterator[Opened]:
    """The archive that was asked for, while it is used."""
    where = place(arguments)
    # What PostgreSQL's driver warns of is an error of ours as well, and told once.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    archive = open_archive(where, read_only=read_only, warn=say)
    try:
        yield Opened(archive, where)
    finally:
        archive.close()


def the_run(wanted: str, found: Opened) -> RunLine:
    """The run that is meant by its id, by the beginning or the end of its id, or as the last."""
    if wanted:
        exact = Query(last=1) if wanted == LAST_RUN else Query(run_id=wanted)
        for line in found.archive.runs(exact):
            return line
    lines = {line.run.run_id: line for line in found.archive.runs()}
    if not lines:
        raise UnknownRun(f"There is no run in the archive {found.name} yet.")
    begun = [name for name in lines if wanted and name.startswith(wanted)]
    # On a narrow terminal runs are called by their ends: whole parts of an id.
    meant = begun or [name for name in lines if wanted and name.endswith(f"-{wanted}")]
    if len(meant) == 1:
        return lines[meant[0]]
    if meant:
        part = "beginning" if begun else "end"
        raise UnknownRun(
            f"{wanted!r} is the {part} of {len(meant):,} runs: {_listed(meant)}; write more of it."
        )
    if close := get_close_matches(wanted, lines, n=SUGGESTED, cutoff=0.5):
        raise UnknownRun(f"There is no run {wanted!r}; did you mean {' or '.join(close)}?")
    raise UnknownRun(f"There is no run {wanted!r}; the newest are {_listed([*lines])}.")


def of_the_run(query: Query, found: Opened) -> Query:
    """The same query, with the whole id of the run that it names."""
    if query.run_id is None:
        return query
    return replace(query, run_id=the_run(query.run_id, found).run.run_id)


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(names[:SUGGESTED])
    return f"{listed}, …" if len(names) > SUGGESTED else listed


def when(moment: float, form: str = MOMENT) -> str:
    """A moment as a person writes it, in this machine's time; 0 is one that is not known."""
    if moment <= 0:
        return UNKNOWN
    try:
        return time.strftime(form, time.localtime(moment))
    except (ValueError, OverflowError, OSError):
        return UNKNOWN


def lasting(seconds: float) -> str:
    """A duration as a person writes it.

    >>> lasting(0.25), lasting(75), lasting(8000)
    ('0.25 s', '1.2 min', '2.2 h')
    """
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.3g} s"


def counted(number: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "run"), counted(1200, "attempt")
    ('1 run', '1,200 attempts')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def amount(kind: Kind, amounts: Amounts) -> str:
    """What there is of a kind, as a person writes it."""
    return format_amount(kind, amounts[kind]) if kind in amounts else UNKNOWN


def amounts(found: Amounts) -> str:
    """All that there is, as a person writes it.

    >>> amounts({Kind.CORES: 2.0, Kind.MEMORY: 1.5e9})
    '2 cores, 1.5 GB memory'
    """
    listed = (
        f"{format_amount(kind, found[kind])}{f' {kind.value}' if _needs_name(kind) else ''}"
        for kind in Kind
        if kind in found
    )
    return ", ".join(listed) or UNKNOWN


def _needs_name(kind: Kind) -> bool:
    return kind in (Kind.MEMORY, Kind.DISK)
