"""What a recogniser is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from parsl_sizer.executor.splitting import Exhaustion, Split
from parsl_sizer.executor.story import Sizing
from parsl_sizer.model import NO_OPT_OUT, OptOut
from parsl_sizer.model.empty import EMPTY

NAMED = 3
"""So many kinds of calls in one batch are named."""
_MEMORY_ERROR = re.compile(r"\b_?\w*MemoryError\b|\bstd::bad_alloc\b")


class Seen(NamedTuple):
    """What a recogniser has made out of a call."""

    category: str
    features: Mapping[str, float] = EMPTY
    opt_outs: frozenset[OptOut] = NO_OPT_OUT
    tag: object = None
    """What it wants to be told at the end with the result."""
    warning: str | None = None
    """What the user has to know of such tasks; said once."""
    instead: Mapping[str, Any] = EMPTY
    """Keyword arguments to call it with instead, so that it can be called again."""


class Recogniser:
    """Knows one framework; each executor has its own.

    `claims` and `see` have to be written, the rest where it makes sense. No method may wait
    for anything. One that raises is said once, and the task goes on as if it were not there.
    """

    @staticmethod
    def claims(function: object) -> bool:  # noqa: ARG004
        """Whether calls of a user's function are this framework's; asked once a function."""
        return False

    @staticmethod
    def own(function: Callable[..., Any]) -> Callable[..., Any]:
        """What the user wrote, if a claimed function has that inside; asked once a function."""
        return function

    def see(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Seen | None:
        """What a call is about; None if that cannot be made out."""
        return None

    def error_in(self, value: object) -> BaseException | None:
        """The error that a result stands for."""
        return None

    def is_memory_error(self, error: BaseException) -> bool:
        """Whether an error says that there was no memory left."""
        return isinstance(error, MemoryError)

    def over(self, tag: object, value: object, error: BaseException | None, sizing: Sizing) -> None:
        """Take note that the task of `tag` is over, before its framework hears of it."""

    def split(self, exhaustion: Exhaustion) -> Split | None:
        """How to do a task's work in parts; None if that cannot be."""
        return None


PLAIN = Recogniser()
"""Of everything that is no framework's."""


def tells_of_memory(text: str) -> bool:
    """Whether a text quotes an error about memory.

    >>> tells_of_memory("The error was: MemoryError()."), tells_of_memory("no memory of it")
    (True, False)
    """
    return _MEMORY_ERROR.search(text) is not None


def together(names: Sequence[str]) -> str:
    """The category of a batch; more than a few names are not told apart.

    >>> together(["inc"]), together(["a", "b", "c", "d"])
    ('inc', 'a + b + c + …')
    """
    more = ["…"] if len(names) > NAMED else []
    return " + ".join([*names[:NAMED], *more])


def comes_from(thing: object, *packages: str) -> bool:
    """Whether an object, or the class of it, was defined in one of these packages."""
    for owner in (thing, type(thing)):
        module = getattr(owner, "__module__", None)
        if isinstance(module, str) and module.partition(".")[0] in packages:
            return True
    return False
