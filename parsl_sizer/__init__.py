"""The right cores, memory and disk for every Parsl task, without anyone guessing.

Public names are resolved when first used: importing this package loads neither
parsl nor numpy.
"""

from __future__ import annotations

import importlib

from .version import __version__

TYPE_CHECKING = False  # typing itself takes longer to import than all of this
if TYPE_CHECKING:
    from .executor import (
        Exhaustion,
        Part,
        Scaling,
        SizedExecutor,
        SizedPoolExecutor,
        Sizing,
        Split,
        profile_nodes,
        register_joblib,
        retry_handler,
        sized,
        sizing_of,
        stage,
        with_hints,
    )
    from .model import Kind, Outcome, Resources, ResourcesExhausted, TaskInfo
    from .strategies import PerKind, Predictor, Proposal, Setting, Strategy

_HOMES = {
    "Exhaustion": ".executor",
    "Part": ".executor",
    "Split": ".executor",
    "Scaling": ".executor",
    "SizedExecutor": ".executor",
    "SizedPoolExecutor": ".executor",
    "Sizing": ".executor",
    "profile_nodes": ".executor",
    "register_joblib": ".executor",
    "retry_handler": ".executor",
    "sized": ".executor",
    "sizing_of": ".executor",
    "stage": ".executor",
    "with_hints": ".executor",
    "Kind": ".model",
    "Outcome": ".model",
    "Resources": ".model",
    "ResourcesExhausted": ".model",
    "TaskInfo": ".model",
    "PerKind": ".strategies",
    "Predictor": ".strategies",
    "Proposal": ".strategies",
    "Setting": ".strategies",
    "Strategy": ".strategies",
}

__all__ = [
    "Exhaustion",
    "Kind",
    "Outcome",
    "Part",
    "PerKind",
    "Predictor",
    "Proposal",
    "Resources",
    "ResourcesExhausted",
    "Scaling",
    "Setting",
    "SizedExecutor",
    "SizedPoolExecutor",
    "Sizing",
    "Split",
    "Strategy",
    "TaskInfo",
    "__version__",
    "profile_nodes",
    "register_joblib",
    "retry_handler",
    "sized",
    "sizing_of",
    "stage",
    "with_hints",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
