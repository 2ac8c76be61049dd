"""Which engine speaks to which inner executor."""

from __future__ import annotations

import importlib
from typing import Any

from parsl_sizer.model import Amounts

from .base import CannotWrap, Engine

HERE = "parsl_sizer.engines."

ENGINES = {
    "parsl.executors.high_throughput.executor:HighThroughputExecutor": HERE + "htex:HighThroughput",
    "parsl.executors.workqueue.executor:WorkQueueExecutor": HERE + "workqueue:WorkQueue",
    "parsl.executors.taskvine.executor:TaskVineExecutor": HERE + "taskvine:TaskVine",
    "parsl.executors.threads:ThreadPoolExecutor": HERE + "threads:Threads",
}

REFUSED = {
    "MPIExecutor": "an MPI task spans nodes, and is sized by its ranks",
    "FluxExecutor": "Flux schedules and limits tasks itself",
    "RadicalPilotExecutor": "RADICAL-Pilot schedules and limits tasks itself",
    "GlobusComputeExecutor": "tasks run behind an endpoint whose nodes cannot be seen from here; "
    "put SizedExecutor into the endpoint's configuration instead",
}


def engine_for(inner: Any, node: Amounts | None = None) -> Engine:
    """The engine for this inner executor; CannotWrap where tasks cannot be sized."""
    for base in type(inner).__mro__:
        if base.__name__ in REFUSED:
            raise _refusal(f"a {base.__name__}", base.__name__)
        home = ENGINES.get(f"{base.__module__}:{base.__name__}")
        if home is not None:
            if getattr(inner, "enable_mpi_mode", False) is True:  # a program may set it
                raise _refusal(f"a {base.__name__} in MPI mode", "MPIExecutor")
            module, _, name = home.partition(":")
            engine: Engine = getattr(importlib.import_module(module), name)(inner, node)
            return engine
    wrapped = ", ".join(name.partition(":")[2] for name in ENGINES)
    raise CannotWrap(f"SizedExecutor cannot wrap {inner!r:.200}: give it one of {wrapped}.")


def _refusal(what: str, name: str) -> CannotWrap:
    return CannotWrap(
        f"SizedExecutor cannot wrap {what}: {REFUSED[name]}. Give this executor to Config as it is."
    )
