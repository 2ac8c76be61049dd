"""Two groups of unequal nodes behind one executor; light and heavy tasks, each where it belongs.

Both groups are on this machine, each with a part of it. On a cluster they would be two
partitions, with a provider each.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import parsl
from parsl import Config, python_app
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider

from parsl_sizer import SizedExecutor


@python_app
def light(number: int) -> int:
    import time

    time.sleep(0.2)
    return number


@python_app
def heavy(number: int) -> int:
    import time

    data = bytearray(b"x") * 200_000_000
    time.sleep(0.2)
    return number if data else 0


def group(label: str) -> HighThroughputExecutor:
    """Two workers on this machine."""
    return HighThroughputExecutor(
        label=label,
        address="127.0.0.1",
        max_workers_per_node=2,
        cores_per_worker=0.1,  # as many as are wanted, on however few cores
        provider=LocalProvider(init_blocks=1, max_blocks=1),
    )


def main() -> None:
    # Parsl looks for its own programs there; who has activated the environment need not.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    sized = SizedExecutor(
        inner=[group("big"), group("standard")],
        node={"big": "cores=2,memory=2GB", "standard": "cores=2,memory=1GB"},
        placement="tarema",
        archive=False,
    )
    with parsl.load(Config(executors=[sized])):
        futures = [app(number) for number in range(30) for app in (light, heavy)]
        print(f"{len([future.result() for future in futures])} tasks are done.")


if __name__ == "__main__":
    main()
