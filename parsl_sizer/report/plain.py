"""Runs and attempts as JSON has them, for the command line and the server alike."""

from __future__ import annotations

import json
import math

from parsl_sizer.archive.base import Entry, RunLine
from parsl_sizer.model import Amounts, Kind


def json_text(value: object, *, indent: int | None = 2) -> str:
    """A value as JSON, in which NaN and infinity do not exist: they are null.

    >>> json_text([math.nan, 1.0], indent=None)
    '[null, 1.0]'
    """
    try:
        return json.dumps(value, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def entry_json(entry: Entry) -> dict[str, object]:
    """An attempt as JSON has it; what is not known is null."""
    run, outcome = entry
    attempt, usage, task = outcome.attempt, outcome.usage, outcome.attempt.task
    return {
        "run": run.run_id,
        "task": task.task_id,
        "number": attempt.number,
        "category": task.category,
        "ending": outcome.ending.value,
        "exhausted": sorted(kind.value for kind in outcome.exhausted),
        "submitted_at": task.submitted_at or None,
        "launched_at": attempt.launched_at or None,
        "ended_at": outcome.ended_at or None,
        "wall_s": usage.wall_s,
        "cpu_s": usage.cpu_s,
        "requested": _named(task.requested),
        "allocated": _named(attempt.allocation),
        "peak": _named(usage.peak),
        "why": str(attempt.why),
        "host": outcome.host,
        "layers": list(outcome.layers),
        "command": task.command,
        "labels": dict(task.labels),
    }


def run_json(line: RunLine) -> dict[str, object]:
    """A run as JSON has it; what is not known is null."""
    run = line.run
    return {
        "run": run.run_id,
        "started_at": run.started_at or None,
        "ended_at": line.ended_at or None,
        "user": run.user,
        "workflow": run.workflow,
        "host": run.host,
        "source": run.source,
        "versions": dict(run.versions),
        "labels": dict(run.labels),
        "attempts": line.attempts,
        "categories": line.categories,
    }


def _named(found: Amounts) -> dict[str, float]:
    return {Kind(kind).value: number for kind, number in found.items()}
