"""Strategies by name.

``family("percentile:p=50", setting)`` gives what makes one strategy per category.
Third parties register theirs under the entry point group
``parsl_sizer.strategies``: a function ``build(setting, **options) -> Family``
whose first line of docstring is shown by ``parsl-sizer strategies``.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from parsl_sizer.model import UnknownStrategy

from .base import Family, Setting

GROUP = "parsl_sizer.strategies"
Build = Callable[..., Family]


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the catalog."""

    name: str
    target: str
    paper: str
    replay_only: bool = False

    @property
    def build(self) -> Build:
        module, _, attribute = self.target.partition(":")
        return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]

    @property
    def summary(self) -> str:
        """The first line of the builder's docstring."""
        return (inspect.getdoc(self.build) or self.name).splitlines()[0]


P000 = "Phung et al., WORKS 2021"
P001 = "Tovar et al., TPDS 2018"
P003 = "Witt et al., HPCS 2019"
BUCKETING = "Phung and Thain, IPDPS 2024"
HERE = "parsl_sizer.strategies."

BUILT_IN = (
    Entry("auto", HERE + "auto:build", "parsl_sizer"),
    Entry("optimal-ladder", HERE + "optimal_ladder:build", "parsl_sizer"),
    Entry("conditioned-ladder", HERE + "conditioned_ladder:build", "parsl_sizer"),
    Entry("whole-machine", HERE + "whole_machine:build", P000),
    Entry("doubling", HERE + "doubling:build", P000),
    Entry("user-declared", HERE + "user_declared:build", P000),
    Entry("quantized-bucketing", HERE + "quantized_bucketing:build", P000),
    Entry("kmeans-bucketing", HERE + "kmeans_bucketing:build", P000),
    Entry("min-waste", HERE + "min_waste:build", P001),
    Entry("max-throughput", HERE + "max_throughput:build", P001),
    Entry("percentile", HERE + "percentile:build", P003),
    Entry("regression", HERE + "regression:build", P003),
    Entry("user-estimate", HERE + "user_estimate:build", P003),
    Entry("greedy-bucketing", HERE + "greedy_bucketing:build", BUCKETING),
    Entry("exhaustive-bucketing", HERE + "exhaustive_bucketing:build", BUCKETING),
    Entry("oracle", HERE + "oracle:build", "the limit", replay_only=True),
)

VARIANTS: Mapping[str, str] = {
    "percentile 50": "percentile:p=50",
    "percentile 95": "percentile:p=95",
    "quantized-bucketing level 1": "quantized-bucketing:level=1",
    "quantized-bucketing level 2": "quantized-bucketing:level=2",
    "quantized-bucketing level 3": "quantized-bucketing:level=3",
    "kmeans-bucketing level 1": "kmeans-bucketing:level=1",
    "kmeans-bucketing level 2": "kmeans-bucketing:level=2",
    "kmeans-bucketing level 3": "kmeans-bucketing:level=3",
    "greedy-bucketing deterministic": "greedy-bucketing:deterministic=true",
    "exhaustive-bucketing deterministic": "exhaustive-bucketing:deterministic=true",
    "regression mean+-": "regression:offset=mean+-",
    "regression mean-": "regression:offset=mean-",
    "regression max-": "regression:offset=max-",
    "user estimate, then doubling": "user-estimate",
}
"""How the papers' tables name a strategy with its options."""


def entries() -> dict[str, Entry]:
    """Every strategy installed here, by name; a third party cannot replace a built-in one."""
    found = {
        point.name: Entry(point.name, point.value, point.dist.name if point.dist else "plug-in")
        for point in entry_points(group=GROUP)
    }
    return {entry.name: entry for entry in BUILT_IN} | {
        name: entry for name, entry in found.items() if name not in _BUILT_IN_NAMES
    }


_BUILT_IN_NAMES = frozenset(entry.name for entry in BUILT_IN)


def family(spec: str | Family, setting: Setting) -> Family:
    """The family that `spec` names: ``NAME`` or ``NAME:OPTION=VALUE,OPTION=VALUE``."""
    if not isinstance(spec, str):
        return spec
    name, _, text = VARIANTS.get(spec, spec).partition(":")
    known = entries()
    if name not in known:
        close = difflib.get_close_matches(name, [*known, *VARIANTS], n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}."
        raise UnknownStrategy(f"No strategy is called {name!r}; {hint}")
    options = dict(_option(name, part) for part in text.split(",") if part.strip())
    build = known[name].build
    signature = inspect.signature(build)
    try:
        signature.bind(setting, **options)
    except TypeError as error:
        takes = ", ".join(list(signature.parameters)[1:]) or "no options"
        raise UnknownStrategy(f"Strategy {name!r}: {error}; it takes {takes}.") from None
    for key, value in options.items():
        parameter = signature.parameters.get(key)
        if parameter is None or not isinstance(parameter.default, (bool, int, float)):
            continue
        if isinstance(parameter.default, bool) != isinstance(value, bool):
            wanted = "true or false" if isinstance(parameter.default, bool) else "a number"
            raise UnknownStrategy(f"Strategy {name!r}: {key} must be {wanted}, not {value!r}.")
    return build(setting, **options)


def _option(name: str, part: str) -> tuple[str, object]:
    key, equals, value = (piece.strip() for piece in part.partition("="))
    if not equals or not key:
        raise UnknownStrategy(f"Strategy {name!r}: {part!r} is not of the form OPTION=VALUE.")
    lowered = value.lower()
    if lowered in ("true", "false"):
        return key, lowered == "true"
    for number in (int, float):
        try:
            return key, number(value)
        except ValueError:
            continue
    return key, value
