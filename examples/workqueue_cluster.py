"""A cluster of unequal nodes with Work Queue: each task goes to a node that has room for it.

    python examples/workqueue_cluster.py

Two workers on this machine stand for the nodes. On a cluster their commands go into batch
jobs, with the name of this host in place of localhost. Needs Work Queue, from conda-forge:
conda install ndcctools
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import parsl
from parsl import python_app
from parsl.config import Config
from parsl.executors import WorkQueueExecutor
from parsl.providers import LocalProvider

from parsl_sizer import SizedExecutor, sizing_of

NODES = ({"cores": 4, "memory": 1000}, {"cores": 2, "memory": 400})
"""Memory in MB: what a worker is told to promise, since both have all of this machine."""


@python_app
def align(megabytes: int) -> int:
    import time

    held = bytearray(b"x") * (megabytes * 1_000_000)
    time.sleep(1)
    return len(held)


@python_app
def assemble(megabytes: int) -> int:
    import time

    held = bytearray(b"x") * (megabytes * 1_000_000)
    time.sleep(1)
    return len(held)


@contextmanager
def workers(port: int, folder: Path) -> Iterator[None]:
    """The nodes; they leave when this ends, or a minute after there was anything to do."""
    # A worker starts tasks with the first python3 in its PATH.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    started = []
    for number, node in enumerate(NODES):
        command = ["work_queue_worker", "--timeout", "60", "--workdir", str(folder / str(number))]
        for name, amount in node.items():
            command += [f"--{name}", str(amount)]
        (folder / str(number)).mkdir()
        command += ["localhost", str(port)]
        started.append(subprocess.Popen(command, env={**os.environ, "PATH": path}))
    try:
        yield
    finally:
        for worker in started:
            worker.terminate()
        for worker in started:
            worker.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9123, help="for workers to connect to")
    port = parser.parse_args().port
    queue = WorkQueueExecutor(
        port=port,
        # Workers are started by us. With a provider of a batch system Parsl does it.
        provider=LocalProvider(init_blocks=0, min_blocks=0, max_blocks=0),
    )
    config = Config(executors=[SizedExecutor(queue)], strategy="none")
    with TemporaryDirectory() as folder, parsl.load(config), workers(port, Path(folder)):
        aligned = [align(60 + 5 * (number % 3)) for number in range(8)]
        assembled = [assemble(400 + 10 * (number % 3)) for number in range(2)]
        for future in (*aligned, *assembled):
            future.result()
        for future in (aligned[0], aligned[-1], *assembled):
            print(sizing_of(future))


if __name__ == "__main__":
    main()
