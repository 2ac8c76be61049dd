"""The folder that is a task's own: what its files take, and its removal.

On engines that give each task a working folder it is that one. Elsewhere it is a private
TMPDIR, which the process that answers for it keeps locked: what nobody has locked was left
by the dead, and is swept up by whoever comes next.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

PREFIX = "parsl_sizer-task-"
GRAIN_NS = 100_000_000
"""File systems note times to some ms; nothing is concluded from one younger than this."""


class Sandbox:
    """A private folder, empty at the beginning of each call and removed at the end."""

    def __init__(self) -> None:
        self.path, self._lock = _locked_folder()
        self._empty_since = 0

    def unlock(self) -> None:
        """In a fork: whether the folder is still wanted is for its parent to say."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def clear(self) -> int | None:
        """Remove all that a call has left; gives the bytes that it took, if that is known."""
        if self.path is None:
            return None
        try:
            changed = os.stat(self.path).st_mtime_ns  # noqa: PTH116 - after every call
            if changed == self._empty_since:
                return 0
            left = os.listdir(self.path)  # noqa: PTH208
        except OSError:
            return None
        if not left:
            # Whoever writes later leaves another time, once this one is past.
            if time.time_ns() - changed > GRAIN_NS:
                self._empty_since = changed
            return 0
        taken = used(self.path)
        for name in left:
            path = Path(self.path, name)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()
        return taken

    def remove(self) -> None:
        """Remove the folder."""
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)


def _locked_folder() -> tuple[str | None, int | None]:
    """A new folder and the descriptor that locks it while it is open, or nothing: a full disk."""
    _sweep()
    try:
        while True:
            path = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getuid()}-")
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            with contextlib.suppress(OSError):  # a file system without locks: then nobody sweeps
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if Path(path).is_dir():  # and was not swept before it was locked
                return path, descriptor
            os.close(descriptor)
    except OSError:
        return None, None


def working_folder() -> str | None:
    """Where this process is, if that still exists."""
    try:
        return os.getcwd()  # noqa: PTH109 - after every call, and a Path takes longer
    except OSError:  # it has been removed
        return None


def _sweep() -> None:
    """Remove the folders that processes which are dead have left."""
    with contextlib.suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}{os.getuid()}-*"):
            with contextlib.suppress(OSError):
                _remove_if_unlocked(path)


def _remove_if_unlocked(path: Path) -> None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def used(path: str | None) -> int | None:
    """The bytes that all files below a folder take on the disk, without following links."""
    if path is None:
        return None
    total = 0
    folders = [path]
    try:
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):  # it went while we looked
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
    except FileNotFoundError:
        return total
    except OSError:
        return None
    return total
