"""The folder that is a task's own: what its files take, and whether they stay.

On engines that give each task a working folder it is that one. Elsewhere it is a TMPDIR of its
own below that of its worker. What a task leaves there stays, as where all tasks of a worker share
a TMPDIR, and the next task has another folder. What was written by a task that was stopped or
lost goes.

The folders of one worker are in one folder, which its process keeps locked: an unlocked one was
left by the dead, and is tidied up by the next worker that starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

PREFIX = "psz"
"""Short, because of `ROOM`: psz1000-a1b2c3d4/0 is a task's folder."""
ROOM = 107 - len("/pymp-12345678/listener-12345678")
"""So long a path of a folder may be in which multiprocessing makes a socket."""
IN_USE = stat.S_ISVTX
"""The bit of a folder's mode that says that its task has not ended yet. It needs no space on a
disk that is full, and whoever comes after the worker finds it there."""
GRAIN_NS = 100_000_000
"""File systems note times to some ms; nothing is concluded from one younger than this."""


class Sandbox:
    """A private folder, empty at the beginning of each call."""

    def __init__(self) -> None:
        self._home, self._lock = _locked_home()
        self._made = 0
        self._empty_since = 0
        self.path = self._new()

    def unlock(self) -> None:
        """In a fork: whether the folders are still wanted is for its parent to say."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def settle(self, *, stays: bool) -> int | None:
        """After a call: the bytes that its files take, if that is known.

        Files that stay do so where they are, and the next call has another folder. A folder in
        which nothing was left is used again: most calls write no file.
        """
        if self.path is None:
            self.path = self._new()
            return None
        try:
            changed = os.stat(self.path).st_mtime_ns  # noqa: PTH116 - after every call
            if changed == self._empty_since:
                return 0
            if not os.listdir(self.path):  # noqa: PTH208
                # Whoever writes later leaves another time, once this one is past.
                if time.time_ns() - changed > GRAIN_NS:
                    self._empty_since = changed
                return 0
            taken = used(self.path)
            if stays:
                Path(self.path).chmod(0o700)
                self._made += 1
            else:
                shutil.rmtree(self.path, ignore_errors=True)
        except OSError:  # the call has removed it
            taken = None
        self.path = self._new()
        return taken

    def remove(self) -> None:
        """Remove the folders, but not what calls that ended have left in them."""
        if self._home is not None:
            _tidy_up(self._home)

    def _new(self) -> str | None:
        """A new folder, or None: the disk is full."""
        if self._home is None:
            return None
        self._empty_since = 0
        path = f"{self._home}/{self._made}"
        try:
            os.makedirs(path, 0o700, exist_ok=True)  # noqa: PTH103
            os.chmod(path, 0o700 | IN_USE)  # noqa: PTH101
        except OSError:
            return None
        return path


def _tidy_up(home: str | Path) -> None:
    """Remove what no call has left here for others: folders in use, and those that are empty."""
    with contextlib.suppress(OSError), os.scandir(home) as folders:
        for folder in folders:
            with contextlib.suppress(OSError):
                if folder.stat(follow_symlinks=False).st_mode & IN_USE:
                    shutil.rmtree(folder.path, ignore_errors=True)
                else:
                    Path(folder.path).rmdir()
    with contextlib.suppress(OSError):
        Path(home).rmdir()


def _locked_home() -> tuple[str | None, int | None]:
    """A new folder and the descriptor that locks it while it is open.

    Nothing on a full disk, or where tasks would lose the sockets that they can have without us.
    """
    _sweep()
    folder, own = tempfile.gettempdir(), f"/{PREFIX}{os.getuid()}-12345678/1234"
    if len(folder) <= ROOM < len(folder + own):
        return None, None
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


def outside(path: str) -> str:
    """Return the folder that has the folders of tasks, for a path in one of these.

    >>> outside(f"/scratch/{PREFIX}{os.getuid()}-a1b2c3d4/0/inner"), outside("/scratch")
    ('/scratch', '/scratch')
    """
    folder = Path(path)
    for part in (folder, *folder.parents):
        if part.name.startswith(f"{PREFIX}{os.getuid()}-"):
            return str(part.parent)
    return path


def working_folder() -> str | None:
    """Where this process is, if that still exists."""
    try:
        return os.getcwd()  # noqa: PTH109 - after every call, and a Path takes longer
    except OSError:  # it has been removed
        return None


def _sweep() -> None:
    """Tidy up after the processes that are dead."""
    with contextlib.suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}{os.getuid()}-*"):
            with contextlib.suppress(OSError):
                _tidy_up_if_unlocked(path)


def _tidy_up_if_unlocked(path: Path) -> None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _tidy_up(path)
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
