"""Colmena: what a thinker asks for, and what it hears of it.

Every request is a `Result` that travels to the task and back, so a call's first argument says
what it is about. A method that is an executable is three tasks, and only the first and the
last of them carry the `Result`: the one in between is known by its run directory.

A method catches whatever is raised in it. Its future then has a `Result` without success.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from parsl_sizer.executor.story import AttemptMade, Sizing
from parsl_sizer.model import NO_OPT_OUT, Kind, OptOut
from parsl_sizer.model.empty import EMPTY

from .base import Recogniser, Seen, comes_from, tells_of_memory

PACKAGE = "colmena"
SIZING = "sizing"
"""Under this name a thinker finds in `task_info` what its task was given."""
ONCE = frozenset({OptOut.NO_RETRY, OptOut.NEVER_KILL})
"""For a task that cannot be run twice: to stop it would be to lose it."""
LONGEST = 10_000
"""So much of an error's text is read."""
MOST = 1e300
"""What has as much is no number that explains a size."""


class Step(NamedTuple):
    """One of the tasks that an executable is."""

    suffix: str
    place: int
    """Of the `Result`, or else the run directory, among the arguments."""


METHOD = Step("", 0)
PREPROCESS = Step("_preprocess", 0)
EXECUTE = Step("_execute", 0)
POSTPROCESS = Step("_postprocess", 1)
STEPS = {f"_execute{step.suffix}": step for step in (PREPROCESS, EXECUTE, POSTPROCESS)}
"""By the names of Colmena's own functions."""
READERS = (METHOD, PREPROCESS)
"""The steps that are given the inputs of a request."""


class Request(NamedTuple):
    """What a task is for."""

    step: Step
    result: Any


_RUNS: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""The `Result`s of executables by their run directories, for as long as Colmena has them.

For all executors of a process: Parsl may run each step of an executable on another one.
"""


class Colmena(Recogniser):
    """Tasks of Colmena's ParslTaskServer."""

    @staticmethod
    def claims(function: object) -> bool:
        return _is_method(function) or _step(function) is not METHOD

    @staticmethod
    def own(function: Callable[..., Any]) -> Callable[..., Any]:
        if not _is_method(function):
            return function
        written = getattr(function, "_function", None) or getattr(function, "function", None)
        return written if callable(written) else function

    def see(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Seen | None:
        step = _step(function)
        if len(args) <= step.place:
            return None
        result = args[step.place]
        if step is EXECUTE:
            result = _RUNS.get(str(result))
        if not _is_result(result):
            return None
        opt_outs, warning = NO_OPT_OUT, None
        if step in READERS and _has_inputs_in_proxies(result):
            opt_outs, warning = ONCE, once(result.method)
        return Seen(
            f"{_category(result)}{step.suffix}",
            _features(result),
            opt_outs,
            Request(step, result),
            warning,
            instead=_emptied(kwargs) if step is EXECUTE else EMPTY,
        )

    def error_in(self, value: object) -> BaseException | None:
        result = _result_in(value)
        if result is None or result.success is not False:
            return None
        failure = result.failure_info
        text = "" if failure is None else str(failure.exception)[:LONGEST]
        return MemoryError(text) if tells_of_memory(text) else RuntimeError(text)

    def over(self, tag: object, value: object, error: BaseException | None, sizing: Sizing) -> None:
        if not isinstance(tag, Request) or tag.step is POSTPROCESS:
            return  # it brings back what the executable was given
        result = _result_in(value)
        if tag.step is PREPROCESS and result is not None:
            _RUNS[str(_run_directory(value))] = result
        if result is None:  # Colmena sends back the request itself
            result = tag.result
        result.task_info = {**(result.task_info or {}), SIZING: as_plain_data(sizing)}


def once(method: object) -> str:
    """What to tell the user of inputs that are there only once."""
    return (
        f"Colmena has put inputs of {str(method)!r:.80} into ProxyStore, where the first attempt "
        "takes them out: such tasks are sized, but neither stopped nor tried again. To let them "
        "be, give proxies of your own, store.proxy(data), or raise proxystore_threshold."
    )


def as_plain_data(sizing: Sizing) -> dict[str, object]:
    """What is known of a task, as any queue can carry it; amounts are bytes and cores.

    >>> as_plain_data(Sizing("simulate", ()))
    {'category': 'simulate', 'allocation': {}, 'peak': {}, 'attempts': []}
    """
    attempts = [_attempt(made) for made in sizing.attempts]
    last = attempts[-1] if attempts else {"allocation": {}, "peak": {}}
    return {
        "category": sizing.category,
        "allocation": last["allocation"],
        "peak": last["peak"],
        "attempts": attempts,
    }


def _attempt(made: AttemptMade) -> dict[str, object]:
    return {
        "ending": made.ending.value,
        "allocation": _amounts(made.allocation),
        "peak": _amounts(made.peak),
        "wall_s": made.wall_s,
        "host": made.host,
        "why": made.why,
    }


def _amounts(amounts: Mapping[Kind, float]) -> dict[str, float]:
    return {kind.value: amount for kind, amount in amounts.items() if amount < MOST}


def _is_method(function: object) -> bool:
    """Whether this is a `ColmenaMethod`; users derive classes of their own from it."""
    return any(
        kind.__name__ == "ColmenaMethod" and comes_from(kind, PACKAGE)
        for kind in type(function).__mro__
    )


def _step(function: object) -> Step:
    if isinstance(function, FunctionType) and comes_from(function, PACKAGE):
        return STEPS.get(function.__name__, METHOD)
    return METHOD


def _is_result(thing: object) -> bool:
    return comes_from(thing, PACKAGE) and hasattr(thing, "failure_info")


def _result_in(value: object) -> Any | None:
    """The `Result` that a task has returned; what prepares an executable has more to say."""
    if isinstance(value, tuple) and value:
        value = value[0]
    return value if _is_result(value) else None


def _run_directory(value: object) -> object:
    return value[1] if isinstance(value, tuple) and len(value) > 1 else None


def _emptied(kwargs: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The files that a program prints to, emptied first; Parsl would append to a first attempt's.

    >>> _emptied({"stdout": "run/colmena.stdout", "node_count": 1})
    {'stdout': ('run/colmena.stdout', 'w')}
    """
    files = {name: kwargs.get(name) for name in ("stdout", "stderr")}
    return {name: (path, "w") for name, path in files.items() if isinstance(path, str)}


def _category(result: Any) -> str:
    tag = (result.task_info or {}).get("category")
    return tag if isinstance(tag, str) and tag else str(result.method)


def _features(result: Any) -> dict[str, float]:
    features = {
        name: float(value)
        for name, value in (result.task_info or {}).items()
        if isinstance(value, (int, float))
        and not isinstance(value, bool)
        and -MOST < value < MOST  # nor is it infinite, or not a number
    }
    size = result.message_sizes.get("inputs")
    if size is not None:
        features.setdefault("input_size", float(size))
    return features


def _has_inputs_in_proxies(result: Any) -> bool:
    """Whether Colmena has made proxies of inputs: of each it has noted how long that took."""
    return bool(result.time.proxy)
