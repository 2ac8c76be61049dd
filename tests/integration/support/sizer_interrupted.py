"""A program that waits for tasks until somebody presses Control-C, and what is to come of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import sizer_tasks as tasks
from sizer_groups import two_groups
from sizer_runs import htex, nothing_left, running, sized

from parsl_sizer import SizedExecutor

LIMIT_S = 100


def one_group() -> SizedExecutor:
    return sized(htex(2), node="cores=2,memory=1GB", report=True)


def several_groups() -> SizedExecutor:
    return two_groups(report=True)


MADE = {made.__name__: made for made in (one_group, several_groups)}


def ends_all(name: str, folder: Path, interrupt: Callable[[int, int], None]) -> None:
    """See that an interrupt, sent so, ends the program and leaves nothing."""
    with nothing_left():
        process = subprocess.Popen(
            [sys.executable, __file__, name, str(folder)],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        tasks.wait_for(folder / "waiting")
        interrupt(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT_S)
    assert (folder / "interrupted").exists(), errors
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0


def main(name: str, folder: Path) -> None:
    # Whoever starts tests in the background lets them ignore it, and that is inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with running(MADE[name](), folder):
        tasks.add(1, 2).result()
        spec = {"memory": 600, "fixed": True}
        never, begun = str(folder / "never"), folder / "begun"
        futures = [
            tasks.hold_until(never, 10, f"{begun}{number}", parsl_resource_specification=spec)
            for number in range(10)
        ]
        tasks.wait_for(folder / "begun0")
        (folder / "waiting").touch()
        try:
            futures[-1].result()
        except KeyboardInterrupt:
            (folder / "interrupted").touch()
            raise


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
