"""dask, which gives an executor functions of its own, with batches of its tasks in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .base import Recogniser, Seen, tells_of_memory, together


class Dask(Recogniser):
    """Tasks are known by the prefix of their key, as in dask's own dashboard."""

    @staticmethod
    def claims(function: object) -> bool:
        is_local = getattr(function, "__module__", None) == "dask.local"
        return is_local and getattr(function, "__name__", None) == "batch_execute_tasks"

    def see(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Seen | None:
        from dask.utils import key_split  # type: ignore[import-not-found,import-untyped,unused-ignore]

        [batch] = args
        if len(batch) == 1:
            return Seen(key_split(batch[0][0]))
        prefixes = sorted({key_split(task[0]) for task in batch})
        return Seen(together(prefixes), {"calls": float(len(batch))})

    def error_in(self, value: object) -> BaseException | None:
        """What a task raised, which dask's own `get` functions give back as a result."""
        for result in value if isinstance(value, list) else ():
            match result:
                case (_, (BaseException() as error, _), True):
                    return error
                case (_, bytes() as packed, True):  # it is not for us to unpack
                    is_about_memory = tells_of_memory(packed.decode("latin-1"))
                    return MemoryError() if is_about_memory else RuntimeError("in dask")
        return None
