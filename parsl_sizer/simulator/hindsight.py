"""What a replay can know beforehand, for the strategies that ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from parsl_sizer.model import Amounts, Kind, Resources, TaskInfo
from parsl_sizer.strategies import Hindsight

from .trace import Row


class TraceHindsight(Hindsight):
    """The whole trace known beforehand, without being held in memory.

    `rows` opens the trace anew. It is read through at most once, when a strategy
    asks for the maximum or the number of categories; what exceeds the node is left
    out of the maximum, as it is of the replay. A task's peak is known once its row
    went through `followed`, until `keep` further ones did (None: for ever).

    >>> from .trace import parse
    >>> trace = ["category,time_s,memory_mb", "align,60,1500", "call,60,9000000"]
    >>> known = TraceHindsight(lambda: parse(trace), Resources(memory=64e9))
    >>> known.maximum[Kind.MEMORY], known.categories
    (1500000000.0, 2)
    >>> [known.peak(row.task)[Kind.MEMORY] for row in known.followed(parse(trace))]
    [1500000000.0, 9000000000000.0]
    """

    _rows: Callable[[], Iterable[Row]]
    _node: Resources
    _keep: int | None
    _peaks: dict[int | str, Amounts]

    def __init__(
        self, rows: Callable[[], Iterable[Row]], node: Resources, *, keep: int | None = 1
    ) -> None:
        # The parent is frozen and has slots: it takes no assignment.
        self.__dict__.update(_rows=rows, _node=node, _keep=keep, _peaks={})

    def followed(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, each known by its task while it is replayed."""
        for row in rows:
            if self._keep is not None and len(self._peaks) >= self._keep:
                del self._peaks[next(iter(self._peaks))]
            self._peaks[row.task.task_id] = row.peak
            yield row

    def peak(self, task: TaskInfo) -> Amounts:
        return self._peaks[task.task_id]

    @property
    def maximum(self) -> Mapping[Kind, float]:
        return self._survey[0]

    @property
    def categories(self) -> int:
        return self._survey[1]

    @cached_property
    def _survey(self) -> tuple[Mapping[Kind, float], int]:
        maximum: dict[Kind, float] = {}
        categories: set[str] = set()
        for row in self._rows():
            categories.add(row.task.category)
            for kind, peak in row.peak.items():
                if maximum.get(kind, -1.0) < peak <= self._node[kind]:
                    maximum[kind] = peak
        return maximum, len(categories)
