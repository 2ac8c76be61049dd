"""How an attempt ended and what it used: the one type that everything after a run consumes."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from .empty import EMPTY
from .resources import NOTHING, Amounts, Kind
from .task import Attempt


class Ending(str, Enum):
    """How an attempt ended. Only EXHAUSTED calls for a larger allocation."""

    DONE = "done"
    RAISED = "raised"
    EXHAUSTED = "exhausted"
    LOST = "lost"


class Usage(NamedTuple):
    """What an attempt was measured to use. What could not be measured is absent.

    Of an attempt that did not finish, a peak is a lower bound.
    """

    peak: Amounts = EMPTY
    wall_s: float = 0.0
    cpu_s: float | None = None
    series: tuple[tuple[float, float], ...] = ()


UNMEASURED = Usage()


class Outcome(NamedTuple):
    """The end of an attempt.

    Of a LOST one `node_lost` says that its whole node went: nothing the task did.
    """

    attempt: Attempt
    ending: Ending
    ended_at: float = 0.0
    usage: Usage = UNMEASURED
    exhausted: frozenset[Kind] = NOTHING
    overran: bool = False
    host: str | None = None
    isolation: str | None = None
    layers: tuple[str, ...] = ()
    node_lost: bool = False
