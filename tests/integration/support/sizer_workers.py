"""Work Queue and TaskVine on this machine, with workers that promise whatever is wanted."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import psutil
from parsl.executors import WorkQueueExecutor
from parsl.providers import LocalProvider
from sizer_runs import running, wait_until

from parsl_sizer.engines import Engine
from parsl_sizer.model import Node

TIMEOUT_S = 300
"""A worker that nobody ends ends itself after so long without work."""


class Size(NamedTuple):
    """What a worker promises; memory and disk in MB."""

    cores: int
    memory: int
    disk: int


LARGE = Size(4, 4000, 6000)
SMALL = Size(2, 1500, 2000)


class Worker:
    """One worker, in a process group and a folder of its own."""

    def __init__(self, program: str, port: int, size: Size, folder: Path, *options: str) -> None:
        self.size = size
        self.folder = folder
        folder.mkdir(parents=True)
        promise = [f"--{kind}={amount}" for kind, amount in size._asdict().items()]
        with (folder / "log.txt").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    program,
                    *promise,
                    f"--workdir={folder}",
                    f"--timeout={TIMEOUT_S}",
                    *options,
                    "127.0.0.1",
                    str(port),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """As if its machine lost power: all at once, and nothing is reported."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)
        self._kill_tasks()  # they hold its connection, by which its manager takes it for alive

    def end(self) -> None:
        """End it, and whatever still runs in its folder."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
        self._kill_tasks()

    def _kill_tasks(self) -> None:
        for process in self.tasks():
            with contextlib.suppress(psutil.Error):
                process.kill()

    def tasks(self) -> list[psutil.Process]:
        """The processes that run in its folder, but for itself."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                inside = Path(process.cwd()).is_relative_to(self.folder)
                if inside and process.pid not in (os.getpid(), self.process.pid):
                    found.append(process)
        return found


class Crew:
    """All workers of one manager; they end with the `with`."""

    def __init__(self, program: str, port: int, folder: Path, *options: str) -> None:
        self._program = program
        self._port = port
        self._folder = folder
        self._options = options
        self.workers: list[Worker] = []

    def add(self, size: Size) -> Worker:
        """One more worker."""
        folder = self._folder / f"worker{len(self.workers) + 1}"
        worker = Worker(self._program, self._port, size, folder, *self._options)
        self.workers.append(worker)
        return worker

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self.workers:
            worker.end()


class Cluster(NamedTuple):
    """An executor that runs, the one that Parsl has (that, or what is around it), and workers."""

    inner: Any
    executor: Any
    crew: Crew


def seen(engine: Engine, count: int) -> list[Node]:
    """The nodes, as soon as there are so many."""
    latest: list[Node] = []

    def are_here() -> bool:
        engine.probe()
        nodes = engine.nodes()
        latest[:] = nodes or ()
        return nodes is not None and len(nodes) == count

    wait_until(are_here, f"{count} nodes")
    return latest


@contextmanager
def workqueue(
    folder: Path,
    *sizes: Size,
    wrap: Callable[[Any], Any] = lambda inner: inner,
    strategy: str = "none",
    blocks: int = 0,
    **options: Any,
) -> Iterator[Cluster]:
    """Parsl with Work Queue and workers of these sizes; `wrap` puts an executor around it.

    With a `strategy` Parsl itself may start up to so many blocks of a worker each.
    """
    inner = WorkQueueExecutor(
        label="workqueue",
        address="127.0.0.1",
        port=0,
        provider=LocalProvider(init_blocks=0, min_blocks=0, max_blocks=blocks),
        **options,
    )
    executor = wrap(inner)
    password = inner.project_password_file
    more = [f"--password={password}"] if password else []
    with (
        running(executor, folder, strategy=strategy, max_idletime=1),
        Crew("work_queue_worker", inner._chosen_port, folder / "workers", *more) as crew,
    ):
        for size in sizes:
            crew.add(size)
        yield Cluster(inner, executor, crew)


@contextmanager
def taskvine(
    folder: Path, *sizes: Size, wrap: Callable[[Any], Any] = lambda inner: inner, **options: Any
) -> Iterator[Cluster]:
    """Parsl with TaskVine and workers of these sizes; `wrap` puts an executor around it."""
    from parsl.executors.taskvine import TaskVineExecutor, TaskVineManagerConfig

    settings = {"port": free_port(), "address": "127.0.0.1", **options}
    inner = TaskVineExecutor(
        label="taskvine",
        worker_launch_method="manual",
        manager_config=TaskVineManagerConfig(**settings),
    )
    executor = wrap(inner)
    port, password = settings["port"], settings.get("project_password_file")
    more = [f"--password={password}"] if password else []
    with (
        running(executor, folder),
        Crew("vine_worker", port, folder / "workers", *more) as crew,
    ):
        for size in sizes:
            crew.add(size)
        yield Cluster(inner, executor, crew)
    inner._function_data_dir.cleanup()  # Parsl leaves it to the garbage collector


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port
