"""Coffea: columnar analysis of collision events.

Its `ParslExecutor` gives Parsl three functions, all of its own. They are told apart by what
they are given: a `FileMeta` to look into, a `WorkItem` (some entries of a file) to process, or
a list of results to accumulate. The memory of the second grows with the entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from parsl_sizer.executor.splitting import Exhaustion, Part, Split

from .base import Recogniser, Seen, comes_from, tells_of_memory

PREPROCESSING, PROCESSING, ACCUMULATING = "preprocessing", "processing", "accumulating"
"""Coffea's own names for what it does."""
ENTRIES = "entries"
QUOTES = "The error was:"
"""After these words Coffea quotes what a processor raised; what it was at comes before."""

_SEEN = {"FileMeta": Seen(PREPROCESSING)}
_ACCUMULATING = Seen(ACCUMULATING)


class Coffea(Recogniser):
    """Knows the tasks of a Coffea `Runner`."""

    @staticmethod
    def claims(function: object) -> bool:
        return comes_from(function, "coffea")

    def see(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Seen | None:
        if type(function).__name__ == "_reduce":
            return _ACCUMULATING
        for item in (*args, *kwargs.values()):
            if _is_chunk(item):
                entries = float(item.entrystop - item.entrystart)
                return Seen(f"{PROCESSING}:{item.dataset}", {ENTRIES: entries})
            if comes_from(item, "coffea"):
                return _SEEN.get(type(item).__name__)
        return None

    def is_memory_error(self, error: BaseException) -> bool:
        return isinstance(error, MemoryError) or tells_of_memory(str(error).rpartition(QUOTES)[2])

    def split(self, exhaustion: Exhaustion) -> Split | None:
        """Two halves of a chunk that no node has the memory for."""
        if exhaustion.larger is not None:
            return None
        for item in (*exhaustion.args, *exhaustion.kwargs.values()):
            if _is_chunk(item) and item.entrystop - item.entrystart > 1:
                # It has made the chunk, so it is there.
                from coffea.processor.executor import _reduce

                middle = (item.entrystart + item.entrystop) // 2
                halves = replace(item, entrystop=middle), replace(item, entrystart=middle)
                compression = getattr(exhaustion.function, "level", None)
                return Split(
                    [_with(exhaustion, item, half) for half in halves], _reduce(compression)
                )
        return None


def _is_chunk(item: object) -> bool:
    return type(item).__name__ == "WorkItem" and comes_from(item, "coffea")


def _with(exhaustion: Exhaustion, item: object, instead: object) -> Part:
    """The call with something else in the place of an item."""
    args = [instead if value is item else value for value in exhaustion.args]
    kwargs = {
        name: instead if value is item else value for name, value in exhaustion.kwargs.items()
    }
    return Part(*args, **kwargs)
