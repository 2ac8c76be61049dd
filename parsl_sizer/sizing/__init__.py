"""The decision loop. Pure: no clock, no I/O, no thread.

Drivers report events: a task was `Submitted`, a node `Joined` or `Left` or is `Expected`, an
attempt `Started` or `Ended` or was `Withdrawn`. The `Sizer` asks `Categories` how large each
attempt must be, lets it wait in the queue until the ledger finds room, and answers with
actions: `Launch` an attempt, `Consult` the user about a task that ran out, `Settle` a task.
What takes I/O is an action, too, and its answer an event: `Load` the past of a category, which
is here when it is `Loaded`.
Every `Outcome` goes back to `Categories`, and so to the strategy of its category, before
the next task is sized.
"""

from .categories import Categories
from .messages import (
    Action,
    Consult,
    Consulted,
    Ended,
    Event,
    Expected,
    Joined,
    Launch,
    Left,
    Load,
    Loaded,
    Settle,
    Started,
    Submitted,
    Tick,
    Withdrawn,
)
from .sizer import Sizer

__all__ = [
    "Action",
    "Categories",
    "Consult",
    "Consulted",
    "Ended",
    "Event",
    "Expected",
    "Joined",
    "Launch",
    "Left",
    "Load",
    "Loaded",
    "Settle",
    "Sizer",
    "Started",
    "Submitted",
    "Tick",
    "Withdrawn",
]
