"""Running Colmena for a test: a real task server, real queues, and nothing left of them."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colmena.exceptions import TimeoutException
from colmena.models import Result
from colmena.queue import PipeQueues
from colmena.task_server import ParslTaskServer
from parsl import Config
from sizer_runs import LIMIT_S, nothing_left, wait_until

from parsl_sizer.archive.open import location, open_archive
from parsl_sizer.model import Outcome


@dataclass
class Campaign:
    """A task server, as a thinker sees it."""

    queues: PipeQueues
    log: Path
    server: int
    stacks: Path

    def ask(self, method: str, *args: Any, **options: Any) -> str:
        """Send a request; its id."""
        return str(self.queues.send_inputs(*args, method=method, **options))

    def answer(self) -> Result:
        """What comes back next; a server that sends nothing is an error, and says what it does."""
        try:
            result = self.queues.get_result(timeout=LIMIT_S)
        except TimeoutException:
            os.kill(self.server, signal.SIGUSR1)
            stacks = wait_until(self.stacks.read_text, "the stacks of the task server")
            raise AssertionError(f"no answer; the task server is here:\n{stacks}") from None
        assert result is not None
        return result

    def asked(self, method: str, *args: Any, **options: Any) -> Result:
        """What comes back of one request; what a test before did not wait for is passed over."""
        task = self.ask(method, *args, **options)
        while (result := self.answer()).task_id != task:
            continue
        return result

    def said(self) -> str:
        """What the sizer has warned of."""
        return self.log.read_text()


@contextmanager
def campaign(
    executors: Sequence[Any] | Any,
    methods: Sequence[Any],
    folder: Path,
    *,
    config: dict[str, Any] | None = None,
    **queues: Any,
) -> Iterator[Campaign]:
    """A task server for these methods; at its end it has ended by itself, and all it started."""
    if not isinstance(executors, (list, tuple)):
        executors = [executors]
    settings = {"strategy": "none", "initialize_logging": False, "usage_tracking": 0}
    made = Config(
        executors=list(executors), run_dir=str(folder / "runinfo"), **settings, **(config or {})
    )
    log = folder / "warnings.txt"
    with nothing_left(), logged(log), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Colmena's own, which the server inherits
        there = PipeQueues(**queues)
        server = ParslTaskServer(list(methods), there, made)
        stacks = folder / "stacks.txt"
        with stacks.open("w") as file:
            faulthandler.register(signal.SIGUSR1, file)
            server.start()
            faulthandler.unregister(signal.SIGUSR1)
        try:
            assert server.pid is not None
            yield Campaign(there, log, server.pid, stacks)
        finally:
            there.set_role("client")
            there.send_kill_signal()
            server.join(LIMIT_S)
            has_ended = server.exitcode is not None
            if not has_ended:
                server.kill()
                server.join()
    assert has_ended, "the task server did not end"
    assert server.exitcode == 0


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """What we warn of goes to a file, from processes forked in here too."""
    ours = logging.getLogger("parsl_sizer")
    handler = logging.FileHandler(path)
    ours.addHandler(handler)
    try:
        yield
    finally:
        ours.removeHandler(handler)
        handler.close()


def recorded(archive: Path) -> list[Outcome]:
    """All attempts of a run, the first to end first."""
    where = location(archive)
    assert where is not None
    found = open_archive(where, read_only=True)
    try:
        return sorted(
            (entry.outcome for entry in found.entries()), key=lambda outcome: outcome.ended_at
        )
    finally:
        found.close()
