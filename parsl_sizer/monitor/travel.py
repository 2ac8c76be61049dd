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
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

from .wire import Brief, brief

MODULES = (
    "account",
    "call",
    "cgroup",
    "charge",
    "course",
    "fork",
    "inline",
    "keeper",
    "limit",
    "node",
    "node_ledger",
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
SEEK = """
def seek(package, name, func=None):
    import importlib, sys
    def call(*args, **kwargs):
        module = sys.modules.get(package + ".travel")
        if module is None:
            try:
                module = importlib.import_module("parsl_sizer.monitor.travel")
            except ImportError:
                pass
            if module is None or module.carried()["package"] != package:
                return {"parsl_sizer": 1, "ending": "unequipped"}
            sys.modules[package + ".travel"] = module
        target = getattr(module, name)
        return (target if func is None else target(func))(*args, **kwargs)
    return call
"""
"""What a worker is sent of a callable that is `light`: the name of what it should have."""
FIND = "(exec(seek, space := {}), space['seek'](package, name, func))[1]"
UNPACK = "(exec(stub, space := {}), space['load'](package, packed, 'travel').%s)[1]"
"""What a worker evaluates. An expression of builtins needs no support by any pickler."""

KEPT = 256
"""Wrappers of this many functions are kept; the engine caches fewer pickles than that."""

Report = dict[str, Any] | Brief
"""For an order that asks to be `brief`, to be `opened` where it arrives."""


class Light:
    """The same callable without the sources, in a fiftieth of the bytes.

    Each task crosses four processes, so that the sources take a tenth of the rate of tasks
    that do nothing. Where neither this version of the package is installed nor the sources
    have come before, the report says "unequipped": nothing was run, and the whole callable
    is to be sent instead.
    """

    def __init__(self, whole: Packed | Wrapped) -> None:
        self.whole = whole
        self.__name__ = whole.__name__
        self.__doc__ = whole.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Report:
        return self.whole(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        name, func = self.whole.parts
        given = {"seek": SEEK, "package": carried()["package"], "name": name, "func": func}
        return eval, (FIND, given)


class Packed:
    """Runs what an engine's codec has packed, in the warm runner of this process."""

    __name__ = "run_packed"
    parts = ("run_packed", None)

    @cached_property
    def light(self) -> Light:
        """To be sent where this callable is known."""
        return Light(self)

    def __call__(self, order: dict[str, Any], buffer: bytes) -> Report:
        from .supervisor import run_packed

        return _sent(order, run_packed(order, buffer))

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (UNPACK % "run_packed", carried())


class Wrapped:
    """Runs a user's function, in a fork of this process or in place, as its order says."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func
        self.__name__ = str(getattr(func, "__name__", type(func).__name__))
        self.__qualname__ = str(getattr(func, "__qualname__", self.__name__))
        self.__doc__ = func.__doc__
        self.parts = ("wrapped", func)

    @cached_property
    def light(self) -> Light:
        """To be sent where all but the function is known."""
        return Light(self)

    def __call__(self, order: dict[str, Any], /, *args: Any, **kwargs: Any) -> Report:
        if order.get("isolation") == "inline":
            from .inline import run_inline

            return _sent(order, run_inline(order, self.func, args, kwargs))
        from .fork import run_forked

        return _sent(order, run_forked(order, self.func, args, kwargs))

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (UNPACK % "Wrapped(func)", {**carried(), "func": self.func})


def _sent(order: dict[str, Any], report: dict[str, Any]) -> Report:
    return brief(report) if order.get("brief") else report


@lru_cache(maxsize=1)
def carried() -> dict[str, Any]:
    """What unpacking needs: the stub's text, and the sources under a name with their hash."""
    sources = {name: lean(source_of(name)) for name in MODULES}
    text = json.dumps(sources, sort_keys=True).encode()
    digest = hashlib.sha256(text).hexdigest()[:12]
    return {
        "stub": sources["stub"],
        "package": f"_parsl_sizer_monitor_{digest}",
        "packed": zlib.compress(text, 9),
    }


def source_of(name: str) -> str:
    """The source of a module beside this one, wherever it was loaded from."""
    full = f"{__package__}.{name}"
    spec = importlib.util.find_spec(full)
    loader: Any = spec.loader if spec else None
    return str(loader.get_source(full))


def lean(source: str) -> str:
    """The same program without comments and docstrings: it crosses the wire with every task.

    >>> print(lean('def f():\\n    "Says so."\\n    return 1  # one'))
    def f():
        return 1
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [child for child in body if not _is_text(child)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(ast.fix_missing_locations(tree))


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


run_packed = Packed()

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
