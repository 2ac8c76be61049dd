"""Several inner executors as one: each is a group of nodes.

An attempt's node says which of them runs it; there everything is as if it were the only
one. One that fails takes its nodes along, and what was with it is run by the others.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from parsl_sizer.model import (
    Amounts,
    Attempt,
    Node,
    OptOut,
    Resources,
    SizerError,
    logger_for,
)
from parsl_sizer.sizing import Sizer
from parsl_sizer.sizing.demand import Preference, Supply, demands

from .base import CannotWrap, Engine

logger = logger_for(__name__)

DESERTED_S = 60.0
"""After so long without any node, what a group was given and has not begun is run by others."""
BETWEEN = "/"
"""Stands between the name of a group and that of a node."""


class GroupFailed(SizerError):
    """The program that runs the tasks of a group is gone."""


def group_of(node: str | None) -> str:
    """The group of the node with this name.

    >>> group_of("big/host 1")
    'big'
    """
    return (node or "").partition(BETWEEN)[0]


class Several(Engine):
    """The engines of several inner executors, by the names of these.

    How a task is run must be possible with all of them: nobody knows yet where it will be.
    """

    name = "several executors"

    def __init__(self, parts: Mapping[str, Engine]) -> None:
        super().__init__(None)
        self.parts = parts
        self.demands: Mapping[str, float] | None = None
        """How many nodes of each group tasks would fill; None if nothing is sized."""
        self.preference: Preference = lambda task: ()
        """Of which groups blocks are asked for; by default of those with the smallest nodes."""
        self._here: dict[str, Sequence[Node]] = {}
        self._known: dict[str, Resources] = {}  # of each group, what the largest node has
        self._empty_since: dict[str, float] = {}
        self._told: set[str] = set()
        self._turn = itertools.count()
        for label, part in parts.items():
            if not part.measures:
                raise CannotWrap(
                    f"SizedExecutor cannot wrap {label!r} together with others: tasks that share "
                    "one process cannot be measured. Give it to Config as it is."
                )
            part.group = label
        engines = list(parts.values())
        first = engines[0]
        self.measures = frozenset.intersection(*(part.measures for part in engines))
        self.takes = frozenset.intersection(*(part.takes for part in engines))
        if len({part.priority({"priority": 1}) for part in engines}) > 1:
            self.takes -= {"priority"}  # what is first with one of them is last with another
        self.takes_bytes = all(part.takes_bytes for part in engines)
        self.isolations = tuple(
            how for how in first.isolations if all(how in part.isolations for part in engines)
        )

    def of(self, attempt: Attempt) -> Engine:
        return self.parts[group_of(attempt.node)]

    def priority(self, given: Mapping[str, object]) -> float:
        return next(iter(self.parts.values())).priority(given)

    def why_failed(self) -> Exception | None:
        if self._living():
            return None
        failures = (part.why_failed() for part in self.parts.values())
        return next((failure for failure in failures if failure), None)

    def hand_on(self) -> bool:
        for label, part in self.parts.items():
            if part.has_died() and part.why_failed() is None:
                why = GroupFailed(f"The program that runs the tasks of {label} has ended.")
                # It is in the middle of whatever it was doing: a task may be over already.
                with contextlib.suppress(Exception):
                    part.inner.set_bad_state_and_fail_all(why)
            if label not in self._told and (reason := part.why_failed()) is not None:
                self._told.add(label)
                then = "are run by the other groups" if self._living() else "fail: no group is left"
                logger.warning("Tasks of %s %s: %.300s", label, then, reason)
        return len(self._living()) < len(self.parts) or any(map(self._is_deserted, self.parts))

    def has_failed(self, attempt: Attempt) -> bool:
        part = self.of(attempt)
        if _has_failed(part):
            return True
        # It may yet run there, too, if a node comes: not what must not run twice.
        return self._is_deserted(part.group) and OptOut.NO_RETRY not in attempt.task.opt_outs

    def is_failed(self, label: str) -> bool:
        """Whether the group of this name has failed."""
        return _has_failed(self.parts[label])

    def still_here(self, nodes: Sequence[Node]) -> Sequence[Node]:
        living = self._living()
        return [node for node in nodes if node.group in living]

    def nodes(self) -> Sequence[Node] | None:
        for label, part in self.parts.items():
            if _has_failed(part):
                self._here[label] = ()
                continue
            try:
                found = part.nodes()
            except Exception as error:
                logger.warning("The nodes of %s could not be asked for: %r", label, error)
                continue
            if found is not None:
                self._here[label] = [
                    replace(node, name=f"{label}{BETWEEN}{node.name}", group=label)
                    for node in found
                ]
                rooms = [node.capacity for node in found]
                if not rooms:
                    self._empty_since.setdefault(label, time.monotonic())
                else:
                    self._empty_since.pop(label, None)
                    self._known[label] = max(rooms, key=lambda room: (room.memory, room.cores))
        return [node for nodes in list(self._here.values()) for node in nodes]

    def renamed(self, name: str) -> str:
        label, _, own = name.partition(BETWEEN)
        return f"{label}{BETWEEN}{self.parts[label].renamed(own)}" if label in self.parts else name

    def close(self) -> None:
        for part in self.parts.values():
            part.close()

    def probe(self) -> Future[Any] | None:
        probes = (part.probe() for part in self._living().values())
        return next((probe for probe in probes if probe is not None), None)

    def expected(self) -> Sequence[Resources]:
        """What the nodes of groups have that may ask for some."""
        growing = [label for label, part in self._living().items() if _most_nodes(part)]
        return [room for label in growing if (room := self._capacity(label)) is not None]

    def demand(self, sizer: Sizer) -> float | None:
        supplies = [self._supply(label, part) for label, part in self._living().items()]
        self.demands = demands(sizer.needs(), supplies, group_of, self.preference)
        return math.fsum(self.demands.values())

    def capacities(self) -> Mapping[str, Resources]:
        """What the largest node has of each group that has not failed, as far as it is known."""
        rooms = {label: self._capacity(label) for label in self._living()}
        return {label: room for label, room in rooms.items() if room is not None}

    def submit_unsized(
        self,
        function: Any,
        requested: Amounts,
        given: Mapping[str, object],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Future[Any]:
        """Take turns, as nobody knows who has room."""
        parts = list((self._living() or self.parts).values())
        part = parts[next(self._turn) % len(parts)]
        return part.submit_unsized(function, requested, given, args, kwargs)

    def _living(self) -> Mapping[str, Engine]:
        return {label: part for label, part in self.parts.items() if not _has_failed(part)}

    def _is_deserted(self, label: str) -> bool:
        """Whether a group has had no node for long, while another has some."""
        since = self._empty_since.get(label, math.inf)
        return time.monotonic() - since > DESERTED_S and any(self._here.values())

    def _capacity(self, label: str) -> Resources | None:
        if label not in self._known and (stated := self.parts[label].stated()) is not None:
            self._known[label] = stated
        return self._known.get(label)

    def _supply(self, label: str, part: Engine) -> Supply:
        most = _most_nodes(part) or len(self._here.get(label, ()))
        return Supply(label, self._capacity(label), most, part.slots)


def _has_failed(part: Engine) -> bool:
    return bool(getattr(part.inner, "bad_state_is_set", False)) or part.has_died()


def _most_nodes(part: Engine) -> float:
    """How many nodes there may be on the group's own demand."""
    provider = getattr(part.inner, "provider", None)
    return float(getattr(provider, "max_blocks", 0) * getattr(provider, "nodes_per_block", 1))
