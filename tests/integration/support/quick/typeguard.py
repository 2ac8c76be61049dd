"""Stands in for typeguard in the processes of engines: checking no types, they start sooner.

Parsl has typeguard rewrite its modules at each import, which is half of the 0.37 s that
`import parsl` takes; an engine starts five such processes. In the process of a test Parsl's
arguments are checked as always.
"""

from __future__ import annotations

from typing import Any


def typechecked(target: Any) -> Any:
    """Return a function or class as it is."""
    return target
