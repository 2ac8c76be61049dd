"""How many nodes would all tasks that are not over fill, and of which group?"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from parsl_sizer.model import Amounts, Resources, TaskInfo, exceeded


class Need(NamedTuple):
    """What a task has on a node, or what so many tasks that wait are going to ask for."""

    task: TaskInfo
    amounts: Amounts
    times: int = 1
    node: str | None = None


class Supply(NamedTuple):
    """What a group may have at most: so many nodes, each with so much, if that is known."""

    group: str
    capacity: Resources | None
    most: float = math.inf
    slots: int = 0


Preference = Callable[[TaskInfo], Collection[str]]
"""The groups where a task had best go, the best one first; none if that is not known."""


def share(amounts: Amounts, largest: Resources) -> float:
    """What a task takes of a node: a third, if three like it fit there."""
    shares = [amount / largest[kind] for kind, amount in amounts.items() if largest[kind] > 0]
    part = min(1.0, max(shares, default=0.0))
    return 1 / math.floor(1 / part + 1e-9) if part > 1e-9 else part


def demands(
    needs: Iterable[Need],
    supplies: Sequence[Supply],
    group_of: Callable[[str], str],
    preference: Preference = lambda task: (),
) -> Mapping[str, float]:
    """How many nodes of each group would be filled.

    What runs fills the group that it runs in. What waits goes to the first group that holds
    it, by `preference` or by the size of its nodes, the smallest first; and on to the next one
    when that is full. While nobody knows what a node has, a task fills it.

    >>> from parsl_sizer.model import Kind
    >>> small = Supply("small", Resources(memory=4e9), most=2)
    >>> large = Supply("large", Resources(memory=16e9), most=2)
    >>> waiting = [Need(TaskInfo(1, "a"), {Kind.MEMORY: 4e9}, times=4)]
    >>> demands(waiting, [large, small], lambda node: node)
    {'large': 0.5, 'small': 2.0}
    """
    filled = {supply.group: 0.0 for supply in supplies}
    known = {supply.group: supply for supply in supplies}
    by_size = [supply.group for supply in sorted(supplies, key=_size)]
    waiting = []
    for need in needs:
        if need.node is None:
            waiting.append(need)
        elif (supply := known.get(group_of(need.node))) is not None:
            filled[supply.group] += _fills(need.amounts, supply)
    for need in waiting:
        count = need.times
        for group in preference(need.task) or by_size:
            supply = known.get(group)
            if supply is None or not count or not _holds(supply, need.amounts):
                continue
            each = _fills(need.amounts, supply)
            fit = (supply.most - filled[group]) / each + 1e-9 if each else math.inf
            taken = count if fit >= count else max(0, math.floor(fit))
            filled[group] += taken * each
            count -= taken
    return filled


def _size(supply: Supply) -> tuple[float, float]:
    capacity = supply.capacity
    return (math.inf, math.inf) if capacity is None else (capacity.memory, capacity.cores)


def _holds(supply: Supply, amounts: Amounts) -> bool:
    return supply.capacity is None or not exceeded(supply.capacity, amounts)


def _fills(amounts: Amounts, supply: Supply) -> float:
    if supply.capacity is None or not (amounts or supply.slots):
        return 1.0
    return max(1.0 / supply.slots if supply.slots else 0.0, share(amounts, supply.capacity))
