"""Slurm's accounting, as ``sacct -P -o JobID,JobName,State,...`` prints it.

The columns are separated by ``|``, a header first; with the trailing ``|`` of
``--parsable`` or without. A job's row is followed by those of its steps (``7.batch``,
``7.extern``, ``7.0``), which tell what it used. Of the columns that sacct has, those in
`USED` are looked at; the first three have to be there, MaxRSS and ElapsedRaw (or Elapsed)
should. Units are powers of 1024; times are taken for this machine's.

MaxRSS is the largest that any task of any step was seen to have, by a plugin that looks
every 30 seconds or so: a lower bound of the job's peak. A job that failed after more than
it had requested was seen is one that ran out, as is one that Slurm says so of.

The category is the job's name without a number at its end: ``align_12`` is ``align``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from parsl_sizer.archive.base import SAMPLED, Entry, Run
from parsl_sizer.model import NOTHING, Amounts, Ending, Kind, TaskInfo, exceeded

from .base import Notes, amount
from .cells import (
    clock,
    finished,
    first_line,
    identity,
    kept,
    known,
    labelled,
    moment,
    positive,
    records,
    size,
)

NAME = "sacct"
NEEDED = ("JobID", "JobName", "State")
USED = (
    *NEEDED,
    *("MaxRSS", "ElapsedRaw", "Elapsed", "TotalCPU", "AveCPU", "NTasks", "NNodes"),
    *("ReqMem", "ReqCPUS", "AllocCPUS", "NCPUS", "Submit", "Start", "End", "NodeList"),
    *("User", "Account", "Partition", "ExitCode", "SubmitLine"),
)
LABELS = ("JobName", "User", "Account", "Partition", "ExitCode")
ENDINGS = {
    "COMPLETED": Ending.DONE,
    "FAILED": Ending.RAISED,
    "OUT_OF_MEMORY": Ending.EXHAUSTED,
    "TIMEOUT": Ending.LOST,
    "DEADLINE": Ending.LOST,
    "NODE_FAIL": Ending.LOST,
    "BOOT_FAIL": Ending.LOST,
    "PREEMPTED": Ending.LOST,
}
NOTHING_IT_DID = frozenset({"NODE_FAIL", "BOOT_FAIL", "PREEMPTED"})
CANCELLED = "cancelled"
NOT_FINISHED = "not finished"
NO_JOB = "a step without its job"
MOST_REPEATED = 10_000
"""Jobs that were put back into the queue and are remembered; the oldest are forgotten."""
_NUMBER_AT_END = re.compile(r"(?<=.)(?:[-_.:]\[?[0-9]+\]?)+$")
_REQUESTED = re.compile(r"(.*?)([cn]?)")


def recognises(path: Path, head: bytes) -> bool:
    """Whether the first line names a job's id, name and state."""
    return set(NEEDED) <= set(first_line(head).split("|"))


class _Job:
    """The row of a job, and what the rows of its steps have told so far."""

    def __init__(self, cells: dict[str, str]) -> None:
        self.cells = cells
        self.peak: float | None = None
        self.cpu_s: float | None = None
        self.out_of_memory = False
        self.add(cells)

    def add(self, step: dict[str, str]) -> None:
        """Take note of one more row."""
        if seen := size(step.get("MaxRSS")):
            self.peak = max(seen, self.peak or 0.0)
        if (mean := clock(step.get("AveCPU"))) is not None:
            self.cpu_s = (self.cpu_s or 0.0) + mean * (amount(step.get("NTasks")) or 1.0)
        self.out_of_memory |= step.get("State", "").startswith("OUT_OF_ME")


