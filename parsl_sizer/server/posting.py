"""What is posted: lines as ``parsl-sizer export`` writes them, all or none of them."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO

from parsl_sizer.archive.base import Entry
from parsl_sizer.archive.importers.lines import taken
from parsl_sizer.archive.lines import BadLine

from .answer import Refused

MOST_LINES = 20_000
"""That may be posted at a time."""
LONGEST_NAME = 500
"""Letters of the id of a run, which is in addresses, and of a label's name."""
DEEPEST = 20
"""Lists in lists in labels: what is read has to be written again."""
AHEAD_S = 86_400.0
"""So far the clocks of those who post may be ahead of ours. What ended in a thousand years would
be the newest until then, and what is newest is learned from."""


def entries_of(body: bytes, now: float) -> list[Entry]:
    """The entries in what was posted; raises `Refused` with the line that is not one."""
    if body.count(b"\n") > MOST_LINES:
        raise Refused(413, f"No more than {MOST_LINES:,} lines can be posted at a time.")
    entries = []
    for number, line in enumerate(BytesIO(body), start=1):
        if line.isspace():
            continue
        try:
            entry = taken(line)
            _check(entry, now)
        except BadLine as error:
            raise Refused(400, f"Line {number:,}: {error}. Nothing was recorded.") from None
        entries.append(entry)
    if not entries:
        raise Refused(400, "Nothing was posted; post what parsl-sizer export writes.")
    return entries


def _check(entry: Entry, now: float) -> None:
    attempt = entry.outcome.attempt
    for what, moment in (
        ("started_at", entry.run.started_at),
        ("submitted_at", attempt.task.submitted_at),
        ("launched_at", attempt.launched_at),
        ("ended_at", entry.outcome.ended_at),
    ):
        if moment > now + AHEAD_S:
            raise BadLine(f"{what} is {moment:.15g}, more than a day ahead of the server's clock")
    name = entry.run.run_id
    if len(name) > LONGEST_NAME or not name.isprintable() or name in (".", ".."):
        raise BadLine(f"run_id is no name of at most {LONGEST_NAME} letters")
    for labels in (entry.run.labels, attempt.task.labels):
        if any(len(name) > LONGEST_NAME for name in labels):
            raise BadLine(f"a label's name has more than {LONGEST_NAME} letters")
        if _is_deep(labels):
            raise BadLine(f"a label holds more than {DEEPEST} lists in each other")


def _is_deep(labels: Mapping[str, object]) -> bool:
    level = list(labels.values())
    for _ in range(DEEPEST):
        level = [
            inner
            for value in level
            if isinstance(value, (dict, list))
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return any(isinstance(value, (dict, list)) for value in level)
