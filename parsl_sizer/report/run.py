"""What a run cost, category by category: for people, at the end of it.

Tasks are added as they are settled; nothing is kept but sums.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Group
from rich.table import Table
from rich.text import Text

from parsl_sizer.model import MB, Amounts, Ending, Kind, Outcome, format_amount, is_bytes

from .fitting import FirstThatFits
from .phrases import plural
from .text import UNKNOWN, amount, shortened

KINDS = (Kind.MEMORY, Kind.CORES, Kind.DISK)
HEADROOM = 1.05
"""What a fixed specification has above the largest peak that was seen."""
MOST_CATEGORIES = 10_000
"""Categories beyond these are summed up under one name: memory stays bounded."""
OTHERS = "(other categories)"
COUNTS = ("tasks", "failed", "retries", "overruns")
ENOUGH = "What would have been enough for every task that finished, as a fixed request"


@dataclass(slots=True)
class Use:
    """One kind of resource in one category: amounts are in its unit times seconds."""

    measured: int = 0
    """Tasks that finished and whose peak is known."""
    allocated: float = 0.0
    used: float = 0.0
    whole: float = 0.0
    """What whole nodes would have been, for the last attempt of every task."""
    largest: float = 0.0
    """The largest peak."""
    sizes: float = 0.0
    """The last allocations, summed over the measured tasks."""
    peaks: float = 0.0
    beyond: int = 0
    """Tasks that ran out of it in their last attempt."""
    beyond_least: float = math.inf
    """The least that any of these had then."""

    @property
    def saved(self) -> float:
        """What was not allocated that whole nodes would have been."""
        return self.whole - self.allocated


@dataclass(slots=True)
class CategoryCost:
    """The sums over the tasks of a category."""

    tasks: int = 0
    failed: int = 0
    """Tasks that raised, were lost, or ran out of all there is."""
    retries: int = 0
    """Attempts that ran out of something and were followed by another, or by parts."""
    lost: int = 0
    """Attempts whose worker or node was lost."""
    overruns: int = 0
    """Attempts that returned although they had used more than they were given."""
    kinds: dict[Kind, Use] = field(default_factory=lambda: {kind: Use() for kind in KINDS})
    unused: float = 0.0
    """Memory x time that tasks which finished had in the end, and did not use..."""
    idle: float = 0.0
    """...and what of that nobody else could have used: their share of a node in another kind
    comes with so much."""

    def add(self, outcomes: Sequence[Outcome], node: Amounts, *, is_split: bool = False) -> None:
        """Take a settled task in, with what a node has; others do the work of one that is split."""
        last = outcomes[-1]
        self.tasks += 1
        self.failed += last.ending is not Ending.DONE and not is_split
        for outcome in outcomes:
            self.overruns += outcome.overran
            self.lost += outcome.ending is Ending.LOST
            is_followed = outcome is not last or is_split
            self.retries += outcome.ending is Ending.EXHAUSTED and is_followed
        for kind, use in self.kinds.items():
            self._add(kind, use, outcomes, node)
        if last.ending is Ending.DONE:
            self._add_unused(last, node)

    def _add_unused(self, done: Outcome, node: Amounts) -> None:
        given, used = done.attempt.allocation.get(Kind.MEMORY), done.usage.peak.get(Kind.MEMORY)
        if given is None or used is None:
            return
        shares = (
            amount / node[kind]
            for kind, amount in done.attempt.allocation.items()
            if kind is not Kind.MEMORY and node.get(kind)
        )
        free = min(given, max(shares, default=0.0) * node.get(Kind.MEMORY, 0.0))
        self.unused += max(0.0, given - used) * done.usage.wall_s
        self.idle += max(0.0, free - used) * done.usage.wall_s

    @staticmethod
    def _add(kind: Kind, use: Use, outcomes: Sequence[Outcome], node: Amounts) -> None:
        whole = given = node.get(kind, 0.0)
        for outcome in outcomes:
            given = outcome.attempt.allocation.get(kind, whole)
            use.allocated += given * outcome.usage.wall_s
        last = outcomes[-1]
        usage = last.usage
        use.whole += whole * usage.wall_s
        if given and last.ending is Ending.EXHAUSTED and kind in last.exhausted:
            use.beyond += 1
            use.beyond_least = min(use.beyond_least, given)
        peak = usage.peak.get(kind)
        if peak is None or last.ending is not Ending.DONE:
            return
        use.measured += 1
        use.used += peak * usage.wall_s
        use.largest = max(use.largest, peak)
        use.sizes += given
        use.peaks += peak


class RunCost:
    """The sums over a run, by category."""

    def __init__(self) -> None:
        self.categories: dict[str, CategoryCost] = {}
        self._node: Amounts | None = None
        self._amounts: dict[Kind, float] = {}

    def add(self, outcomes: Sequence[Outcome], node: Amounts, *, is_split: bool = False) -> None:
        """Take a settled task in, with what the largest node has."""
        if not outcomes:
            return
        name = outcomes[-1].attempt.task.category
        if name not in self.categories and len(self.categories) >= MOST_CATEGORIES:
            name = OTHERS
        if node is not self._node:
            self._node, self._amounts = node, dict(node)
        cost = self.categories.get(name)
        if cost is None:
            cost = self.categories[name] = CategoryCost()
        cost.add(outcomes, self._amounts, is_split=is_split)


def specification(cost: CategoryCost) -> str:
    """The line to paste for tasks of the category: enough for all that finished.

    >>> from parsl_sizer.model import Attempt, Kind, TaskInfo, Usage
    >>> cost = CategoryCost()
    >>> attempt = Attempt(TaskInfo(1, "align"), 1, {Kind.MEMORY: 4e9})
    >>> cost.add([Outcome(attempt, Ending.DONE, usage=Usage({Kind.MEMORY: 2e9}, 60.0))], {})
    >>> specification(cost)
    "{'memory': 2100}"
    """
    amounts: dict[str, int] = {}
    for kind in (Kind.CORES, Kind.MEMORY, Kind.DISK):
        use = cost.kinds[kind]
        if not use.measured:
            continue
        if is_bytes(kind):
            amounts[kind.value] = max(50, math.ceil(use.largest * HEADROOM / MB / 10) * 10)
        else:
            amounts[kind.value] = max(1, math.ceil(use.largest - 0.1))
    return repr(amounts)


def not_enough_for(cost: CategoryCost) -> str | None:
    """The tasks that ran out of what they had in the end, whom no request is known to suit.

    >>> from parsl_sizer.model import Attempt, Kind, TaskInfo
    >>> cost = CategoryCost()
    >>> attempt = Attempt(TaskInfo(1, "align"), 1, {Kind.MEMORY: 4e9})
    >>> ran_out = Outcome(attempt, Ending.EXHAUSTED, exhausted=frozenset({Kind.MEMORY}))
    >>> cost.add([ran_out], {})
    >>> not_enough_for(cost)
    '1 task needed more than 4 GB of memory'
    """
    found = [
        f"{plural(use.beyond, 'task')} needed more than "
        f"{format_amount(kind, use.beyond_least)} of {kind.value}"
        for kind, use in cost.kinds.items()
        if use.beyond
    ]
    return ", ".join(found) or None


def fixed_request(name: str, specification: str, not_enough_for: str | None) -> str:
    """The line of a category under `ENOUGH`."""
    remark = f" ({not_enough_for})" if not_enough_for else ""
    return f"  {shortened(name)}: parsl_resource_specification={specification}{remark}"


def run_table(cost: RunCost, *, observed: bool = False) -> Group:
    """What the run cost, a row per category, the most memory first."""
    rows = sorted(cost.categories.items(), key=lambda item: -item[1].kinds[Kind.MEMORY].allocated)
    given = "memory" if observed else "memory given"
    categories = [category for _, category in rows]
    table = FirstThatFits(
        lambda: _table(rows, given),
        lambda: _table(rows, given, without=_zeros(categories)),
        lambda: _table(rows, given, without=_zeros(categories), widths=(7, 18)),
        lambda: _table(rows, given, without=_zeros(categories), widths=(7, 11), gap=1),
    )
    lines = [
        Text(fixed_request(name, specification(category), not_enough_for(category)))
        for name, category in rows
        if any(use.measured for use in category.kinds.values())
    ]
    enough = [Text(f"{ENOUGH}:"), *lines] if lines else []
    return Group(table, *_remarks(categories), *enough)


def _remarks(categories: Sequence[CategoryCost]) -> list[Text]:
    """Why much more was given than used, where most of that was to be had for nothing."""
    unused = sum(category.unused for category in categories)
    idle = sum(category.idle for category in categories)
    used = sum(category.kinds[Kind.MEMORY].used for category in categories)
    if unused <= used or idle < unused / 2:
        return []
    return [
        Text(
            f"Of the memory that was given and not used, {_share(idle, unused)} would have lain "
            "idle: other kinds than memory filled the nodes first."
        )
    ]


def _table(
    rows: Iterable[tuple[str, CategoryCost]],
    given: str,
    *,
    without: Collection[str] = (),
    widths: tuple[int, int] | None = None,
    gap: int = 2,
) -> Table:
    """A layout, without these counts; of what was given and what was saved in these widths."""
    given_width, saved_width = widths or (None, None)
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    table.add_column("category", overflow="fold")
    counts = [name for name in COUNTS if name not in without]
    for label in counts:
        table.add_column(label, justify="right")
    table.add_column(given, justify="right", max_width=given_width)
    table.add_column("used", justify="right")
    table.add_column("efficiency" if gap > 1 else "effi-\nciency", justify="right")
    table.add_column("saved against whole nodes", justify="right", max_width=saved_width)
    for name, category in rows:
        memory = category.kinds[Kind.MEMORY]
        table.add_row(
            Text(shortened(name)),
            *(f"{getattr(category, count):,}" for count in counts),
            _mean(memory.sizes, memory),
            _mean(memory.peaks, memory),
            _share(memory.used, memory.allocated) if memory.measured else UNKNOWN,
            f"{amount(Kind.MEMORY, memory.saved)} ({_share(memory.saved, memory.whole)})"
            if memory.whole
            else UNKNOWN,
        )
    return table


def _zeros(categories: Sequence[CategoryCost]) -> set[str]:
    """What a narrow terminal need not show: that nothing failed, or none overran."""
    return {
        name
        for name in ("failed", "overruns")
        if not any(getattr(category, name) for category in categories)
    }


def _mean(total: float, use: Use) -> str:
    return format_amount(Kind.MEMORY, total / use.measured) if use.measured else UNKNOWN


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole > 0 else UNKNOWN
