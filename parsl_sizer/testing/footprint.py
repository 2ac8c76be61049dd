"""How much memory an object holds, with everything that it leads to."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType

_OF_THE_PROGRAM = (type, ModuleType, BuiltinFunctionType)
"""Things that exist once, however many objects lead to them."""


def footprint(*roots: object, ignoring: Iterable[object] = ()) -> int:
    """The bytes that `roots` hold, each object counted once, classes and modules not at all.

    Arrays count with their data, functions with what they close over. What is reachable
    from `ignoring` is left out.

    >>> from array import array
    >>> footprint([array("d", range(1000))]) > 8000
    True
    >>> shared = list(range(1000))
    >>> footprint((shared,), ignoring=[shared]) < 100
    True
    """
    seen: set[int] = set()
    _walk(ignoring, seen)
    return _walk(roots, seen)


def _walk(roots: Iterable[object], seen: set[int]) -> int:
    """The bytes of what can be reached and has not been `seen`; all of it is then."""
    total = 0
    stack = list(roots)
    while stack:
        thing = stack.pop()
        if id(thing) in seen or isinstance(thing, _OF_THE_PROGRAM):
            continue
        seen.add(id(thing))
        total += sys.getsizeof(thing)
        stack.extend(_next(thing))
    return total


def _next(thing: object) -> Iterator[object]:
    if isinstance(thing, FunctionType):
        # Not its globals: they are the module's.
        yield from (thing.__closure__, thing.__defaults__, thing.__kwdefaults__)
        return
    yield from gc.get_referents(thing)
    if type(thing).__module__.partition(".")[0] == "numpy":
        # A view has no data of its own; arrays do not tell the collector what they view.
        yield getattr(thing, "base", None)
