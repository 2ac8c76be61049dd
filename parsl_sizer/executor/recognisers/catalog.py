"""The recognisers that there are, and what becomes of one that raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from parsl_sizer.executor.splitting import Exhaustion, Split
from parsl_sizer.executor.story import Sizing

from .base import PLAIN, Recogniser, Seen
from .coffea import Coffea
from .colmena import Colmena
from .dask import Dask
from .joblib import Joblib

KNOWN: tuple[type[Recogniser], ...] = (Coffea, Colmena, Dask, Joblib)

T = TypeVar("T")


def claimed_by(function: object) -> type[Recogniser] | None:
    """Who knows the calls of a user's function, if anybody does."""
    return next((known for known in KNOWN if known.claims(function)), None)


class Recognisers:
    """Those of one executor."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._made: dict[type[Recogniser], Recogniser] = {}

    def of(self, kind: type[Recogniser] | None) -> Recogniser:
        """The one of this kind; `PLAIN` for None."""
        if kind is None:
            return PLAIN
        if kind not in self._made:
            self._made[kind] = Careful(kind(), self._warn)
        return self._made[kind]


class Careful(Recogniser):
    """A recogniser that never raises: it says what went wrong, and knows nothing."""

    def __init__(self, recogniser: Recogniser, warn: Callable[[str], None]) -> None:
        self._recogniser = recogniser
        self._warn = warn

    def see(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Seen | None:
        what = "tell what a call is about"
        seen = self._try(what, None, self._recogniser.see, function, args, kwargs)
        if seen is not None and seen.warning is not None:
            self._warn(seen.warning)
        return seen

    def error_in(self, value: object) -> BaseException | None:
        return self._try("look into a result", None, self._recogniser.error_in, value)

    def is_memory_error(self, error: BaseException) -> bool:
        otherwise = isinstance(error, MemoryError)
        return self._try("read an error", otherwise, self._recogniser.is_memory_error, error)

    def over(self, tag: object, value: object, error: BaseException | None, sizing: Sizing) -> None:
        what = "say what a task was given"
        self._try(what, None, self._recogniser.over, tag, value, error, sizing)

    def split(self, exhaustion: Exhaustion) -> Split | None:
        return self._try("split a task", None, self._recogniser.split, exhaustion)

    def _try(self, what: str, otherwise: T, method: Callable[..., T], *args: object) -> T:
        try:
            return method(*args)
        except Exception as error:
            name = type(self._recogniser).__name__
            self._warn(f"The recogniser for {name} could not {what}: {error!r:.200}.")
            return otherwise
