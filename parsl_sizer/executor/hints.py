"""What a user says about an app: in its specification, or with a decorator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

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


def read(specification: Mapping[str, object]) -> Hints:
    """The hints in a mapping, such as a ``parsl_resource_specification``.

    Amounts of memory and disk are MB, as Work Queue takes them, or texts with a unit.

    >>> hints = read({"memory": "2GB", "category": "align", "fixed": True, "priority": 3})
    >>> hints.requested, hints.category, sorted(hints.opt_outs), hints.given
    ({<Kind.MEMORY: 'memory'>: 2000000000.0}, 'align', [<OptOut.FIXED: 'fixed'>], {'priority': 3})
    """
    if not specification:
        return NO_HINTS
    requested: dict[Kind, float] = {}
    opt_outs: set[OptOut] = set()
    given: dict[str, object] = {}
    read: dict[str, Any] = {}
    for key, value in specification.items():
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
    attached = read(hints)
    if attached.given:
        raise BadHint(
            f"{', '.join(map(repr, attached.given))} is no hint; there are {', '.join(NAMES)}."
        )

    def attach(function: Function) -> Function:
        setattr(function, ATTRIBUTE, attached)
        return function

    return attach


def _amount(kind: Kind, value: object) -> float:
    if isinstance(value, str):
        try:
            return parse_amount(kind, value)
        except ValueError as error:
            raise BadHint(f"{error}.") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        unit = "a number of MB or a text such as '2GB'" if is_bytes(kind) else "a number"
        raise BadHint(f"{kind.value}={value!r} is not an amount; give {unit}.")
    return value * MB if is_bytes(kind) else float(value)


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
        if not isinstance(name, str) or not isinstance(number, (int, float)):
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
