"""How the probes cross to workers that have not got the package: by value, as the monitor does."""

from __future__ import annotations

import hashlib
import importlib
import json
import zlib
from functools import lru_cache
from typing import Any

from parsl_sizer.monitor.travel import lean
from parsl_sizer.monitor.travel import source_of as source_of_monitor

MODULES = ("exclusive", "facts", "probes", "processor", "storage", "tools")
UNPACK = "(exec(stub, space := {}), space['load'](package, packed, 'exclusive').visit)[1]"
"""What a worker evaluates. An expression of builtins needs no support by any pickler."""
TRAVELLED = "_parsl_sizer_profiling_"


class Visit:
    """`exclusive.visit`, where it arrives."""

    __name__ = "profile_node"

    def __call__(self, token: str, seconds: float, **options: Any) -> dict[str, Any]:
        from .exclusive import visit

        return visit(token, seconds, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (UNPACK, carried())


@lru_cache(maxsize=1)
def carried() -> dict[str, Any]:
    """What unpacking needs: the stub's text, and the sources under a name with their hash."""
    sources = {name: lean(_source_of(name)) for name in MODULES}
    text = json.dumps(sources).encode()
    package = TRAVELLED + hashlib.sha256(text).hexdigest()[:12]
    stub = lean(source_of_monitor("stub"))
    return {"stub": stub, "package": package, "packed": zlib.compress(text, 9)}


def _source_of(name: str) -> str:
    module = importlib.import_module(f"{__package__}.{name}")
    loader: Any = module.__spec__.loader if module.__spec__ else None
    return str(loader.get_source(module.__name__))


visit_node = Visit()
