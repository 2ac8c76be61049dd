"""Replay a trace or a workflow on a cluster: how long would it have taken, how full were nodes?

The sizer is the one that runs live, with its queue and its ledger; only time and the
ends of attempts come from the trace. `replay` is for comparing what strategies cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from parsl_sizer.model import Amounts, Attempt, Ending, Kind, Node, Outcome, Resources
from parsl_sizer.placement import Gate, Lines
from parsl_sizer.placement import order as order_of
from parsl_sizer.sizing import (
    Action,
    Categories,
    Ended,
    Event,
    Joined,
    Launch,
    Settle,
    Sizer,
    Started,
    Submitted,
    Tick,
)
from parsl_sizer.sizing.sizer import WINDOW

from .kernel import Kernel
from .replay import Replayed, ended
from .trace import Row
from .workflows import Workflow


@dataclass(slots=True)
class ClusterResult:
    """What came of a replay. Amounts are summed over time: byte-seconds, core-seconds.

    `used` is what finished tasks needed, `allocated` what all attempts held.
    """

    nodes: int
    node: Resources
    makespan_s: float = 0.0
    done: int = 0
    exhausted: int = 0
    impossible: int = 0
    attempts: int = 0
    used: dict[Kind, float] = field(default_factory=dict)
    allocated: dict[Kind, float] = field(default_factory=dict)

    @property
    def tasks_per_hour(self) -> float:
        """Finished tasks per hour of makespan; 0 if no time passed."""
        return self.done * 3600.0 / self.makespan_s if self.makespan_s else 0.0

    @property
    def utilisation(self) -> Mapping[Kind, float]:
        """The share of the cluster, over the makespan, that was put to use."""
        return self._shares(self.used)

    @property
    def occupancy(self) -> Mapping[Kind, float]:
        """The share of the cluster, over the makespan, that was allocated."""
        return self._shares(self.allocated)

    def _shares(self, sums: Amounts) -> Mapping[Kind, float]:
        capacity = {kind: self.nodes * self.node[kind] * self.makespan_s for kind in sums}
        return {kind: total / capacity[kind] for kind, total in sums.items() if capacity[kind]}


def replay_cluster(
    rows: Iterable[Row],
    categories: Categories,
    node: Resources,
    *,
    nodes: int,
    gate: Gate | None = None,
    ttf: float = 1.0,
    settled: Callable[[Replayed], None] | None = None,
) -> ClusterResult:
    """Run every row on a cluster of `nodes` nodes that are all alike.

    Tasks are submitted at their `submitted_at`, which in a trace is 0: all at once, in
    the order of the rows. Any kind that is exceeded fails the attempt, after `ttf` of
    the task's time. A row with a peak above the node is counted as impossible and not
    run. With a `gate` a few tasks of each category run before the others. `settled` is given
    every task as it settles, with all its attempts.
    """
    sizer = Sizer(categories, gate=gate)
    replay = _ClusterReplay(sizer, ttf, ClusterResult(nodes, node), settled, gate)
    for row in rows:
        replay.submit(row)
    return replay.run()


def replay_workflow(
    workflow: Workflow,
    categories: Categories,
    node: Resources,
    *,
    nodes: int = 1,
    order: str = "first-come",
    overtaking: bool = True,
    ttf: float = 1.0,
    settled: Callable[[Replayed], None] | None = None,
) -> ClusterResult:
    """The same for a workflow: a task is submitted when all that it waits for have finished.

    What waits for a task that could not be run is not run either. Without `overtaking`
    nothing starts before what comes first in the `order`, even if there is room for it.
    """
    sizer = Sizer(categories, queue=Lines(order_of(order)), window=WINDOW if overtaking else 1)
    return _WorkflowReplay(workflow, sizer, ttf, ClusterResult(nodes, node), settled).run()


class _ClusterReplay:
    """The driver: carries the sizer's actions out on a virtual clock."""

    def __init__(
        self,
        sizer: Sizer,
        ttf: float,
        result: ClusterResult,
        settled: Callable[[Replayed], None] | None,
        gate: Gate | None = None,
    ) -> None:
        self.kernel: Kernel[Event] = Kernel()
        self._sizer = sizer
        self._gate = gate
        self._looks_at = -math.inf
        self._ttf = ttf
        self._result = result
        self._settled = settled
        self._rows: dict[int | str, Row] = {}
        self._begun_at = math.inf
        if result.nodes < 1:
            raise ValueError(f"nodes must be 1 or more, not {result.nodes}")
        if not 0 <= ttf <= 1:
            raise ValueError(f"ttf must be between 0 and 1, not {ttf}")
        for number in range(result.nodes):
            self.kernel.at(0.0, Joined(Node(f"node{number}", result.node)))

    def submit(self, row: Row) -> None:
        if self.accepts(row):
            self.kernel.at(row.task.submitted_at, Submitted(row.task))

    def accepts(self, row: Row) -> bool:
        """Whether a row is going to be run."""
        impossible = self._result.node.exceeded_by(row.peak)
        if impossible:
            self._result.impossible += 1
            if self._settled is not None:
                self._settled(Replayed(row, (), impossible))
            return False
        if row.task.task_id in self._rows:
            raise ValueError(f"Two rows have the task id {row.task.task_id!r}.")
        self._rows[row.task.task_id] = row
        self._begun_at = min(self._begun_at, row.task.submitted_at)
        return True

    def run(self) -> ClusterResult:
        for event in self.kernel:
            if isinstance(event, Ended):
                self._account(event.outcome)
            self._handle(event)
        return self._result

    def _handle(self, event: Event) -> None:
        for action in self._sizer.handle(event, self.kernel.now):
            self._act(action)
        if self._gate is not None and self._gate.opens_at > self._looks_at:
            self._looks_at = self._gate.opens_at
            self.kernel.at(self._looks_at, Tick())

    def _act(self, action: Action) -> None:
        if isinstance(action, Launch):
            self._launch(action.attempt)
        elif isinstance(action, Settle):
            self._settle(action)

    def _launch(self, attempt: Attempt) -> None:
        row = self._rows[attempt.task.task_id]
        outcome = ended(attempt, row.peak, row.time_s, self._ttf)
        ends_at = self.kernel.now + outcome.usage.wall_s
        if attempt.node is not None:
            self.kernel.at(self.kernel.now, Started(attempt, attempt.node))
        self.kernel.at(ends_at, Ended(outcome._replace(ended_at=ends_at, host=attempt.node)))

    def _account(self, outcome: Outcome) -> None:
        result, usage = self._result, outcome.usage
        result.attempts += 1
        result.makespan_s = self.kernel.now - self._begun_at
        for kind, amount in outcome.attempt.allocation.items():
            result.allocated[kind] = result.allocated.get(kind, 0.0) + amount * usage.wall_s
        if outcome.ending is Ending.DONE:
            for kind, peak in usage.peak.items():
                result.used[kind] = result.used.get(kind, 0.0) + peak * usage.wall_s

    def _settle(self, settle: Settle) -> None:
        row = self._rows.pop(settle.task.task_id)
        if settle.ending is Ending.DONE:
            self._result.done += 1
        else:
            self._result.exhausted += 1
        if self._settled is not None:
            self._settled(Replayed(row, settle.outcomes))


