"""The two callables that engines are given, and how they cross to workers without the package.

Pickled by any pickler, they are the text of `stub`, the sources of the monitor and, if
there is one, the user's function. Where they arrive the sources become a package of their
own, named by their hash.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import re
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .wire import framed

MODULES = (
    "account",
    "call",
    "cgroup",
    "charge",
    "claims",
    "course",
    "files",
    "fork",
    "grant",
    "inline",
    "keeper",
    "limit",
    "node",
    "node_ledger",
    "outgoing",
    "probe",
    "report",
    "sampler",
    "sandbox",
    "stub",
    "supervisor",
    "travel",
    "watch",
    "wire",
)
UNPACK = "(exec(stub, space := {}), space['load'](package, packed, 'travel').%s)[1]"
"""What a worker evaluates. An expression of builtins needs no support by any pickler."""

TRAVELLED = "_parsl_sizer_monitor_"
KEPT = 256
"""Wrappers of this many functions are kept; the engine caches fewer pickles than that."""


class Packed:
    """Runs what an engine's codec has packed, in the warm runner of this process."""

    __name__ = "run_packed"

    def __call__(self, order: dict[str, Any], buffer: bytes) -> bytes | dict[str, Any]:
        from .claims import Full
        from .supervisor import run_packed

        try:
            made = run_packed(order, buffer)
        except Full:
            made = refused()
        return framed(made)

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (UNPACK % "run_packed", carried())


class Light(Packed):
    """The same by its name, in a twentieth of the bytes: for workers that have the package.

    Each task crosses four processes, so that the sources take a tenth of the rate of tasks
    that do nothing. Where the package is not installed it cannot be unpacked; where it is
    another version than the order's, the report says "unequipped". Either way nothing was
    run, and `run_packed` is to be sent instead.
    """

    def __call__(self, order: dict[str, Any], buffer: bytes) -> bytes | dict[str, Any]:
        if order.get("package") != package():
            return framed({"parsl_sizer": 1, "ending": "unequipped", "payload": None})
        return super().__call__(order, buffer)

    def __reduce__(self) -> str:  # type: ignore[override]
        return "run_packed_light"


class Wrapped:
    """Runs a user's function, in a fork of this process or in place, as its order says."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func
        self.__name__ = str(getattr(func, "__name__", type(func).__name__))
        self.__qualname__ = str(getattr(func, "__qualname__", self.__name__))
        self.__doc__ = func.__doc__

    def __call__(self, order: dict[str, Any], /, *args: Any, **kwargs: Any) -> dict[str, Any]:
        from . import outgoing
        from .claims import Full
        from .fork import run_forked
        from .inline import run_inline
        from .probe import age_s
        from .report import add_start

        start_s = age_s() if order.get("own_process") else 0.0
        outgoing.wait()
        run = run_inline if order.get("isolation") == "inline" else run_forked
        try:
            made = run(order, self.func, args, kwargs)
        except Full:
            return refused()
        if start_s:
            add_start(made, start_s)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (UNPACK % "Wrapped(func)", {**carried(), "func": self.func})


def refused() -> dict[str, Any]:
    """The report of a node that has no room: nothing was run, and another may have some."""
    from .report import blank

    return blank("inline", (), 0.0) | {"ending": "refused"}


@lru_cache(maxsize=1)
def carried() -> dict[str, Any]:
    """What unpacking needs: the stub's text, and the sources under a name with their hash."""
    sources = {name: lean(source_of(name)) for name in MODULES}
    packed = zlib.compress(json.dumps(sources).encode(), 9)
    return {"stub": sources["stub"], "package": package(), "packed": packed}


@lru_cache(maxsize=1)
def package() -> str:
    """The name under which the sources travel: it holds their hash."""
    here = str(__package__)
    if here.startswith(TRAVELLED):
        return here
    sources = "".join(source_of(name) for name in MODULES)
    return TRAVELLED + hashlib.sha256(sources.encode()).hexdigest()[:12]


def source_of(name: str) -> str:
    """The source of a module beside this one, wherever it was loaded from."""
    full = f"{__package__}.{name}"
    spec = importlib.util.find_spec(full)
    loader: Any = spec.loader if spec else None
    return str(loader.get_source(full))


def lean(source: str) -> str:
    """The same program without what is for readers only: it crosses the wire with every task.

    >>> print(lean('def f(x: int) -> int:\\n    "Says so."\\n    return x  # one'))
    def f(x):
     return x
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [child for child in body if not _is_text(child)]
            if not isinstance(node, ast.ClassDef):  # those of a NamedTuple are its fields
                kept = [_without_annotation(child) for child in kept]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    text = ast.unparse(ast.fix_missing_locations(tree))
    return re.sub("^ +", lambda found: " " * (len(found[0]) // 4), text, flags=re.MULTILINE)


def _without_annotation(node: ast.stmt) -> ast.stmt:
    if isinstance(node, ast.AnnAssign):
        return ast.Assign([node.target], node.value) if node.value else ast.Pass()
    return node


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


run_packed, run_packed_light = Packed(), Light()

_wrappers: OrderedDict[int, Wrapped] = OrderedDict()
_wrapping = threading.Lock()


def wrapped(func: Callable[..., Any]) -> Wrapped:
    """The one wrapper of a function, so that an engine that caches pickles finds it again."""
    with _wrapping:
        # By identity: what is equal need not do the same, and need not be hashable.
        found = _wrappers.pop(id(func), None) or Wrapped(func)
        _wrappers[id(func)] = found
        if len(_wrappers) > KEPT:
            _wrappers.popitem(last=False)
    return found
