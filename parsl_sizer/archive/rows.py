"""An outcome as a row of a table, and back.

What is rarely there (features, labels, files) is JSON, or NULL if there is none; the
course of memory over time is packed as numbers of four bytes.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from parsl_sizer.model import Amounts, Attempt, Ending, Kind, OptOut, Outcome, TaskInfo, Usage
from parsl_sizer.model.task import opt_outs_named

KINDS = tuple(Kind)
NONE = (None,) * len(KINDS)
ALLOCATED = tuple(f"allocated_{kind.value}" for kind in KINDS)
PEAKS = tuple(f"peak_{kind.value}" for kind in KINDS)
COLUMNS = (
    "task",
    "number",
    "category",
    "ending",
    "submitted_at",
    "launched_at",
    "ended_at",
    "wall_s",
    "cpu_s",
    *ALLOCATED,
    *PEAKS,
    "exhausted",
    "flags",
    "why",
    "host",
    "node",
    "isolation",
    "layers",
    "code_hash",
    "command",
    "features",
    "requested",
    "labels",
    "inputs",
    "opt_outs",
    "priority",
    "series",
    "grown_from",
)
OVERRAN, NODE_LOST, NOT_ENFORCED = 1, 2, 4
SEARCHED = 500
"""So many letters of a label or a path are searched: databases index no longer ones."""
_encoder = json.JSONEncoder(separators=(",", ":"), default=str, skipkeys=True)


def row_of(outcome: Outcome, why: str) -> tuple[object, ...]:
    """The values of an outcome, in the order of `COLUMNS`; `why` is the attempt's, as text."""
    attempt, usage = outcome.attempt, outcome.usage
    task = attempt.task
    allocated, peak = attempt.allocation, usage.peak
    flags = OVERRAN * outcome.overran | NODE_LOST * outcome.node_lost
    flags |= NOT_ENFORCED * (not attempt.enforced)
    return (
        task_key(task.task_id),
        attempt.number,
        clean(task.category),
        outcome.ending.value,
        task.submitted_at,
        attempt.launched_at,
        outcome.ended_at,
        usage.wall_s,
        usage.cpu_s,
        *(map(allocated.get, KINDS) if allocated else NONE),
        *map(peak.get, KINDS),
        _joined(outcome.exhausted) if outcome.exhausted else None,
        flags,
        why,
        outcome.host and clean(outcome.host),
        attempt.node and clean(attempt.node),
        outcome.isolation,
        ",".join(outcome.layers) if outcome.layers else None,
        task.code_hash,
        task.command and clean(task.command),
        _json(task.features),
        _named(task.requested) if task.requested else None,
        _json(task.labels),
        _json(task.inputs),
        _joined(task.opt_outs) if task.opt_outs else None,
        task.priority if math.isfinite(task.priority) else None,
        _packed(usage.series),
        attempt.grown_from,
    )


def outcome_of(row: Sequence[Any]) -> Outcome:
    """The outcome in a row that has the values of `COLUMNS`."""
    values: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    requested: Mapping[str, float] = _unjson(values["requested"], {})
    task = TaskInfo(
        _task_id(values["task"]),
        values["category"],
        submitted_at=values["submitted_at"],
        features=_unjson(values["features"], {}),
        requested={Kind(kind): amount for kind, amount in requested.items()},
        code_hash=values["code_hash"],
        labels=_unjson(values["labels"], {}),
        opt_outs=opt_outs_named(_listed(values["opt_outs"])),
        priority=values["priority"] or 0.0,
        command=values["command"],
        inputs=tuple(_unjson(values["inputs"], ())),
    )
    attempt = Attempt(
        task,
        values["number"],
        _amounts(values, ALLOCATED),
        values["node"],
        values["why"],
        values["launched_at"],
        enforced=not values["flags"] & NOT_ENFORCED,
        grown_from=values["grown_from"],
    )
    usage = Usage(
        _amounts(values, PEAKS), values["wall_s"], values["cpu_s"], _unpacked(values["series"])
    )
    return Outcome(
        attempt,
        Ending(values["ending"]),
        values["ended_at"],
        usage,
        frozenset(Kind(kind) for kind in _listed(values["exhausted"])),
        overran=bool(values["flags"] & OVERRAN),
        host=values["host"],
        isolation=values["isolation"],
        layers=tuple(_listed(values["layers"])),
        node_lost=bool(values["flags"] & NODE_LOST),
    )


def task_key(task_id: int | str) -> str:
    """A task's name in text that says whether it is a number, and sorts numbers in order.

    >>> task_key(7), task_key("7")
    ('000000000007', '"7"')
    """
    return f"{task_id:012}" if isinstance(task_id, int) else _encode(task_id)


def _task_id(key: str) -> int | str:
    found: int | str = json.loads(key) if key.startswith('"') else int(key)
    return found


def label_text(value: object) -> str:
    """A label's value as it is searched for: 7 and "7" are the same."""
    return searched(value if isinstance(value, str) else _encode(value))


def searched(text: str) -> str:
    """As much of a text as is searched."""
    return clean(text[:SEARCHED])


def clean(text: str) -> str:
    """A text that can be written: names of files may hold bytes that are no letters."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _encode(value: object) -> str:
    """JSON; what it has no form for, such as a key of two numbers, is left out."""
    try:
        return _encoder.encode(value)
    except (ValueError, RecursionError):  # it holds itself
        return "{}"


def _joined(values: Iterable[Kind] | Iterable[OptOut]) -> str:
    return ",".join(sorted([value.value for value in values]))


def _named(amounts: Amounts) -> str:
    return _encode({Kind(kind).value: amount for kind, amount in amounts.items()})


def _json(value: Any) -> str | None:
    return _encode(value) if value else None


def _unjson(text: str | None, nothing: Any) -> Any:
    return json.loads(text) if text else nothing


def _listed(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _amounts(values: Mapping[str, Any], columns: Sequence[str]) -> dict[Kind, float]:
    pairs = zip(KINDS, columns, strict=True)
    return {kind: values[column] for kind, column in pairs if values[column] is not None}


def _packed(series: Sequence[tuple[float, float]]) -> bytes | None:
    if not series:
        return None
    numbers = [number for point in series for number in point]
    try:
        return struct.pack(f"<{len(numbers)}f", *numbers)
    except OverflowError:
        return None


def _unpacked(packed: bytes | None) -> tuple[tuple[float, float], ...]:
    if not packed:
        return ()
    numbers = struct.unpack(f"<{len(packed) // 4}f", bytes(packed))
    points = zip(numbers[::2], numbers[1::2], strict=True)
    return tuple(point for point in points if all(map(math.isfinite, point)))