class _WorkflowReplay(_ClusterReplay):
    """Submits tasks as they become ready."""

    def __init__(
        self,
        workflow: Workflow,
        sizer: Sizer,
        ttf: float,
        result: ClusterResult,
        settled: Callable[[Replayed], None] | None,
    ) -> None:
        super().__init__(sizer, ttf, result, settled)
        self._waiting: dict[int | str, Row] = {}
        self._missing: dict[int | str, int] = {}
        self._children: dict[int | str, list[int | str]] = {}
        self._ready: list[Row] = []
        for row in workflow.rows:
            task = row.task.task_id
            parents = workflow.parents[task]
            for parent in parents:
                self._children.setdefault(parent, []).append(task)
            if parents:
                self._waiting[task], self._missing[task] = row, len(parents)
            elif self.accepts(row):  # they are all there before the first node is
                sizer.note(Submitted(row.task), self.kernel.now)

    def _handle(self, event: Event) -> None:
        """What a task sets free is there before anything else is started."""
        if not isinstance(event, Ended):
            super()._handle(event)
            return
        for action in self._sizer.note(event, self.kernel.now):
            self._act(action)
        for row in self._ready:
            self._sizer.note(Submitted(row.task), self.kernel.now)
        self._ready.clear()
        super()._handle(Tick())

    def _settle(self, settle: Settle) -> None:
        super()._settle(settle)
        if settle.ending is not Ending.DONE:
            return
        for child in self._children.pop(settle.task.task_id, ()):
            self._missing[child] -= 1
            if not self._missing[child]:
                row = self._waiting.pop(child)
                row = replace(row, task=row.task._replace(submitted_at=self.kernel.now))
                if self.accepts(row):
                    self._ready.append(row)
