"""What is a user's function, and what is it called?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

from parsl.app.bash import remote_side_bash_executor
from parsl.app.errors import wrap_error

from .hints import Hinted

LAMBDA = "<lambda>"
_WRAPPER_CODE = wrap_error(len).__code__


def user_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that the user wrote, under everything that Parsl put around it.

    >>> from parsl.app.errors import wrap_error
    >>> def align(): ...
    >>> user_function(wrap_error(align)).__name__
    'align'
    """
    return unwrapped(given_function(function))


def given_function(function: Callable[..., Any]) -> Any:
    """What was given to Parsl to make an app of."""
    seen: set[int] = set()
    candidates: list[Any] = [function]
    while candidates:
        candidate = candidates.pop(0)
        if id(candidate) in seen or not callable(candidate) or len(seen) > 50:
            continue
        seen.add(id(candidate))
        if getattr(candidate, "__code__", None) is _WRAPPER_CODE:
            return candidate.__wrapped__
        candidates += _inside(candidate)
    return function


def _inside(candidate: Any) -> list[Any]:
    """The callables that a wrapper may have around."""
    inside = [getattr(candidate, "__wrapped__", None)]
    if isinstance(candidate, partial):
        inside += [candidate.func, *candidate.args, *candidate.keywords.values()]
    for cell in getattr(candidate, "__closure__", None) or ():
        try:
            inside.append(cell.cell_contents)
        except ValueError:  # an empty cell
            continue
    return [item for item in inside if isinstance(item, (FunctionType, partial))]


def unwrapped(function: Any) -> Callable[..., Any]:
    """Without the partials that bash apps and users make, and without hints."""
    while isinstance(function, (partial, Hinted)):
        function = _inner(function)
    result: Callable[..., Any] = function
    return result


def _is_bash(function: object) -> bool:
    is_one = isinstance(function, partial) and function.func is remote_side_bash_executor
    return is_one and bool(function.args)  # type: ignore[attr-defined]


def _inner(function: Any) -> Any:
    """What is inside of a partial or of hints."""
    if isinstance(function, Hinted):
        return function.function
    return function.args[0] if _is_bash(function) else function.func


def name_of_function(function: Any) -> str:
    """What a callable is called, or what it is. Partials are, if somebody has called them so.

    >>> name_of_function(len), name_of_function(partial(len)), name_of_function(print.__self__)
    ('len', 'len', 'builtins')
    """
    while isinstance(function, (partial, Hinted)):
        if hasattr(function, "__name__") and not _is_bash(function):
            break
        function = _inner(function)
    name = str(getattr(function, "__name__", None) or type(function).__name__)
    code = getattr(function, "__code__", None)
    if name == LAMBDA and code is not None:  # else all of them would be one
        return f"{LAMBDA} in {Path(code.co_filename).name}, line {code.co_firstlineno}"
    return name
