"""joblib, and scikit-learn through it: batches of calls, each one task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from parsl_sizer.executor.naming import name_of_function, unwrapped

from .base import Recogniser, Seen, together


class Joblib(Recogniser):
    """Tasks are known by the function that `delayed` was given."""

    @staticmethod
    def claims(function: object) -> bool:
        kind = type(function)
        return kind.__name__ == "BatchedCalls" and kind.__module__ == "joblib.parallel"

    @staticmethod
    def own(function: Callable[..., Any]) -> Callable[..., Any]:
        return unwrapped(function.items[0][0])  # type: ignore[attr-defined]

    def see(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Seen | None:
        calls = function.items  # type: ignore[attr-defined]
        names = sorted({name_of_function(call[0]) for call in calls})
        features = {"calls": float(len(calls))} if len(calls) > 1 else {}
        return Seen(together(names), features)
