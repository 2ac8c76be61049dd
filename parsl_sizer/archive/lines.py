"""Entries as lines of JSON: what is exported, set aside, and sent over a network.

Whoever wrote a line is not trusted: it has numbers that can be, texts and lists of a
bounded size, or it is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

from parsl_sizer.model import (
    Attempt,
    Ending,
    Kind,
    Outcome,
    SizerError,
    TaskInfo,
    Usage,
)
from parsl_sizer.model.task import opt_outs_named

from .base import Entry, Run

LONGEST = 1 << 20
"""Letters that a line has at most."""
TEXT, ITEMS = 10_000, 1000
"""Letters that a text has at most, and things that a list has."""
MOST = 1e18


class BadLine(SizerError, ValueError):
    """A line that is not an entry; the message says what is wrong with it."""


def line_of(entry: Entry) -> str:
    """An entry in one line; what is absent or as usual is left out."""
    run, outcome = entry
    attempt, usage = outcome.attempt, outcome.usage
    task = attempt.task
    found: dict[str, object] = {
        "run": _without_nothing(
            {
                "run_id": run.run_id,
                "started_at": run.started_at,
                "user": run.user,
                "workflow": run.workflow,
                "checksum": run.checksum,
                "host": run.host,
                "source": run.source,
                "versions": dict(run.versions),
                "labels": dict(run.labels),
            }
        ),
        "task": task.task_id,
        "category": task.category,
        "number": attempt.number,
        "ending": outcome.ending.value,
        "wall_s": usage.wall_s,
    }
    found |= _without_nothing(
        {
            "submitted_at": task.submitted_at,
            "launched_at": attempt.launched_at,
            "ended_at": outcome.ended_at,
            "cpu_s": usage.cpu_s,
            "allocated": _named(attempt.allocation),
            "grown_from": attempt.grown_from,
            "peak": _named(usage.peak),
            "requested": _named(task.requested),
            "features": dict(task.features),
            "exhausted": sorted(kind.value for kind in outcome.exhausted),
            "overran": outcome.overran,
            "node_lost": outcome.node_lost,
            "unlimited": not attempt.enforced,
            "why": str(attempt.why)[:TEXT],
            "host": outcome.host,
            "node": attempt.node,
            "isolation": outcome.isolation,
            "layers": list(outcome.layers),
            "code_hash": task.code_hash,
            "command": task.command and task.command[:TEXT],
            "labels": dict(islice(task.labels.items(), ITEMS)),
            "inputs": [path[:TEXT] for path in task.inputs[:ITEMS]],
            "opt_outs": sorted(opt_out.value for opt_out in task.opt_outs),
            "priority": task.priority if math.isfinite(task.priority) else None,
            "series": [list(point) for point in usage.series],
        }
    )
    try:
        return json.dumps(found, separators=(",", ":"), default=str, skipkeys=True)
    except (ValueError, RecursionError):  # labels that hold themselves
        del found["labels"]
        return json.dumps(found, separators=(",", ":"), default=str, skipkeys=True)


def entry_of(line: str | bytes) -> Entry:
    """The entry in a line; raises `BadLine`."""
    if len(line) > LONGEST:
        raise BadLine(f"a line of {len(line):,} letters, where {LONGEST:,} are the most")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"not JSON ({error})") from None
    reader = _Reader(found, "the line")
    run = reader.inside("run")
    exhausted = frozenset(_one_of(Kind, name) for name in reader.texts("exhausted"))
    task = TaskInfo(
        reader.name("task"),
        reader.text("category", needed=True) or "",
        submitted_at=reader.number("submitted_at") or 0.0,
        features=reader.numbers("features"),
        requested=reader.amounts("requested"),
        code_hash=reader.text("code_hash"),
        labels=reader.mapping("labels"),
        opt_outs=opt_outs_named(reader.texts("opt_outs")),
        priority=reader.number("priority", least=-MOST) or 0.0,
        command=reader.text("command"),
        inputs=reader.texts("inputs"),
    )
    attempt = Attempt(
        task,
        int(reader.number("number", least=1, most=1e6) or 1),
        reader.amounts("allocated"),
        reader.text("node"),
        reader.text("why") or "",
        reader.number("launched_at") or 0.0,
        enforced=not reader.flag("unlimited"),
        grown_from=reader.number("grown_from"),
    )
    usage = Usage(
        reader.amounts("peak"),
        reader.number("wall_s") or 0.0,
        reader.number("cpu_s"),
        reader.points("series"),
    )
    outcome = Outcome(
        attempt,
        _one_of(Ending, reader.text("ending", needed=True)),
        reader.number("ended_at") or 0.0,
        usage,
        exhausted,
        overran=reader.flag("overran"),
        host=reader.text("host"),
        isolation=reader.text("isolation"),
        layers=reader.texts("layers"),
        node_lost=reader.flag("node_lost"),
    )
    return Entry(
        Run(
            run.text("run_id", needed=True) or "",
            run.number("started_at") or 0.0,
            run.text("user"),
            run.text("workflow"),
            run.text("checksum"),
            run.text("host"),
            run.text("source") or "live",
            {name: str(value) for name, value in run.mapping("versions").items()},
            run.mapping("labels"),
        ),
        outcome,
    )


class _Reader:
    """Takes checked values out of what came in."""

    def __init__(self, found: object, what: str) -> None:
        if not isinstance(found, dict):
            raise BadLine(f"{what} is not an object in braces")
        self._found: dict[str, Any] = found

    def inside(self, key: str) -> _Reader:
        return _Reader(self._found.get(key), key)

    def text(self, key: str, *, needed: bool = False) -> str | None:
        value = self._found.get(key)
        if value is None and not needed:
            return None
        if not isinstance(value, str) or len(value) > TEXT or (needed and not value):
            raise BadLine(f"{key} is {_shown(value)}, where a text of at most {TEXT:,} letters is")
        return value or None  # an empty one says nothing

    def name(self, key: str) -> int | str:
        value = self._found.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63:
            return value
        return self.text(key, needed=True) or ""

    def number(self, key: str, *, least: float = 0.0, most: float = MOST) -> float | None:
        value = self._found.get(key)
        return None if value is None else _number(value, key, least, most)

    def flag(self, key: str) -> bool:
        value = self._found.get(key, False)
        if not isinstance(value, bool):
            raise BadLine(f"{key} is {_shown(value)}, where true or false is expected")
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        value = self._found.get(key, {})
        if not isinstance(value, dict) or len(value) > ITEMS:
            raise BadLine(f"{key} is {_shown(value)}, where an object in braces is expected")
        return value

    def numbers(self, key: str) -> dict[str, float]:
        found = self.mapping(key)
        return {name: _number(value, name, -MOST, MOST) for name, value in found.items()}

    def amounts(self, key: str) -> dict[Kind, float]:
        found = self.mapping(key)
        return {_one_of(Kind, name): _number(v, name, 0.0, MOST) for name, v in found.items()}

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._found.get(key, [])
        if (
            not isinstance(value, list)
            or len(value) > ITEMS
            or not all(isinstance(item, str) and len(item) <= TEXT for item in value)
        ):
            raise BadLine(f"{key} is {_shown(value)}, where a list of texts is expected")
        return tuple(value)

    def points(self, key: str) -> tuple[tuple[float, float], ...]:
        value = self._found.get(key, [])
        if not isinstance(value, list) or len(value) > ITEMS:
            raise BadLine(f"{key} is {_shown(value)}, where a list of points is expected")
        points = []
        for point in value:
            if not isinstance(point, list) or len(point) != 2:
                raise BadLine(f"{key} has {_shown(point)}, where a pair of numbers is expected")
            points.append((_number(point[0], key, 0.0, MOST), _number(point[1], key, 0.0, MOST)))
        return tuple(points)


def _number(value: object, key: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise BadLine(
            f"{key} is {_shown(value)}, where a number from {least:g} to {most:g} is expected"
        )
    return float(value)


def _one_of(names: Any, name: object) -> Any:
    try:
        return names(name)
    except ValueError:
        listed = ", ".join(item.value for item in names)
        raise BadLine(f"{_shown(name)} is none of {listed}") from None


def _named(amounts: Mapping[Kind, float]) -> dict[str, float]:
    return {Kind(kind).value: amount for kind, amount in amounts.items() if math.isfinite(amount)}


def _without_nothing(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", 0, {}, [])}


def _shown(value: object) -> str:
    return f"{value!r:.60}"
