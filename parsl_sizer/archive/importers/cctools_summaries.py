"""Taking a file apart into the summaries of `resource_monitor` that it has.

JSON is taken apart by its braces, so that no more than one summary is held at a time; who
begins a line with a brace begins a summary, so that a damaged one spoils no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .base import Notes
from .cctools_resources import NAMES, TOO_LONG, UNITS, Resources, parsed
from .cells import LONGEST

BAD_SUMMARY = "not a whole summary"
MOST_KEYS = 200
"""No summary in lines has more."""

Lines = Iterable[tuple[int, str | None]]

# A string that does not end in its line goes on to the end of it.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}]')
_VALUE = re.compile(r"(-?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z]+)?")


def objects(lines: Lines, notes: Notes) -> Iterator[Resources]:
    """The outermost objects, one by one."""
    depth, held, length = 0, list[str](), 0
    for _, line in lines:
        if line is None or (depth and line.startswith("{")):
            notes.skip(BAD_SUMMARY if line else TOO_LONG)
            depth = 0
        begin = 0
        for token in _TOKEN.finditer(line or ""):
            if token.group() == "{":
                if not depth:
                    begin, held, length = token.start(), [], 0
                depth += 1
            elif token.group() == "}" and depth:
                depth -= 1
                if not depth:
                    held.append(token.string[begin : token.end()])
                    found, _ = parsed("\n".join(held))
                    if found:
                        yield found
                    else:
                        notes.skip(BAD_SUMMARY)
        if depth and line:
            length += len(line)
            if length > LONGEST:
                notes.skip(BAD_SUMMARY)
                depth = 0
            else:
                held.append(line[begin:])
    if depth:
        notes.skip(BAD_SUMMARY)


def texts(lines: Lines, notes: Notes) -> Iterator[Resources]:
    """The summaries in lines of a key and a value, as they would be in JSON."""
    found: dict[str, object] = {}
    for _, line in lines:
        if line is None:
            notes.skip(TOO_LONG)
            continue
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        is_next = line.startswith("-") or (key == "command" and "command" in found)
        if is_next and found:
            yield found
            found = {}
        if colon and value and not line.startswith(("#", "-")) and len(found) < MOST_KEYS:
            found[key] = _exceeded(value) if key == "limits_exceeded" else _value(key, value)
    if found:
        yield found


def _exceeded(text: str) -> dict[str, object]:
    """The limits in a text like ``resident_memory: 100, wall_time: 3``."""
    pairs = (part.partition(":") for part in text.split(",", 20)[:20])
    return {key.strip(): _value(key.strip(), value.strip()) for key, _, value in pairs}


def _value(key: str, text: str) -> object:
    """A number with its unit, or just the text."""
    found = _VALUE.fullmatch(text) if len(text) < 80 else None
    if found is None:
        return text
    number, unit = found.groups()
    if unit in UNITS:
        return [number, unit]
    is_amount = key in NAMES or key in ("start", "end") or key.endswith("_time")
    return number if unit is None or is_amount else text
