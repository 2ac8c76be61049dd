"""Cancels the jobs of a workflow whose process has died before it could.

A process of its own, which is started as this one file and imports nothing that is not in the
standard library. It is told on its standard input that all is well; if its parent is gone, or
has closed that without a word, it cancels every job that carries the workflow's mark, those too
that still wait, until there is none left.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

BYE = b"bye\n"
LOOK_S = 0.5
"""So often it looks whether its parent lives: a child of that may hold its input open."""
AGAIN_S, LONGEST_S = 2.0, 60.0
"""Between two attempts to cancel, first and at most: the batch system may be away."""
GIVE_UP_S = 24 * 3600.0
QUIET = 3
"""So many times in a row there has to be no job: one may have been on its way when we looked."""


class Watchdog:
    """The parent's end of it."""

    def __init__(self, listing: Sequence[str], cancelling: Sequence[str], mark: str) -> None:
        self._said = {"list": list(listing), "cancel": list(cancelling), "mark": mark}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, orphans: Sequence[int] = ()) -> None:
        """Begin to watch this process; `orphans` are processes to end with it."""
        born = {str(pid): _born(pid) for pid in orphans}
        told = json.dumps({**self._said, "parent": os.getpid(), "orphans": born})
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", __file__, told],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C is not for it
        )

    def stop(self, *, is_clean: bool) -> None:
        """End it; if something is left of us, it ends only when nothing is."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        with contextlib.suppress(OSError):
            if is_clean:
                process.stdin.write(BYE)
            process.stdin.close()
        if is_clean:
            process.wait(30)
        else:  # nobody waits for it, and nobody is to be told so
            process.returncode = 0


def main(told: str) -> None:
    """Watch, and act if need be."""
    said = json.loads(told)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not _is_well(int(said["parent"])):
        for pid, born in said["orphans"].items():
            if born is not None and _born(int(pid)) == born:
                with contextlib.suppress(OSError):
                    os.kill(int(pid), signal.SIGTERM)
        _cancel_all(said["list"], said["cancel"], said["mark"])


def _is_well(parent: int) -> bool:
    """Whether the parent says, sooner or later, that it ends in order."""
    while os.getppid() == parent:
        ready, _, _ = select.select([0], [], [], LOOK_S)
        if ready:
            return os.read(0, len(BYE)) == BYE
    ready, _, _ = select.select([0], [], [], 0)
    return bool(ready) and os.read(0, len(BYE)) == BYE


def _cancel_all(listing: Sequence[str], cancelling: Sequence[str], mark: str) -> None:
    pause, until, quiet = AGAIN_S, time.monotonic() + GIVE_UP_S, 0
    while quiet < QUIET and time.monotonic() < until:
        jobs = _marked(listing, mark)
        if jobs:
            _run([*cancelling, *jobs])
        if jobs is None:
            pause = min(pause * 2, LONGEST_S)
        else:
            pause, quiet = AGAIN_S, 0 if jobs else quiet + 1
        time.sleep(pause if quiet < QUIET else 0)


def _marked(listing: Sequence[str], mark: str) -> list[str] | None:
    """The jobs with the mark; None if the batch system does not answer."""
    said = _run(listing)
    if said is None:
        return None
    lines = [line.split() for line in said.splitlines()]
    return [line[0] for line in lines if len(line) > 1 and line[1] == mark]


def _run(command: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout


def _born(pid: int) -> str | None:
    """When a process was started, so that its number is not taken for another's."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


if __name__ == "__main__":
    main(sys.argv[1])
