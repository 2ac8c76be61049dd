"""What a user says about an app: in its specification, or with a decorator."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeGuard, TypeVar

from parsl_sizer.model import (
    MB,
    NO_OPT_OUT,
    Amounts,
    Kind,
    OptOut,
    SizerError,
    is_bytes,
    parse_amount,
)

ATTRIBUTE = "__parsl_sizer__"
"""`functools.wraps` copies it, so it is found however often a function is wrapped."""

ISOLATIONS = ("runner", "fork", "inline")

_KINDS = {kind.value: kind for kind in Kind}
_OPT_OUTS = {opt_out.value: opt_out for opt_out in OptOut}

Function = TypeVar("Function", bound=Callable[..., Any])


class BadHint(SizerError, ValueError):
    """A hint that cannot be understood."""


@dataclass(frozen=True, slots=True)
class Hints:
    """The user's words about a task, read; what is not for us is `given` to the engine."""

    category: str | None = None
    requested: Amounts = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, object] = field(default_factory=dict)
    opt_outs: frozenset[OptOut] = NO_OPT_OUT
    isolation: str | None = None
    given: Mapping[str, object] = field(default_factory=dict)


NO_HINTS = Hints()


def read(specification: Mapping[str, object] | None) -> Hints:
    """The hints in a mapping, such as a ``parsl_resource_specification``.

    Amounts of memory and disk are MB, as Work Queue takes them, or texts with a unit. What
    is None is not said.

    >>> hints = read({"memory": "2GB", "category": "align", "fixed": True, "priority": 3})
    >>> hints.requested, hints.category, sorted(hints.opt_outs), hints.given
    ({<Kind.MEMORY: 'memory'>: 2000000000.0}, 'align', [<OptOut.FIXED: 'fixed'>], {'priority': 3})
    """
    if not specification:
        return NO_HINTS
    if not isinstance(specification, Mapping):
        raise BadHint(
            f"A specification is a mapping of words to values, not {specification!r:.200}."
        )
    requested: dict[Kind, float] = {}
    opt_outs: set[OptOut] = set()
    given: dict[str, object] = {}
    read: dict[str, Any] = {}
    for key, value in specification.items():
        if value is None:
            continue
        if key in _KINDS:
            requested[_KINDS[key]] = _amount(_KINDS[key], value)
        elif key in _OPT_OUTS:
            opt_outs.update({_OPT_OUTS[key]} if _claim(key, value) else ())
        elif key in _READERS:
            read[key] = _READERS[key](value)
        else:
            given[key] = value
    if OptOut.FIXED in opt_outs and not requested:
        raise BadHint(
            "'fixed' gives a task exactly what it states, but no cores, memory or disk is stated."
        )
    return Hints(requested=requested, opt_outs=frozenset(opt_outs), given=given, **read)


def merged(first: Hints, then: Hints) -> Hints:
    """The hints of an app and those of one call of it, which come first where both speak."""
    if then is NO_HINTS:
        return first
    if first is NO_HINTS:
        return then
    return Hints(
        category=then.category if then.category is not None else first.category,
        requested={**first.requested, **then.requested},
        features={**first.features, **then.features},
        labels={**first.labels, **then.labels},
        opt_outs=first.opt_outs | then.opt_outs,
        isolation=then.isolation or first.isolation,
        given={**first.given, **then.given},
    )


def sized(**hints: object) -> Callable[[Function], Function]:
    """Say something about an app's tasks, between ``@python_app`` and the function.

    >>> @sized(category="align", memory="2GB", no_retry=True)
    ... def align(sequence): ...
    """
    attached = _known_to_us(hints)

    def attach(function: Function) -> Function:
        setattr(function, ATTRIBUTE, attached)
        return function

    return attach


class Hinted:
    """A callable that does what another does, with hints for those who run it."""

    function: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], hints: Hints) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        setattr(self, ATTRIBUTE, hints)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"with_hints({self.function!r})"


def with_hints(function: Callable[..., Any], **hints: object) -> Hinted:
    """The same function with hints for its calls, to be given to a `SizedPoolExecutor`.

    >>> large = with_hints(sorted, category="sort, large", memory="2GB")
    >>> large([2, 1])
    [1, 2]
    """
    if not callable(function):
        raise BadHint(f"with_hints is given {function!r:.200}, which cannot be called.")
    return Hinted(function, merged(hints_of(function), _known_to_us(hints)))


def hints_of(function: object) -> Hints:
    """The hints that a callable carries, also under partials."""
    while (found := getattr(function, ATTRIBUTE, None)) is None:
        if not isinstance(function, functools.partial):
            return NO_HINTS
        function = function.func
    return found if isinstance(found, Hints) else NO_HINTS


def _known_to_us(hints: Mapping[str, object]) -> Hints:
    attached = read(hints)
    if attached.given:
        raise BadHint(
            f"{', '.join(map(repr, attached.given))} is no hint; there are {', '.join(NAMES)}."
        )
    return attached


def _amount(kind: Kind, value: object) -> float:
    if isinstance(value, str):
        try:
            return parse_amount(kind, value)
        except ValueError as error:
            raise BadHint(f"{error}.") from None
    if not is_number(value) or not 0 <= value < math.inf:
        unit = "a number of MB or a text such as '2GB'" if is_bytes(kind) else "a number"
        raise BadHint(f"{kind.value}={value!r} is not an amount; give {unit}.")
    return float(value) * MB if is_bytes(kind) else float(value)


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a number, also one of numpy's; True and False are not meant as such.

    >>> import numpy
    >>> is_number(numpy.int64(3)), is_number(3.5), is_number(True), is_number("3")
    (True, True, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def _claim(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadHint(f"{key}={value!r} must be True or False.")
    return value


def _category(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise BadHint(f"category={value!r} must be a text that is not empty.")
    return value


def _features(value: object) -> dict[str, float]:
    numbers = {}
    if not isinstance(value, Mapping):
        raise BadHint(f"features={value!r} must be a mapping of names to numbers.")
    for name, number in value.items():
        if not isinstance(name, str) or not is_number(number):
            raise BadHint(f"The feature {name!r}: {number!r} must be a name and a number.")
        if math.isfinite(number):  # what is not known is left out
            numbers[name] = float(number)
    return numbers


def _labels(value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise BadHint(f"labels={value!r} must be a mapping.")
    return {str(name): label for name, label in value.items()}


def _isolation(value: object) -> str:
    if value not in ISOLATIONS:
        raise BadHint(f"isolation={value!r} must be one of {', '.join(ISOLATIONS)}.")
    return str(value)


_READERS: dict[str, Callable[[object], object]] = {
    "category": _category,
    "features": _features,
    "labels": _labels,
    "isolation": _isolation,
}

NAMES = (*_KINDS, *_OPT_OUTS, *_READERS)
