"""joblib, and scikit-learn through it: batches of calls, each one task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from .base import Recogniser, Seen


class Joblib(Recogniser):
    """Tasks are known by the function that `delayed` was given."""

    @staticmethod
    def claims(function: object) -> bool:
        kind = type(function)
        return kind.__name__ == "BatchedCalls" and kind.__module__ == "joblib.parallel"

    def see(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Seen | None:
        calls = function.items  # type: ignore[attr-defined]
        names = sorted({_name(call[0]) for call in calls})
        features = {"calls": float(len(calls))} if len(calls) > 1 else {}
        return Seen(" + ".join(names), features)


def _name(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", None) or type(function).__name__)
