"""Which ways of measuring and limiting are there on this machine, and why or why not?

What `parsl-sizer doctor` prints, as plain values.
"""

from __future__ import annotations

import fcntl
import os
import platform
import tempfile
from typing import NamedTuple

from . import cgroup, node, probe
from .files import in_memory


class Layer(NamedTuple):
    """One way of measuring or limiting."""

    name: str
    is_active: bool
    does: str
    why: str


def here() -> list[Layer]:
    """All layers, in the order in which they are relied on."""
    return [
        _proc(),
        _high_water_marks(),
        _shared_pages(),
        _files(),
        _adoption(),
        _groups(),
        _ledger(),
    ]


def isolation() -> str:
    """How a task can be run at best: "runner" also stands for "fork"."""
    return "runner" if node.can_be_supervised() else "inline"


def _proc() -> Layer:
    does = "memory, cores and processes of a task are read, and a breach is stopped"
    if node.can_be_supervised():
        return Layer("proc", True, does, "/proc can be read")
    why = "/proc cannot be read" if probe.IS_LINUX else f"{platform.system()} has no /proc"
    why += ": tasks are measured with getrusage, in their worker, and never stopped"
    return Layer("proc", False, does, why)


def _high_water_marks() -> Layer:
    does = "spikes shorter than the time between two samples are seen"
    if probe.forget_highest():
        return Layer("hwm", True, does, "/proc/self/clear_refs can be written to")
    why = (
        "/proc/self/clear_refs cannot be written to: a spike is seen if it is the process's highest"
    )
    return Layer("hwm", False, does, why)


def _shared_pages() -> Layer:
    does = "pages that several processes of a task share are counted once"
    if probe.shares(os.getpid()) is not None:
        return Layer("pss", True, does, "/proc/self/smaps_rollup can be read")
    why = "/proc/self/smaps_rollup cannot be read: shared pages count in every process"
    return Layer("pss", False, does, why)


def _files() -> Layer:
    does = "memory of files in tmpfs and memfd counts, also if no process has it mapped"
    if cgroup.room(cgroup.place("memory"))[0] is not None:
        return Layer("shmem", True, does, "the control group of the task counts it")
    if not probe.IS_LINUX:
        return Layer("shmem", False, does, "there is no /proc/PID/fd: not Linux")
    why = "by files that are open for writing in /proc/PID/fd, and "
    if in_memory(tempfile.gettempdir()) is None:
        why += f"{tempfile.gettempdir()} is no tmpfs"
    else:
        why += "all files in the task's TMPDIR, which is a tmpfs"
    why += ": what is written and closed elsewhere between two looks is not seen"
    return Layer("shmem", True, does, why)


def _adoption() -> Layer:
    does = "no process of a task outlives it, whatever it does to escape"
    if probe.can_adopt_orphans():
        return Layer("adoption", True, does, "PR_SET_CHILD_SUBREAPER is there")
    return Layer("adoption", False, does, "PR_SET_CHILD_SUBREAPER is not there: not Linux")


def _groups() -> Layer:
    does = "the kernel stops what is quicker than the samples, and says that it was for memory"
    found = cgroup.place("memory")
    folder, why = cgroup.room(found)
    name = "cgroup" if found is None else f"cgroup-v{found.version}"
    return Layer(name, folder is not None, does, why)


def _ledger() -> Layer:
    does = "workers on one node take turns where it has no room for all their tasks"
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return Layer("ledger", False, does, f"no file in {folder} can be locked: {error.strerror}")
    return Layer("ledger", True, does, f"files in {folder} can be locked")
