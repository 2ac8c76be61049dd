"""Running Parsl for a test, and seeing to it that nothing is left: no future, no process."""

from __future__ import annotations

import os
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import parsl
import psutil
import pytest
from parsl import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider

from parsl_sizer import Kind, Outcome, SizedExecutor

MARK = "PARSL_SIZER_TEST_RUN"
LIMIT_S = 100.0


def wait_until(condition: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> Any:
    """Wait for a condition; what it says, as soon as that is true."""
    until = time.monotonic() + limit_s
    while not (found := condition()):
        if time.monotonic() > until:
            raise AssertionError(f"in {limit_s:g} s it never came to this: {what}")
        time.sleep(0.02)
    return found


def alive(command: str) -> list[psutil.Process]:
    """The processes with this text in their command line, without the dead and without us."""
    found = []
    for process in psutil.process_iter():
        try:
            if (
                process.pid != os.getpid()
                and process.status() != psutil.STATUS_ZOMBIE
                and command in " ".join(process.cmdline())
            ):
                found.append(process)
        except psutil.Error:
            continue
    return found


def marked(mark: str) -> list[psutil.Process]:
    """The living processes that came out of a run, wherever they have gone since."""
    found = []
    for process in psutil.process_iter():
        try:
            if (
                process.pid != os.getpid()
                and process.status() != psutil.STATUS_ZOMBIE
                and process.environ().get(MARK, "").startswith(mark)
            ):
                found.append(process)
        except psutil.Error:
            continue
    return found


def _described(process: psutil.Process) -> str:
    try:
        return f"{process.pid} (parent {process.ppid()}): {' '.join(process.cmdline())[:200]}"
    except psutil.Error:
        return f"{process.pid}"


def left_by_manager(manager: int, worker: int) -> list[psutil.Process]:
    """The processes that HTEX itself leaves behind when a manager is killed."""
    return [child for child in psutil.Process(manager).children() if child.pid != worker]


@contextmanager
def nothing_left(spare: Sequence[psutil.Process] = ()) -> Iterator[str]:
    """All processes that come out of what is in here have ended soon after it.

    Those to `spare` (it is looked at in the end) are not ours to answer for.
    """
    before = os.environ.get(MARK)
    mark = os.environ[MARK] = f"{before or ''}/{uuid.uuid4().hex}"
    try:
        yield mark
    finally:
        if before is None:
            del os.environ[MARK]
        else:
            os.environ[MARK] = before
        for process in spare:
            process.kill()
        until = time.monotonic() + 20
        while (left := marked(mark)) and time.monotonic() < until:
            time.sleep(0.05)
        described = [_described(process) for process in left]
        for process in left:
            process.kill()
        assert not described, f"processes were left behind: {described}"


@contextmanager
def running(
    executors: Sequence[Any] | Any,
    folder: Path,
    *,
    strategy: str = "none",
    spare: Sequence[psutil.Process] = (),
    **config: Any,
) -> Iterator[parsl.DataFlowKernel]:
    """Parsl with these executors; at the end no future is pending and no process is left."""
    if not isinstance(executors, (list, tuple)):
        executors = [executors]
    threads_before = threading.enumerate()
    with nothing_left(spare):
        dfk = parsl.load(
            Config(
                executors=list(executors),
                run_dir=str(folder / "runinfo"),
                strategy=strategy,
                strategy_period=0.2,
                initialize_logging=False,  # Parsl never closes the file
                usage_tracking=0,
                **config,
            )
        )
        tasks: list[Any] = []
        try:
            yield dfk
        finally:
            tasks += [record["app_fu"] for record in dfk.tasks.values()]
            if not dfk.cleanup_called:
                dfk.cleanup()
            parsl.clear()
    pending = [future for future in tasks if not future.done()]
    assert not pending, f"futures were left pending: {pending}"
    ours = [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("parsl_sizer") and thread not in threads_before
    ]
    for thread in ours:
        wait_until(lambda thread=thread: not thread.is_alive(), f"an end of {thread.name}")


def own_address() -> str:
    """Return one of the 16 million addresses of this machine, for one engine alone.

    Engines pick their ports at random and are not encrypted in tests: processes of one that has
    ended would connect to another one that has got its port.
    """
    return "127." + ".".join(str(1 + secrets.randbelow(254)) for _ in range(3))


def htex(
    workers: int = 2,
    *,
    label: str = "htex",
    blocks: int = 1,
    launcher: Any = None,
    provider: Any = None,
    kind: type[HighThroughputExecutor] = HighThroughputExecutor,
    **options: Any,
) -> HighThroughputExecutor:
    """An executor on this machine that notices at once when a worker is lost."""
    if provider is None:
        provider = LocalProvider(
            init_blocks=blocks,
            min_blocks=0,
            max_blocks=blocks,
            **({} if launcher is None else {"launcher": launcher}),
        )
    address = own_address()
    settings = {
        "address": address,
        "loopback_address": address,
        "heartbeat_period": 1,
        "heartbeat_threshold": 60,
        "encrypted": False,
        "cores_per_worker": 0.1,  # as many workers as are wanted, on however few cores
    }
    return kind(
        label=label, max_workers_per_node=workers, provider=provider, **{**settings, **options}
    )


class SharedHtex(HighThroughputExecutor):
    """HTEX for one run of Parsl after the other: starting one takes 2 s of processor time."""

    home: Path
    """The TMPDIR of its workers, which outlives those of the tests."""

    output: Path
    """The folder of what its block prints."""

    def start(self) -> None:
        """Start it for the first run, with its one block."""
        if self.interchange_proc is None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("TMPDIR", str(self.home))
                patch.delenv(MARK, raising=False)  # it is not of this run alone
                super().start()
                super().scale_out_facade(1)
            self.output = Path(self.provider.script_dir)

    def scale_out_facade(self, n: int) -> list[str]:
        """Keep the block."""
        return []

    def scale_in_facade(self, n: int, max_idletime: float | None = None) -> list[str]:
        """Keep the block."""
        return []

    def shutdown(self, timeout: float = 10.0) -> None:
        """Stay for the next run."""

    def end(self) -> None:
        """End it after the last run."""
        if self.interchange_proc is not None:
            super().scale_in_facade(1)
            super().shutdown()


_shared: list[SharedHtex] = []


@contextmanager
def shared_engine(home: Path) -> Iterator[None]:
    """Have `sized()` use one engine for all runs in here."""
    made = htex(kind=SharedHtex)
    made.home = home
    _shared.append(made)
    try:
        yield
    finally:
        _shared.pop().end()


def sized(inner: Any = None, *, node: str = "cores=2,memory=2GB", **options: Any) -> SizedExecutor:
    """Return a quiet SizedExecutor on a small node, around the shared engine unless one is given.

    A test that kills parts of its engine, ends with tasks that still run, or looks into its
    engine's folder gives it one of its own: `sized(htex())`.
    """
    if inner is None:
        inner = _shared[-1] if _shared else htex()
    return SizedExecutor(
        inner,
        **{"node": node, "kinds": ["memory"], "report": False, **options},
    )


ON_THE_WAY_S = 0.05
"""So long a report may be on its way; tasks that are looked at run for longer."""


def most_given_out(outcomes: Sequence[Outcome]) -> float:
    """The most memory that was given to attempts which ran at one time.

    Those that are launched may wait in the engine for a worker: an attempt ran for as long as
    it says, until it was heard of.
    """
    changes = []
    for outcome in outcomes:
        amount = outcome.attempt.allocation.get(Kind.MEMORY, 0.0)
        began = max(outcome.attempt.launched_at, outcome.ended_at - outcome.usage.wall_s)
        changes += [(began, amount), (max(began, outcome.ended_at - ON_THE_WAY_S), -amount)]
    now = most = 0.0
    for _, change in sorted(changes):  # at one time, what ends comes first
        now += change
        most = max(most, now)
    return most
