"""Who holds what on which node, and where is there room?

Only the kinds in an attempt's allocation are counted, node by node: a kind nobody
sizes takes no room, and room on two nodes is not room for one task. All counting is
in integers. What is asked for is rounded up, what a node has is rounded down, so
the allocations on a node never sum to more than the node, to the last byte.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from parsl_sizer.model import Amounts, Kind, Node, Resources, exceeded

from .policy import Place

SCALE = 2**60
"""Units per byte, core or GPU: every float above 1/256 is a whole number of them. So there
is no drift, and what asks for a third of a node, as far as a float can say, fits thrice."""

REFUSALS = 1000
"""So many demands are remembered for which there was no room: only nodes whose room has
grown since then are looked at again, so that a full cluster costs little to ask."""
RECENT = 16
"""So many of them are compared with a demand that is new: who asks for as much or more than
one that found no room finds none either."""

CHOICE = 32
"""Of so many nodes with room the best is taken, however many there are."""

Demand = tuple[tuple[Kind, int], ...]
"""An allocation in units, the kinds that it controls only."""


def demand(amounts: Amounts) -> Demand:
    """The amounts in units, rounded up; many tasks ask for the same.

    >>> demand({Kind.CORES: 0.5, Kind.MEMORY: 0.0})
    ((<Kind.CORES: 'cores'>, 576460752303423488),)
    """
    return _demand(tuple(amounts.items()))


@lru_cache(maxsize=1024)
def _demand(amounts: tuple[tuple[Kind, float], ...]) -> Demand:
    return tuple((kind, -_units(-float(amount))) for kind, amount in amounts if amount)


def _units(amount: float) -> int:
    """The amount in units, rounded down."""
    numerator, denominator = amount.as_integer_ratio()
    return numerator * SCALE // denominator


@dataclass(slots=True, eq=False)
class _Claim:
    key: Hashable
    demand: Demand
    room: _Room
    started: bool = False
    is_wide: bool = False
    """Whether it is for more than the share of a slot."""


@dataclass(slots=True, eq=False)
class _Room:
    """A node: what it has, what is free of that (below zero if overdrawn), who claims it.

    Claims that are content with the share of a slot may be more than fit: the engine runs
    as many of them as there are slots, and whichever these are, they fit. So it has work
    at hand when a slot comes free.
    """

    name: str
    group: str
    capacity: Resources
    total: dict[Kind, int]
    free: dict[Kind, int]
    slots: int = 0
    slot: dict[Kind, int] = field(default_factory=dict)
    """The share of one of its slots."""
    ahead: int = 1
    """How many claims may wait for each slot that is taken."""
    claims: dict[Hashable, _Claim] = field(default_factory=dict)
    wide: int = 0
    """How many of the claims are for more than a slot's share."""
    grown: int = 0

    def __post_init__(self) -> None:
        if self.slots:
            self.slot = {kind: -(-total // self.slots) for kind, total in self.total.items()}

    @property
    def load(self) -> float:
        """The largest share of any kind that is claimed."""
        shares = (1 - self.free[kind] / total for kind, total in self.total.items() if total)
        return max(shares, default=0.0)

    def holds(self, demand: Demand) -> bool:
        return _is_within(demand, self.total)

    def has_room(self, demand: Demand) -> bool:
        if self.is_crowded():
            return False
        return _is_within(demand, self.free) or self.lets_wait(demand)

    def lets_wait(self, demand: Demand) -> bool:
        """Whether one more claim of this size may wait for a slot."""
        return not self.wide and self.is_narrow(demand)

    def is_crowded(self) -> bool:
        """Whether as many wait for its slots as may, whatever they ask for."""
        return 0 < self.slots * (1 + self.ahead) <= len(self.claims)

    def is_narrow(self, demand: Demand) -> bool:
        return self.slots > 0 and _is_within(demand, self.slot)

    def put(self, claim: _Claim) -> None:
        claim.room = self
        self.claims[claim.key] = claim
        claim.is_wide = not self.is_narrow(claim.demand)
        self.wide += claim.is_wide
        for kind, need in claim.demand:
            self.free[kind] -= need

    def drop(self, claim: _Claim) -> None:
        del self.claims[claim.key]
        self.wide -= claim.is_wide
        for kind, need in claim.demand:
            self.free[kind] += need


class Ledger:
    """The nodes that are here, and the claims on them, one per key.

    `claim` refuses what does not fit, so no caller can over-commit a node. `release`,
    `leave` and `started` may be repeated, and do nothing for a key or a node that is
    not known. A node that leaves takes its room along; the claims on it stand until
    they are released, also if it joins again meanwhile.

    >>> ledger = Ledger()
    >>> ledger.join(Node("n1", Resources(cores=2, memory=8e9)))
    >>> half = demand({Kind.MEMORY: 4e9})
    >>> for task in ("a", "b"):
    ...     ledger.claim(task, ledger.find(task, half), half)
    >>> print(ledger.find("c", half))
    None
    >>> ledger.release("a")
    >>> print(ledger.find("c", half))
    n1
    """

    def __init__(self) -> None:
        self._rooms: dict[str, _Room] = {}  # in the order in which their room last grew
        self._left: dict[str, _Room] = {}  # nodes that left and are still claimed
        self._claims: dict[Hashable, _Claim] = {}
        self._kept: tuple[Hashable, str] | None = None
        self._refused: dict[Demand, int] = {}  # the growths at which no node had room for it
        self._recently: deque[Demand] = deque(maxlen=RECENT)
        self._shapes: dict[Resources, int] = {}
        self._expected: frozenset[Resources] = frozenset()
        self._ahead = 1
        self.growths = 0
        """How often room has grown anywhere."""
        self.changes = 0
        """How often the set of capacities has changed."""

    def __len__(self) -> int:
        """The number of nodes that are here."""
        return len(self._rooms)

    def join(self, node: Node) -> None:
        """Count a node in; of one that is here already the capacity is stated anew."""
        self.leave(node.name)
        former = self._left.pop(node.name, None)
        total = _total(node.capacity)
        capacity = _counted(total)
        free, ahead = dict(total), self._ahead
        room = _Room(node.name, node.group, capacity, total, free, node.slots, ahead=ahead)
        for claim in former.claims.values() if former else ():
            room.put(claim)
        self._grow(room)
        if not self._shapes.get(capacity):
            # A shape kept with no node of it stood in while there was no node at all.
            self._shapes = {shape: count for shape, count in self._shapes.items() if count}
            self.changes += 1
        self._shapes[capacity] = self._shapes.get(capacity, 0) + 1

    def expect(self, capacities: Iterable[Resources]) -> None:
        """Take note of nodes that may yet come: tasks may be as large as these."""
        expected = frozenset(_counted(_total(capacity)) for capacity in capacities)
        if expected != self._expected:
            self._expected = expected
            self.changes += 1

    def let_wait(self, ahead: int) -> None:
        """Let so many claims wait for each slot that is taken, where slots are known."""
        if ahead == self._ahead:
            return
        self._ahead = ahead
        for room in list(self._rooms.values()):
            room.ahead = ahead
            self._grow(room)

    def leave(self, name: str) -> None:
        """Count a node out."""
        room = self._rooms.pop(name, None)
        if room is None:
            return
        if room.claims:
            self._left[name] = room
        if self._kept is not None and self._kept[1] == name:
            self._kept = None
        self._shapes[room.capacity] -= 1
        if not self._shapes[room.capacity] and self._rooms:
            del self._shapes[room.capacity]
            self.changes += 1

    def largest(self, above: Amounts, wanted: Amounts) -> Resources | None:
        """The capacity of one node, to size a task by; None if none has more than `above`.

        It is always a node as it stands, or is expected, never the best of several: what
        is at most this fits somewhere. Of the nodes with more than `above` in each of its
        kinds, those that hold `wanted` come first, then those with most of the kinds of
        `above` in its order, then those with most memory. While no node is here the
        last that was stands in, as blocks come back the way they went.
        """
        if not above and len(self._shapes) == 1 and not self._expected:
            return next(iter(self._shapes))
        shapes = [
            shape
            for shape in self._all_shapes()
            if all(shape[kind] > amount for kind, amount in above.items())
        ]
        if len(shapes) < 2:
            return shapes[0] if shapes else None
        order = (*above, Kind.MEMORY, Kind.CORES, Kind.DISK, Kind.GPUS)
        return max(
            shapes,
            key=lambda shape: (not exceeded(shape, wanted), *(shape[kind] for kind in order)),
        )

    def holds(self, amounts: Amounts) -> bool:
        """Whether some node, if it were empty, would hold these amounts."""
        return any(not exceeded(shape, amounts) for shape in self._all_shapes())

    def capacity(self, key: Hashable) -> Resources | None:
        """The capacity of the node on which `key` has its claim."""
        claim = self._claims.get(key)
        return claim.room.capacity if claim else None

    def find(self, key: Hashable, demand: Demand) -> str | None:
        """The node with room for this where least is left over then (best fit).

        Filling up what is nearly full keeps empty and larger nodes for what needs them. Where
        very many have room, the best of those is good enough whose room grew last.
        """
        kept = None
        if self._kept is not None:
            holder, name = self._kept
            kept = self._rooms[name]
            if holder == key and kept.has_room(demand):
                return name
        since = self._refused.get(demand, -1)
        if since < 0 and self._recently:
            since = self._refused_less_than(demand)
        if since == self.growths:
            return None
        best, least = None, math.inf
        enough = CHOICE
        for room in reversed(self._rooms.values()):
            if room.grown <= since or not enough:
                break
            if room.slots and room.is_crowded():
                continue
            # Who asks for nothing goes where fewest are.
            left = 0.0 if demand else len(room.claims) / (room.slots or 1)
            for kind, need in demand:
                over = room.free[kind] - need
                if over < 0:
                    break
                left += over / room.total[kind]
            else:
                if room is not kept:
                    enough -= 1
                    if left < least:
                        best, least = room, left
                continue
            # To wait for a slot is worse than to start at once, and best where fewest wait.
            if room.slots and room.lets_wait(demand) and room is not kept:
                left = len(Kind) + len(room.claims) / room.slots
                if left < least:
                    best, least = room, left
        if best is not None:
            return best.name
        self._refuse(demand)
        return None

    def places(self, key: Hashable, demand: Demand) -> Sequence[Place]:
        """All nodes with room for this, in no order, for whoever wants to choose one.

        Those where it would wait for a slot are left out if there are others.
        """
        kept = None
        if self._kept is not None:
            holder, name = self._kept
            kept = self._rooms[name]
            if holder == key and kept.has_room(demand):
                return (kept,)
        since = self._refused.get(demand, -1)
        if since == self.growths:
            return ()
        grown = itertools.takewhile(lambda room: room.grown > since, reversed(self._rooms.values()))
        roomy = [room for room in grown if room is not kept and room.has_room(demand)]
        if not roomy:
            self._refuse(demand)
        return [room for room in roomy if _is_within(demand, room.free)] or roomy

    def claim(self, key: Hashable, name: str, demand: Demand) -> None:
        """Take room on a node that has it."""
        room = self._rooms[name]
        if key in self._claims or not room.has_room(demand):
            raise ValueError(f"{key!r} cannot claim {demand!r} on {name!r}; ask find() first.")
        self._claims[key] = claim = _Claim(key, demand, room)
        room.put(claim)
        self.keep_no_longer(key)

    def release(self, key: Hashable) -> None:
        """Give back what `key` claims, and the node that is kept for it."""
        self.keep_no_longer(key)
        claim = self._claims.pop(key, None)
        if claim is not None:
            self._drop(claim)

    def keep(self, key: Hashable, demand: Demand) -> None:
        """Keep a node free for `key`: until it has room nobody else is placed there.

        The node is the one that lacks least. One node is kept at a time; while one is,
        keeping for another key does nothing.
        """
        if self._kept is not None:
            holder, name = self._kept
            if holder != key or self._rooms[name].holds(demand):
                return
        able = [room for room in self._rooms.values() if room.holds(demand)]
        self.keep_no_longer(key)
        if able:
            self._kept = (key, min(able, key=lambda room: _lack(room, demand)).name)

    @property
    def kept_for(self) -> Hashable | None:
        """Whom a node is kept free for."""
        return None if self._kept is None else self._kept[0]

    def keep_no_longer(self, key: Hashable) -> None:
        """Let others have the node that is kept free for `key`, if one is."""
        if self._kept is not None and self._kept[0] == key:
            room = self._rooms[self._kept[1]]
            self._kept = None
            self._grow(room)

    def started(self, key: Hashable, name: str) -> None:
        """Move the claim of `key` to the node where it turned out to have started.

        An engine that picks nodes itself may have picked another one. Claims there
        that have not started yet give way, since they are going to start where there is
        room; what finds none stays and overdraws the node, and nothing is placed there
        until that is made up for.
        """
        claim, room = self._claims.get(key), self._rooms.get(name)
        if claim is None or room is None:
            return
        claim.started = True
        if claim.room is room:
            return
        self._drop(claim)
        displaced = []
        for other in reversed(list(room.claims.values())):
            if not other.started and not room.has_room(claim.demand):
                self._drop(other)
                displaced.append(other)
        room.put(claim)
        for other in displaced:
            found = self.find(other.key, other.demand)
            (room if found is None else self._rooms[found]).put(other)

    def _all_shapes(self) -> Iterable[Resources]:
        return {**self._shapes, **dict.fromkeys(self._expected)} if self._expected else self._shapes

    def _refuse(self, demand: Demand) -> None:
        if len(self._refused) >= REFUSALS:
            self._refused.clear()
            self._recently.clear()
        if demand not in self._refused:
            self._recently.append(demand)
        self._refused[demand] = self.growths

    def _refused_less_than(self, demand: Demand) -> int:
        """The latest growths at which there was no room for this much or less; -1 if never."""
        needs = dict(demand)
        since = -1
        for less in self._recently:
            at = self._refused[less]
            if at > since and all(needs.get(kind, 0) >= need for kind, need in less):
                since = at
        return since

    def _drop(self, claim: _Claim) -> None:
        room = claim.room
        room.drop(claim)
        if self._rooms.get(room.name) is room:
            self._grow(room)
        elif not room.claims:
            del self._left[room.name]

    def _grow(self, room: _Room) -> None:
        self.growths += 1
        room.grown = self.growths
        self._rooms.pop(room.name, None)
        self._rooms[room.name] = room


def _total(capacity: Resources) -> dict[Kind, int]:
    return {kind: _units(float(capacity[kind])) for kind in Kind}


def _counted(total: Mapping[Kind, int]) -> Resources:
    return Resources(**{kind.value: total[kind] / SCALE for kind in Kind})


def _is_within(demand: Demand, amounts: Mapping[Kind, int]) -> bool:
    for kind, need in demand:  # noqa: SIM110 - asked several times per task, `all` takes twice as long
        if need > amounts[kind]:
            return False
    return True


def _lack(room: _Room, demand: Demand) -> float:
    """The largest share of the node, over the kinds, that is yet to come free."""
    return max(((need - room.free[kind]) / room.total[kind] for kind, need in demand), default=0.0)
