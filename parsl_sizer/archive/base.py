"""The values that archives keep: runs, and the outcomes of their attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from parsl_sizer.model import Outcome

LIVE = "live"
SAMPLED = "sampled"
"""Among an outcome's layers: its peaks are the largest of some samples, so lower bounds."""


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a workflow: what all its attempts have in common.

    `source` is ``"live"``, or the name of the format that it was imported from. Who imports
    the same file again makes the same `run_id`, so that nothing is counted twice.
    """

    run_id: str
    started_at: float = 0.0
    user: str | None = None
    workflow: str | None = None
    checksum: str | None = None
    host: str | None = None
    source: str = LIVE
    versions: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, object] = field(default_factory=dict)


class Entry(NamedTuple):
    """An outcome, and the run that it is of."""

    run: Run
    outcome: Outcome
