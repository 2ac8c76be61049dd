"""In which order are waiting tasks looked at?

Each order says what comes first; tasks of which it says the same go by arrival. Those of
Witt et al. for workflows (Table I) have two ways with attempts that failed: to `persevere`
looks at them first, to `postpone` last.

C. Witt et al., "Feedback-Based Resource Allocation for Batch Scheduling of Scientific
Workflows", HPCS 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parsl_sizer.model import SizerError

if TYPE_CHECKING:
    from .queue import Waiting

Turn = tuple[float, ...]


class UnknownOrder(SizerError, ValueError):
    """An order that nobody knows."""


class Progress:
    """How many tasks of each category have finished, and how long they took."""

    def __init__(self) -> None:
        self._tasks: dict[str, int] = {}
        self._time_s: dict[str, float] = {}

    def add(self, category: str, wall_s: float) -> None:
        """A task has finished."""
        self._tasks[category] = self._tasks.get(category, 0) + 1
        self._time_s[category] = self._time_s.get(category, 0.0) + wall_s

    def tasks(self, category: str) -> int:
        """How many have finished."""
        return self._tasks.get(category, 0)

    def mean_s(self, category: str) -> float:
        """How long they took on average; 0, which is first, if none has finished."""
        tasks = self.tasks(category)
        return self._time_s[category] / tasks if tasks else 0.0


@dataclass(frozen=True)
class Order:
    """Who comes first: who has the lowest `turn`."""

    about: str
    turn: Callable[[Waiting, Progress], Turn]
    tells_apart: Callable[[Waiting], Hashable] | None = None
    """What else tasks of one line have in common, beside what they are going to ask for."""
    renews: bool = False
    """Whether who queues again after a failure is a new arrival."""
    follows: bool = False
    """Whether turns change with what is learned of others."""
    needs_graph: bool = False
    """Whether it goes by the task's place in the graph of tasks."""


FIRST_COME = Order(
    "in the order of submission; a failed attempt keeps its place", lambda waiting, _: ()
)
FIFO = Order(
    "in the order of submission; a failed attempt is a new arrival",
    lambda waiting, _: (),
    renews=True,
)


def _depth(waiting: Waiting, _: Progress) -> float:
    return waiting.task.depth


def _height(waiting: Waiting, _: Progress) -> float:
    return -waiting.task.depth


def _rank(waiting: Waiting, _: Progress) -> float:
    return -waiting.task.rank


def _finished(waiting: Waiting, progress: Progress) -> float:
    return progress.tasks(waiting.task.category)


_BY_GRAPH: dict[str, tuple[str, Callable[[Waiting, Progress], float]]] = {
    "bfs": ("tasks near the beginning of the workflow first", _depth),
    "dfs": ("tasks far from the beginning of the workflow first", _height),
    "topology-rank": ("tasks with the longest way to the end of the workflow first", _rank),
}
_AFTER_FAILURES = {
    "persevere": ("of these, what failed most often first", -1),
    "postpone": ("of these, what failed least often first", 1),
}


def _workflow_orders() -> dict[str, Order]:
    made = {}
    for how, (words, sign) in _AFTER_FAILURES.items():
        for name, (about, first) in _BY_GRAPH.items():
            made[f"{name}-{how}"] = Order(
                f"{about}; {words}",
                lambda waiting, progress, first=first, sign=sign: (  # type: ignore[misc]
                    first(waiting, progress),
                    sign * waiting.failures,
                ),
                tells_apart=lambda waiting: (waiting.task.depth, waiting.task.rank),
                needs_graph=True,
            )
        made[f"least-finished-first-{how}"] = Order(
            f"tasks of the category of which the fewest have finished first; {words}",
            lambda waiting, progress, sign=sign: (  # type: ignore[misc]
                _finished(waiting, progress),
                sign * waiting.failures,
            ),
            follows=True,
        )
    return made


ORDERS: dict[str, Order] = {
    "first-come": FIRST_COME,
    "fifo": FIFO,
    **_workflow_orders(),
    "largest-first": Order(
        "what asks for most memory first, as far as it is known",
        lambda waiting, _: (-waiting.size,),
        follows=True,
    ),
    "shortest-first": Order(
        "tasks of the category that takes the least time first",
        lambda waiting, progress: (progress.mean_s(waiting.task.category),),
        follows=True,
    ),
}
"""All of them by name. Those without a word for failures persevere."""
ORDERS |= {
    name.removesuffix("-persevere"): order
    for name, order in ORDERS.items()
    if name.endswith("-persevere")
}


def order(name: str) -> Order:
    """The order of this name.

    >>> order("bfs").about
    'tasks near the beginning of the workflow first; of these, what failed most often first'
    """
    found = ORDERS.get(name)
    if found is None:
        raise UnknownOrder(f"{name!r} is no order; there is {', '.join(map(repr, ORDERS))}.")
    return found
