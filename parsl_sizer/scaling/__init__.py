"""How many blocks, and when to ask for them? Pure: no clock, no I/O, no thread.

A driver tells the `Planner` what stages a workflow has and what becomes of blocks; the
planner says which blocks to ask for and which to give back, as its `Policy` has it. When a
block starts, `WaitEstimator` learns how long blocks of its `Geometry` wait in the queue, and
says how long before the end of a stage those of the next one are to be asked for.
"""

from .geometry import Geometry, envelope
from .messages import (
    Action,
    BlockEnded,
    BlockStarted,
    CancelBlock,
    Event,
    RequestBlock,
    Stage,
    StageEnded,
    StageExpected,
    StagesPlanned,
    StageStarted,
    Tick,
)
from .planner import Planner
from .policies import POLICIES, Policy, UnknownPolicy, policy
from .waits import PRINTED, Learner, Rule, WaitEstimator

__all__ = [
    "POLICIES",
    "PRINTED",
    "Action",
    "BlockEnded",
    "BlockStarted",
    "CancelBlock",
    "Event",
    "Geometry",
    "Learner",
    "Planner",
    "Policy",
    "RequestBlock",
    "Rule",
    "Stage",
    "StageEnded",
    "StageExpected",
    "StageStarted",
    "StagesPlanned",
    "Tick",
    "UnknownPolicy",
    "WaitEstimator",
    "envelope",
    "policy",
]
