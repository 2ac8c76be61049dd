"""What is looked for: the part of an address after the question mark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qsl

from parsl_sizer.archive.base import Query
from parsl_sizer.archive.criteria import labels, memory_range, moment, time_range
from parsl_sizer.model import Ending

from .answer import Refused

MOST_FIELDS, LONGEST = 50, 1000
"""Things that can be looked for at a time, and letters of each."""
REPEATED = ("ending", "label")
NAMES = (
    *("run", "category", "user", "workflow", "source", "command", "input", "host"),
    *("ending", "label", "since", "until", "memory", "time", "last"),
)
"""All that can be looked for, named as the options of ``parsl-sizer history``."""
T = TypeVar("T")
V = TypeVar("V")


class Limit(NamedTuple):
    """How many are shown if nothing is said, and at the most."""

    usual: int
    most: int


def query_of(text: str, limit: Limit) -> Query:
    """The query in an address."""
    found = fields(text, NAMES)
    alone = {name: values[0] for name, values in found.items()}
    return Query(
        run_id=alone.get("run"),
        category=alone.get("category"),
        user=alone.get("user"),
        workflow=alone.get("workflow"),
        command=alone.get("command"),
        input=alone.get("input"),
        host=alone.get("host"),
        source=alone.get("source"),
        endings=tuple(_read("ending", value, _ending) for value in found.get("ending", ())),
        labels=_read("label", found.get("label", []), labels),
        since=_one("since", alone, moment),
        until=_one("until", alone, moment),
        memory=_one("memory", alone, memory_range) or (None, None),
        wall_s=_one("time", alone, time_range) or (None, None),
        last=_last(alone.get("last"), limit),
    )


def fields(text: str, known: Collection[str]) -> dict[str, list[str]]:
    """What was said by name; what is empty was not said, as in a form that is not filled in."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refused(
            400, f"What is looked for is not UTF-8, or more than {MOST_FIELDS} things."
        ) from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in known:
            listed = f"what is known is {', '.join(known)}" if known else "nothing is, here"
            raise Refused(400, f"{name!r:.60} cannot be looked for; {listed}.")
        if len(value) > LONGEST or "\0" in value:
            raise Refused(400, f"{name} is not a text of at most {LONGEST:,} letters.")
        if value:
            found.setdefault(name, []).append(value)
    for name, values in found.items():
        if len(values) > 1 and name not in REPEATED:
            raise Refused(400, f"{name} is there {len(values)} times, and can be there once.")
    return found


def _one(name: str, found: Mapping[str, str], read: Callable[[str], T]) -> T | None:
    return _read(name, found[name], read) if name in found else None


def _read(name: str, value: V, read: Callable[[V], T]) -> T:
    try:
        return read(value)
    except ValueError as error:
        raise Refused(400, f"{name}: {error}.") from None


def _ending(value: str) -> Ending:
    try:
        return Ending(value)
    except ValueError:
        listed = ", ".join(ending.value for ending in Ending)
        raise ValueError(f"{value!r:.60} is none of {listed}") from None


def _last(value: str | None, limit: Limit) -> int:
    if value is None:
        return limit.usual
    is_number = value.isascii() and value.isdigit() and len(value) <= len(str(limit.most))
    if not is_number or not 1 <= int(value) <= limit.most:
        raise Refused(
            400,
            f"last is {value!r:.40}, where a whole number from 1 to {limit.most:,} is expected.",
        )
    return int(value)
