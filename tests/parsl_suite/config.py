"""The configuration that Parsl's tests are run with: an engine, plain or sized.

Parsl's conftest imports this file and calls `fresh_config`; the environment says what for.
"""

from __future__ import annotations

import os

from parsl.config import Config
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor, WorkQueueExecutor
from parsl.executors.base import ParslExecutor
from parsl.launchers import SimpleLauncher
from parsl.providers import LocalProvider

from parsl_sizer import SizedExecutor

ENGINE = "PARSL_SUITE_ENGINE"
SIZED = "PARSL_SUITE_SIZED"


def htex() -> ParslExecutor:
    """As in Parsl's own htex_local.py, on IPv4: not every machine has the other."""
    return HighThroughputExecutor(
        label="htex_local",
        loopback_address="127.0.0.1",
        address="127.0.0.1",
        worker_debug=True,
        cores_per_worker=1,
        encrypted=True,
        provider=LocalProvider(init_blocks=1, max_blocks=1, launcher=SimpleLauncher()),
    )


def threads() -> ParslExecutor:
    """As in Parsl's own local_threads.py."""
    return ThreadPoolExecutor()


def workqueue() -> ParslExecutor:
    """A worker on this machine that the executor starts itself."""
    return WorkQueueExecutor(
        port=0,
        worker_options="--timeout=60",
        provider=LocalProvider(init_blocks=1, max_blocks=1, launcher=SimpleLauncher()),
    )


ENGINES = {"htex": htex, "threads": threads, "workqueue": workqueue}


def fresh_config() -> Config:
    """What the environment asks for."""
    executor = ENGINES[os.environ[ENGINE]]()
    if os.environ[SIZED] == "1":
        executor = SizedExecutor(executor, report=False)
    return Config(executors=[executor], strategy="none")
