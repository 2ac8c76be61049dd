"""Replay workflows on machines that differ, where tasks hinder each other.

How long a task takes depends on its machine and on who else runs there, and changes when
these come and go. Everything else is as in `cluster`: the sizer is the one that runs live.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Usage
from parsl_sizer.placement import Lines, Policy
from parsl_sizer.placement import order as order_of
from parsl_sizer.sizing import Categories, Ended, Joined, Launch, Sizer, Submitted, Tick

from .kernel import Kernel
from .machines import Machine, slowdown, time_shares
from .trace import Row
from .workflows import Workflow, connected


@dataclass(slots=True)
class UnequalResult:
    """What came of a replay: who ran where, and until when."""

    machines: Sequence[Machine]
    outcomes: list[Outcome] = field(default_factory=list)
    """Of all tasks, as they finished."""

    @property
    def makespan_s(self) -> float:
        """When the last task had finished."""
        return max((outcome.ended_at for outcome in self.outcomes), default=0.0)

    @property
    def use(self) -> Mapping[str, float]:
        """Of each machine, for how long its cores were allocated on average."""
        held = {machine.node.name: 0.0 for machine in self.machines}
        for outcome in self.outcomes:
            cores = outcome.attempt.allocation.get(Kind.CORES, 1.0)
            held[str(outcome.attempt.node)] += cores * outcome.usage.wall_s
        return {m.node.name: held[m.node.name] / m.node.capacity.cores for m in self.machines}

    @property
    def evenness(self) -> float:
        """Jain's index of the use: 1 if all machines are used alike, 1/n if one of n is."""
        used = self.use.values()
        squares = math.fsum(one * one for one in used)
        return math.fsum(used) ** 2 / (len(used) * squares) if squares else 1.0


def replay_unequal(
    workflow: Workflow,
    categories: Categories,
    machines: Sequence[Machine],
    *,
    policy: Policy | None = None,
    order: str = "first-come",
    alpha: float = 0.0,
    before: Iterable[Outcome] = (),
) -> UnequalResult:
    """Run a workflow on these machines, which join in this order.

    A task whose neighbours keep all cores busy takes 1 + `alpha` times as long. Nothing runs
    out: `categories` must give tasks what they need. The policy and the order are taught what
    happened `before`.
    """
    if alpha < 0:
        raise ValueError(f"alpha must be 0 or more, not {alpha}")
    queue = Lines(order_of(order))
    for outcome in before:
        queue.finished(outcome.attempt.task.category, outcome.usage.wall_s)
        if policy is not None:
            policy.learn(outcome)
    return _Replay(workflow, Sizer(categories, queue=queue, policy=policy), machines, alpha).run()


def together(*workflows: Workflow) -> Workflow:
    """Workflows side by side as one; tasks and categories have their workflow's name before."""
    rows, parents = [], {}
    for workflow in workflows:
        for row in workflow.rows:
            task = row.task._replace(
                task_id=f"{workflow.name}/{row.task.task_id}",
                category=f"{workflow.name}/{row.task.category}",
            )
            rows.append(replace(row, task=task))
            parents[task.task_id] = [
                f"{workflow.name}/{parent}" for parent in workflow.parents[row.task.task_id]
            ]
    return connected(" + ".join(workflow.name for workflow in workflows), rows, parents)


@dataclass(slots=True, eq=False)
class _Running:
    """An attempt, and how much time it would still take if it were alone."""

    attempt: Attempt
    row: Row
    began_at: float
    left_s: float
    slowed: float = 1.0
    plans: int = 0
    """How often its end was planned: only the last time counts."""

    @property
    def busy(self) -> float:
        """The cores that it keeps busy."""
        return self.row.peak.get(Kind.CORES, 1.0)


class _Due(NamedTuple):
    running: _Running
    plan: int


class _Replay:
    """The driver: carries the sizer's actions out on a virtual clock."""

    def __init__(
        self, workflow: Workflow, sizer: Sizer, machines: Sequence[Machine], alpha: float
    ) -> None:
        self._kernel: Kernel[_Due] = Kernel()
        self._sizer = sizer
        self._alpha = alpha
        self._machines = {machine.node.name: machine for machine in machines}
        self._running: dict[str, list[_Running]] = {name: [] for name in self._machines}
        self._looked_at = dict.fromkeys(self._machines, 0.0)
        self._rows = {row.task.task_id: row for row in workflow.rows}
        self._missing = {task: len(parents) for task, parents in workflow.parents.items()}
        self._children: dict[int | str, list[int | str]] = {}
        for task, parents in workflow.parents.items():
            for parent in parents:
                self._children.setdefault(parent, []).append(task)
        self.result = UnequalResult(machines)

    def run(self) -> UnequalResult:
        for task, missing in self._missing.items():
            if not missing:
                self._sizer.note(Submitted(self._rows[task].task), self._kernel.now)
        for machine in self._machines.values():
            self._sizer.note(Joined(machine.node), self._kernel.now)
        self._go_on()
        for due in self._kernel:
            if due.plan == due.running.plans:
                self._end(due.running)
        if len(self.result.outcomes) < len(self._rows):
            raise ValueError(
                f"{len(self._rows) - len(self.result.outcomes)} tasks found no machine that "
                "holds them; give them less or take larger machines."
            )
        return self.result

    def _go_on(self) -> None:
        """Start what fits now."""
        changed: dict[str, None] = {}
        for action in self._sizer.handle(Tick(), self._kernel.now):
            if isinstance(action, Launch):
                changed[self._start(action.attempt)] = None
        for name in changed:
            self._plan(name)

    def _start(self, attempt: Attempt) -> str:
        name, row = str(attempt.node), self._rows[attempt.task.task_id]
        self._advance(name)
        alone_s = row.time_s * self._machines[name].stretch(time_shares(row))
        self._running[name].append(_Running(attempt, row, self._kernel.now, alone_s))
        return name

    def _end(self, running: _Running) -> None:
        name, now = str(running.attempt.node), self._kernel.now
        self._advance(name)
        self._running[name].remove(running)
        wall_s = now - running.began_at
        # It keeps as many cores busy as in the trace, for as long as it takes here.
        usage = Usage(running.row.peak, wall_s, running.busy * wall_s)
        outcome = Outcome(running.attempt, Ending.DONE, now, usage, host=name)
        self.result.outcomes.append(outcome)
        self._sizer.note(Ended(outcome), now)
        for child in self._children.pop(running.attempt.task.task_id, ()):
            self._missing[child] -= 1
            if not self._missing[child]:
                self._sizer.note(Submitted(self._rows[child].task), now)
        self._plan(name)
        self._go_on()

    def _advance(self, name: str) -> None:
        """Take what was done since the last change on a machine off what is left."""
        elapsed = self._kernel.now - self._looked_at[name]
        self._looked_at[name] = self._kernel.now
        if elapsed:
            for running in self._running[name]:
                running.left_s = max(0.0, running.left_s - elapsed / running.slowed)

    def _plan(self, name: str) -> None:
        """Plan when those on a machine end, now that others have come or gone."""
        here = self._running[name]
        cores = self._machines[name].node.capacity.cores
        busy = math.fsum(running.busy for running in here)
        for running in here:
            slowed = slowdown(busy - running.busy, cores, self._alpha)
            if running.plans and slowed == running.slowed:
                continue
            running.slowed = slowed
            running.plans += 1
            self._kernel.at(
                self._kernel.now + running.left_s * slowed, _Due(running, running.plans)
            )
