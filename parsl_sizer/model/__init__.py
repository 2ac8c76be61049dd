"""The values everybody speaks in: frozen, standard library only.

A user's call becomes a `TaskInfo`; the sizer turns it into an `Attempt` with an
allocation (`Amounts`); what comes back is an `Outcome` with its `Ending` and
`Usage`. Learning, archive and report consume outcomes and nothing else.
"""

from .errors import ResourcesExhausted, SizerError, TraceError, UnknownStrategy
from .nodes import Node, NodeGroup, NodeProfile
from .outcome import Ending, Outcome, Usage
from .possible import are_possible, can_be, is_possible
from .printable import logger_for, printable
from .resources import NOTHING, Amounts, Kind, Resources, exceeded
from .task import NO_OPT_OUT, Attempt, OptOut, TaskInfo
from .units import MB, format_amount, is_bytes, parse_amount, parse_amounts

__all__ = [
    "MB",
    "NOTHING",
    "NO_OPT_OUT",
    "Amounts",
    "Attempt",
    "Ending",
    "Kind",
    "Node",
    "NodeGroup",
    "NodeProfile",
    "OptOut",
    "Outcome",
    "Resources",
    "ResourcesExhausted",
    "SizerError",
    "TaskInfo",
    "TraceError",
    "UnknownStrategy",
    "Usage",
    "are_possible",
    "can_be",
    "exceeded",
    "format_amount",
    "is_bytes",
    "is_possible",
    "logger_for",
    "parse_amount",
    "parse_amounts",
    "printable",
]
