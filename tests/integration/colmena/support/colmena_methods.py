"""Methods for task servers. Workers import this."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from colmena.models.methods import ExecutableMethod

from parsl_sizer import sized

MB = 1_000_000
GRID = 2
"""MB for an atom, in these simulations."""


def held(mb: float) -> bytearray:
    return bytearray(b"x") * int(mb * MB)


def noted(path: str) -> int:
    """Add a letter to a file; how many there are now."""
    with Path(path).open("a") as notes:
        notes.write("x")
    return len(Path(path).read_text())


def simulate(atoms):
    data = held(GRID * atoms)
    time.sleep(0.3)
    return -atoms * len(data) / (GRID * MB)


def infer(energies):
    return [energy / 2 for energy in energies]


@sized(memory="100MB")
def grown(mb, notes):
    """Needs more than it says, and the first time runs until it is stopped for that."""
    is_first = noted(notes) == 1
    data = held(mb)
    if is_first:
        time.sleep(300)
    return len(data) // MB


@sized(memory="100MB")
def refused(mb, notes):
    """Asks the first time for more than any machine has."""
    data = held(mb)
    more = bytearray(1 << 50 if noted(notes) == 1 else 1)
    return len(data) // MB + len(more)


@sized(memory="100MB")
def refused_by_numpy(mb, notes):
    import numpy

    data = held(mb)
    more = numpy.empty(1 << 50 if noted(notes) == 1 else 1, dtype="u1")
    return len(data) // MB + len(more)


def failing(notes):
    noted(notes)
    raise ValueError("as it should")


def giant(notes):
    noted(notes)
    data = held(900)
    time.sleep(300)
    return len(data)


def killed(notes, times):
    """Kills its worker, so often."""
    if noted(notes) <= times:
        os.kill(worker(), signal.SIGKILL)
        time.sleep(300)
    return "survived"


def worker() -> int:
    """The process that HTEX started for this task: the child of its manager."""
    pid, child = os.getpid(), os.getpid()
    while b"process_worker_pool" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        child, pid = pid, int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return child


@sized(memory="100MB")
def summed(data, mb, notes):
    """Needs more than it says beside its input."""
    noted(notes)
    more = held(mb)
    time.sleep(1)
    return len(data) + len(more) // MB


@sized(memory="100MB")
def summed_if_there_is_memory(data, mb, notes):
    noted(notes)
    more = held(mb)
    return len(data) + len(more) + len(bytearray(1 << 50))


def summed_until_killed(data, notes):
    return len(data) + len(killed(notes, 1))


class Relax(ExecutableMethod):
    """A program that says how many MB it is going to take, and takes them."""

    CODE = """
import sys, time
mb = int(sys.argv[1])
print(mb, flush=True)
held = b"x" * mb * 10**6
time.sleep(0.5)
"""

    def __init__(self) -> None:
        super().__init__(executable=[sys.executable, "-c", self.CODE], name="relax")

    def preprocess(self, run_dir, args, kwargs):
        (mb,) = args
        if mb is None:
            raise ValueError("nothing to relax")
        (run_dir / "input").write_text(str(mb))
        return [str(mb)], None

    def postprocess(self, run_dir):
        assert (run_dir / "input").exists()
        return int((run_dir / "colmena.stdout").read_text())
