"""One call measures a node, and the others that come to it wait until it has.

As many calls as a node has workers keep it to themselves: one measures and the others do
nothing. Who measures holds a lock, which ends with its process, and leaves a token when it
is done, so that who comes later need not measure again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .probes import measure

EVERY_S = 0.05
COMMON = Path("/tmp")
"""Where a host's temporary files go: Work Queue gives each task a folder of its own for them."""
PATIENCE_S = 60.0
"""So much longer than measuring takes it is waited for."""


def visit(token: str, seconds: float, **options: Any) -> dict[str, Any]:
    """The profile of this node, or none if another call with this token makes it; and where."""
    told: dict[str, Any] = {"place": place()}
    with _alone(token, seconds + PATIENCE_S) as is_first:
        if is_first:
            told |= measure(seconds, **options)
    return told


def place() -> str:
    """Something that is not the same for two workers, or two managers of HTEX."""
    pool = os.environ.get("PARSL_WORKER_POOL_ID")
    return pool or f"{socket.gethostname()}:{Path.cwd().parent}"  # Work Queue: the worker's folder


@contextlib.contextmanager
def _alone(token: str, patience_s: float) -> Iterator[bool]:
    """Whether nobody was here with this token before; then, until the end, nobody else is."""
    with contextlib.ExitStack() as stack:
        try:
            file = _opened()
        except OSError:  # where no file can be kept, several may measure
            yield True
            return
        stack.callback(os.close, file)
        until = time.monotonic() + patience_s
        while not _is_locked(file):
            if _read(file) == token or time.monotonic() > until:
                yield False
                return
            time.sleep(EVERY_S)
        if _read(file) == token:
            yield False
            return
        yield True
        os.ftruncate(file, 0)
        os.pwrite(file, token.encode(), 0)


def _opened() -> int:
    """A file of ours alone; it stays, empty but for a token."""
    name = f"parsl_sizer-profile-{os.getuid()}-{socket.gethostname()}"
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = COMMON if COMMON.is_dir() else Path(tempfile.gettempdir())
    file = os.open(folder / name, flags, 0o600)
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        os.close(file)
        raise PermissionError(f"{name} is not a file of ours alone")
    return file


def _is_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(file: int) -> str:
    return os.pread(file, 100, 0).decode(errors="replace")
