"""What runs where a call was carried to; it crosses as code, so workers need not have it.

The result comes back as cloudpickle packs it, where a class of the user's script is itself
again: `except MyError` catches, and `isinstance` holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

PLAIN = frozenset({type(None), bool, int, float, str, bytes})


class Parcel:
    """A packed value that is unpacked where it arrives, by whoever opens it."""

    def __init__(self, packed: bytes) -> None:
        self.packed = packed

    def __reduce__(self) -> tuple[Any, ...]:
        import pickle

        return pickle.loads, (self.packed,)


def run(call: tuple[Callable[..., Any], Iterable[Any], Mapping[str, Any]]) -> Any:
    """Make one call; what it returns or raises, packed."""
    try:
        function, args, kwargs = call
        return packed(function(*args, **kwargs))
    except Exception as error:
        return packed_error(error)


def run_each(calls: tuple[Callable[..., Any], Iterable[Iterable[Any]]]) -> Any:
    """Make calls one after the other; the list of their results, packed."""
    try:
        function, each = calls
        return packed([function(*args) for args in each])
    except Exception as error:
        return packed_error(error)


def packed(value: Any) -> Any:
    """The value as it is to be returned."""
    if type(value) in PLAIN:
        return value
    import cloudpickle

    try:
        return Parcel(cloudpickle.dumps(value))
    except TypeError:  # a traceback, say, which dask gives back beside its error
        import tblib.pickling_support

        tblib.pickling_support.install()
        return Parcel(cloudpickle.dumps(value))


def packed_error(error: Exception) -> Any:
    """An error as Parsl gives it back, or why it cannot be packed."""
    import cloudpickle
    from parsl.app.errors import RemoteExceptionWrapper

    try:
        told = RemoteExceptionWrapper(type(error), error, error.__traceback__)
        return Parcel(cloudpickle.dumps(told))
    except Exception as reason:
        text = f"The call raised {error!r:.500}, which cannot be packed: {reason!r:.200}."
        return RemoteExceptionWrapper(RuntimeError, RuntimeError(text), None)