def read(path: Path, notes: Notes) -> Iterator[Entry]:
    """The jobs that ended, one by one."""
    run_id = identity(NAME, path)
    run: Run | None = None
    tries: dict[str, int] = {}
    for job in _jobs(path, notes):
        cells = job.cells
        job_id, state = cells["JobID"], cells.get("State", "").split(" ")[0].rstrip("+")
        # Whoever asks for --duplicates gets a row for every time that a job was started.
        tries[job_id] = number = tries.pop(job_id, 0) + 1
        if len(tries) > MOST_REPEATED:
            del tries[next(iter(tries))]
        if state not in ENDINGS:
            notes.skip(CANCELLED if state.startswith("CANCEL") else NOT_FINISHED)
            continue
        if run is None:
            run = Run(run_id, moment(cells.get("Submit")) or 0.0, source=NAME)
        if entry := _entry(run, job, state, number, notes):
            yield entry


def _jobs(path: Path, notes: Notes) -> Iterator[_Job]:
    job: _Job | None = None
    for _, cells in records(path, "|", NEEDED, notes):
        job_id, dot, _ = cells.get("JobID", "").partition(".")
        if not dot and job_id:
            if job:
                yield job
            job = _Job(cells)
        elif job and job_id == job.cells["JobID"]:
            job.add(cells)
        else:
            notes.skip(NO_JOB)
    if job:
        yield job


def _entry(run: Run, job: _Job, state: str, number: int, notes: Notes) -> Entry | None:
    cells = job.cells
    cores = amount(cells.get("ReqCPUS") or cells.get("AllocCPUS") or cells.get("NCPUS"))
    nodes = amount(cells.get("NNodes")) or 1.0
    memory = _requested(cells.get("ReqMem", ""), cores, nodes)
    requested = known(cores=positive(cores), memory=positive(memory))
    peak = known(memory=job.peak)
    ending, exhausted = _ended(state, job, requested, peak)
    wall_s = amount(cells.get("ElapsedRaw"))
    total_s = clock(cells.get("TotalCPU"))
    host = cells.get("NodeList", "None assigned")
    name, line = cells.get("JobName", ""), cells.get("SubmitLine")
    task = TaskInfo(
        kept(cells["JobID"]),
        _category(kept(name)) or "job",
        moment(cells.get("Submit")) or 0.0,
        requested=requested,
        labels=labelled(cells, LABELS),
        command=kept(line) if line else None,
    )
    return finished(
        run,
        task,
        notes,
        peak,
        clock(cells.get("Elapsed")) if wall_s is None else wall_s,
        job.cpu_s if total_s is None else total_s,
        ending=ending,
        exhausted=exhausted,
        number=number,
        host=None if host == "None assigned" else kept(host),
        launched_at=moment(cells.get("Start")),
        ended_at=moment(cells.get("End")),
        layers=(SAMPLED,),
        node_lost=state in NOTHING_IT_DID,
    )


def _ended(
    state: str, job: _Job, requested: Amounts, peak: Amounts
) -> tuple[Ending, frozenset[Kind]]:
    """How the job ended, and what it ran out of."""
    ending = ENDINGS[state]
    if ending is Ending.RAISED and (job.out_of_memory or exceeded(requested, peak)):
        ending = Ending.EXHAUSTED
    return ending, frozenset({Kind.MEMORY}) if ending is Ending.EXHAUSTED else NOTHING


def _requested(text: str, cores: float | None, nodes: float) -> float | None:
    """The memory that a job requested; before Slurm 21.08 it was per core or per node.

    >>> _requested("2Gc", 4.0, 1.0) == _requested("8Gn", 4.0, 1.0) == _requested("8G", 4.0, 1.0)
    True
    """
    found = _REQUESTED.fullmatch(text)
    total = size(found.group(1)) if found else None
    if total is None or found is None:
        return None
    return amount(total * {"c": cores or 1.0, "n": nodes, "": 1.0}[found.group(2)])


def _category(name: str) -> str:
    """The name of a job without the number at its end.

    >>> _category("align_12"), _category("bowtie2"), _category("sim.3_7"), _category("7")
    ('align', 'bowtie2', 'sim', '7')
    """
    return _NUMBER_AT_END.sub("", name)
