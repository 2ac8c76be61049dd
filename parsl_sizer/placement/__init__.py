"""Where, and may it start now? Pure: no clock, no I/O, no thread.

A task that is to run becomes a `Waiting` and joins the `Queue`; its `Order` says who is
looked at first. A `Gate`, where there is one, lets a few tasks of a new category go before
the others. The `Ledger` knows the nodes that are here and what is claimed on them: it finds a
node with room, and the claim stands until the attempt has ended. What none of them decides is
how large an attempt is; the sizer brings that along.

Where nodes differ, `grouped` tells which are alike by what was measured of them, and
`node_labels` and `TaskLabels` how strong a group and how demanding a category is; a
`Policy` chooses among the nodes with room by that.
"""

from .gate import Gate
from .groups import grouped, named
from .labels import TaskLabels, capacities, node_labels
from .ledger import Demand, Ledger, demand
from .orders import ORDERS, Order, UnknownOrder, order
from .policy import POLICIES, Place, Policy, UnknownPolicy, policy
from .queue import Lines, Queue, Waiting, alike

__all__ = [
    "ORDERS",
    "POLICIES",
    "Demand",
    "Gate",
    "Ledger",
    "Lines",
    "Order",
    "Place",
    "Policy",
    "Queue",
    "TaskLabels",
    "UnknownOrder",
    "UnknownPolicy",
    "Waiting",
    "alike",
    "capacities",
    "demand",
    "grouped",
    "named",
    "node_labels",
    "order",
    "policy",
]
