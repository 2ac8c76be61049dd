"""A call as data: it crosses Parsl whole.

Parsl reads some keyword arguments itself (`inputs`, `stdout`, `walltime`, …), stages files and
waits for futures that it finds among arguments, and keeps the functions that it has seen. A
user of `concurrent.futures` expects none of that. So Parsl is given one argument, a `Carried`,
and a function that does no more than to call it; `intake` looks inside.
"""

from __future__ import annotations

import io
import operator
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache, partial
from typing import Any

import cloudpickle

from parsl_sizer.model.empty import EMPTY

from . import errand
from .hints import Hinted
from .story import Story


class Ticket(Future):  # type: ignore[type-arg]
    """The future of a carried call: it can be cancelled until the call is sent to a worker."""

    def __init__(self) -> None:
        super().__init__()
        self.story: Story | None = None
        self.when_cancelled: Callable[[], None] | None = None
        """Whoever has the call tells here who is to hear at once that nobody wants it."""
        self._is_wanted: bool | None = None

    def cancel(self) -> bool:
        is_cancelled = super().cancel()
        if is_cancelled and self.when_cancelled is not None:
            self.when_cancelled()
        return is_cancelled

    def begin(self) -> bool:
        """Whether the call is to be made: it runs from now on, unless it was cancelled."""
        if self._is_wanted is None:
            self._is_wanted = self.set_running_or_notify_cancel()
        return self._is_wanted


class Carried:
    """A call of the user's, and its future, which stays here."""

    __slots__ = ("args", "function", "kwargs", "ticket")

    features: Mapping[str, float] = EMPTY

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.ticket = Ticket()

    def __call__(self) -> Any:
        """Make the call in this process: threads are given the object itself."""
        return self.function(*self.args, **self.kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _errand("run", (self.function, tuple(self.args), dict(self.kwargs)))


class Chunk(Carried):
    """Calls of one function, to be made one after the other; `args` are theirs."""

    __slots__ = ()

    def __init__(self, function: Callable[..., Any], calls: Sequence[Sequence[Any]]) -> None:
        super().__init__(function, calls, {})

    @property
    def features(self) -> Mapping[str, float]:  # type: ignore[override]
        """How many calls there are: the last chunk has fewer."""
        return {"calls": float(len(self.args))}

    def __call__(self) -> list[Any]:
        return [self.function(*args) for args in self.args]

    def __reduce__(self) -> tuple[Any, ...]:
        return _errand("run_each", (self.function, tuple(self.args)))


class Bearer:
    """What Parsl is given to call: anything carried, under the name of the user's function."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __call__(self, carried: Carried) -> Any:
        return carried()

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.methodcaller, ("__call__",)


@lru_cache(maxsize=128)
def bearer(name: str) -> Bearer:
    """The one bearer of this name: what caches its pickle by identity finds it again."""
    return Bearer(name)


def carried_in(args: Sequence[Any]) -> Carried | None:
    """The carried call among the arguments of an executor's function, if that is what it is."""
    return args[0] if len(args) == 1 and isinstance(args[0], Carried) else None


def contents(argument: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arguments of a carried call, in whatever form it has got to a worker."""
    if isinstance(argument, Carried):
        return argument.args, argument.kwargs
    [(_, args, kwargs)] = argument.args
    return args, kwargs


class _Pickled:
    """Bytes in the place of what they unpickle to."""

    def __init__(self, packed: bytes) -> None:
        self.packed = packed

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self.packed,)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Functions of the user's script go by value; hints stay here."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Hinted:
            return operator.getitem, ((obj.function,), 0)
        return super().reducer_override(obj)


def _errand(name: str, call: tuple[Any, ...]) -> tuple[Any, ...]:
    """How to pickle a call: there it is a partial of one of the functions in `errand`."""
    file = io.BytesIO()
    try:
        _Pickler(file).dump(call)
    except TypeError as error:  # of which Parsl would not tell the reason
        raise pickle.PicklingError(str(error)) from error
    return partial, (_Pickled(_code(name)), _Pickled(file.getvalue()))


_coding = threading.Lock()


def _code(name: str) -> bytes:
    """A function of `errand` by value."""
    with _coding:  # what is set is cloudpickle's, for all threads
        return _coded(name)


@lru_cache(maxsize=2)
def _coded(name: str) -> bytes:
    cloudpickle.register_pickle_by_value(errand)
    try:
        packed: bytes = cloudpickle.dumps(getattr(errand, name))
    finally:
        cloudpickle.unregister_pickle_by_value(errand)
    return packed
