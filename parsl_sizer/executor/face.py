"""What Parsl sees of the inner executor through ours.

Parsl decides by `isinstance` whether an executor has blocks, and sets attributes before
it starts one. So for every class of inner executor there is a subclass of ours that is
registered as its virtual subclass; whatever ours does not have is asked of the inner one,
and what Parsl sets is set there.
"""

from __future__ import annotations

from typing import Any

from parsl.executors.base import ParslExecutor

FORWARDED = (
    "label",
    "run_id",
    "run_dir",
    "log_config",
    "remote_monitoring_radio",
    "monitoring_messages",
    "monitoring_receiver",
    "storage_access",
    "working_dir",
    "launch_cmd",
    "interchange_launch_cmd",
    "_check_python_mismatch",
)
"""Attributes that are the inner executor's, to get and to set.

The last three are HTEX's. Globus Compute sets them before it starts the executor.
"""

_faces: dict[tuple[type, type], type] = {}


def face(executor: type, inner: type) -> type:
    """The subclass of our executor that Parsl takes for one of the inner class."""
    if not issubclass(inner, ParslExecutor):
        return executor  # it is going to be refused, with a sentence
    key = (executor, inner)
    if key not in _faces:
        name = f"{executor.__name__}[{inner.__name__}]"
        made = type(name, (executor,), {"__module__": executor.__module__})
        made.__qualname__ = name
        inner.register(made)
        _faces[key] = made
    return _faces[key]


def forwarded(name: str) -> property:
    """A property that is the inner executor's attribute of this name."""

    def get(self: Any) -> Any:
        return getattr(self.inner, name)

    def put(self: Any, value: Any) -> None:
        setattr(self.inner, name, value)

    return property(get, put, doc=f"The inner executor's `{name}`.")
