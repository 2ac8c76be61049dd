"""Which archive, and how to open it.

``True`` is the user's own: the file or the address in ``$PARSL_SIZER_ARCHIVE`` (``off`` for
none), else a file in the platform's folder for data. A text that begins with ``postgresql:``
is the address of a server, any other the name of a file.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from .base import Archive, ArchiveError
from .postgres import PostgresArchive, without_password
from .sqlite import Damaged, Empty, File, SqliteArchive, file_at

VARIABLE, OFF = "PARSL_SIZER_ARCHIVE", "off"
ADDRESSES = ("postgresql:", "postgres:")
ON_NETWORKS = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "lustre", "gpfs", "beegfs", "ceph"),
        *("panfs", "pvfs2", "glusterfs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph"),
    }
)
"""File systems on which several hosts can write, and which cannot share memory."""

Where = Path | str
"""A file, or the address of a server."""


def location(archive: bool | str | os.PathLike[str] | None = None) -> Where | None:
    """Where an archive is; None if there is to be none."""
    if archive is False:
        return None
    if archive is True or archive is None:
        said = os.environ.get(VARIABLE, "").strip()
        if said.lower() == OFF:
            return None
        return location(said) if said else data_folder() / "archive.sqlite3"
    text = os.fspath(archive)
    return text if text.startswith(ADDRESSES) else Path(text).expanduser()


def data_folder() -> Path:
    """Where programs keep a user's data on this platform."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "parsl_sizer"
    base = os.environ.get("XDG_DATA_HOME", "")
    folder = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "share"
    return folder / "parsl_sizer"


def shown(where: Where) -> str:
    """A place, fit to be printed."""
    return str(where) if isinstance(where, Path) else without_password(where)


def open_archive(
    where: Path | str, *, read_only: bool = False, warn: Callable[[str], None] | None = None
) -> Archive:
    """The archive at a place. One that is damaged is set aside, and a new one begun."""
    if isinstance(where, str) and where.startswith(ADDRESSES):
        return PostgresArchive(where)
    where = Path(where)
    if read_only and not where.exists():
        raise Empty(f"There is no archive at {where}: no run has been recorded there yet.")
    shares_log = not is_on_network(where)
    if read_only:
        return SqliteArchive(where, shares_log=shares_log, read_only=True)
    with _held(where.parent, fcntl.LOCK_SH):
        file = file_at(where)
        try:
            return SqliteArchive(where, shares_log=shares_log)
        except Damaged as error:
            fault = error
    aside = set_aside(where, file)
    if warn is not None and aside is not None:
        warn(f"{fault} It is kept as {aside}, and a new one is begun.")
    with _held(where.parent, fcntl.LOCK_SH):
        return SqliteArchive(where, shares_log=shares_log)


def set_aside(path: Path, file: File | None) -> Path | None:
    """Give an archive that is damaged another name; None if that was done already.

    `file` is the damaged one: by now another process may have begun a new one in its place.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.name}.damaged-{stamp}-{os.urandom(4).hex()}")
    try:
        with _held(path.parent, fcntl.LOCK_EX):
            if file is None or file_at(path) != file:
                return None
            for suffix in ("-wal", "-shm", "-journal"):
                with suppress(FileNotFoundError):  # who lets go of it removes them
                    path.with_name(path.name + suffix).rename(f"{aside}{suffix}")
            path.rename(aside)  # last: what is beside it then is a new one's
    except OSError as error:
        raise ArchiveError(
            f"The archive {path} is damaged and cannot be set aside: {error}."
        ) from error
    return aside


@contextmanager
def _held(folder: Path, lock: int) -> Iterator[None]:
    """Hold a lock on a folder: shared to open an archive in it, alone to set one aside.

    Where there are no locks, or no folder yet, there is none.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, lock)
        yield


def is_on_network(path: Path, mounts: Path = Path("/proc/mounts")) -> bool:
    """Whether several hosts may write to a file there, as far as the system says."""
    try:
        table = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    whole = _resolved(path)
    best, found = "", ""
    for line in table:
        fields = line.split()
        if len(fields) > 2:
            place = fields[1].replace("\\040", " ")
            is_above = whole == place or whole.startswith(place.rstrip("/") + "/")
            if is_above and len(place) >= len(best):
                best, found = place, fields[2]
    return found in ON_NETWORKS


def _resolved(path: Path) -> str:
    try:
        return str(path.expanduser().resolve())
    except (OSError, RuntimeError):
        return str(path.absolute())
