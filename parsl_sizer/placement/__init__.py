"""Where, and may it start now? Pure: no clock, no I/O, no thread.

A task that is to run becomes a `Waiting` and joins the `Queue`; its `Order` says who is
looked at first. A `Gate`, where there is one, lets a few tasks of a new category go before
the others. The `Ledger` knows the nodes that are here and what is claimed on them: it finds a
node with room, and the claim stands until the attempt has ended. What none of them decides is
how large an attempt is; the sizer brings that along.
"""

from .gate import Gate
from .ledger import Demand, Ledger, demand
from .orders import ORDERS, Order, UnknownOrder, order
from .queue import Lines, Queue, Waiting

__all__ = [
    "ORDERS",
    "Demand",
    "Gate",
    "Ledger",
    "Lines",
    "Order",
    "Queue",
    "UnknownOrder",
    "Waiting",
    "demand",
    "order",
]
