"""What a batch system says of its jobs: when they were submitted, started and ended.

Slurm is asked itself. Of the others it is known what Parsl's provider says, when it says so.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

from parsl.jobs.states import TERMINAL_STATES, JobState, JobStatus
from parsl.providers import SlurmProvider

TIMEOUT_S = 10.0
"""So long a command is waited for: a busy `slurmctld` takes seconds."""


class Phase(str, Enum):
    """How far a job is."""

    WAITING = "waiting"
    RUNNING = "running"
    OVER = "over"


class JobFacts(NamedTuple):
    """What is known of a job; times are seconds since the epoch, None if not known."""

    phase: Phase
    state: JobState
    submitted_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None


class Batch(Protocol):
    """A batch system, as far as it can be asked beside the provider."""

    place: str
    """What it is called: waits in one queue say nothing of another's."""

    def jobs(self, statuses: Mapping[str, JobStatus]) -> Mapping[str, JobFacts] | None:
        """What it knows of jobs; `statuses` is what the provider has said of ours.

        None if it does not answer just now: then nothing is known, and nothing has changed.
        """
        ...

    def marked(self, mark: str) -> Sequence[str]:
        """Lines for the head of a job's script that let it be found again by this mark."""
        ...

    def following(self, jobs: Sequence[str]) -> Sequence[str]:
        """Lines by which a job starts only when these are over, if that can be said."""
        ...

    def will(self) -> Mapping[str, Sequence[str]] | None:
        """The commands that list and cancel jobs, for who is there when we are not."""
        ...


def batch_of(provider: Any) -> Batch:
    """How to ask the batch system of a provider."""
    if isinstance(provider, SlurmProvider):
        return Slurm(provider.clusters)
    return AsTold(str(provider.label))


class AsTold:
    """A batch system of which only the provider knows."""

    def __init__(self, place: str) -> None:
        self.place = place

    def jobs(self, statuses: Mapping[str, JobStatus]) -> Mapping[str, JobFacts] | None:
        return {
            job: JobFacts(_phase(status.state), status.state) for job, status in statuses.items()
        }

    def marked(self, mark: str) -> Sequence[str]:
        return ()

    def following(self, jobs: Sequence[str]) -> Sequence[str]:
        return ()

    def will(self) -> Mapping[str, Sequence[str]] | None:
        return None


class Slurm:
    """Asked with `squeue`, which reads what `slurmctld` knows: a job is there once it has a number.

    Parsl's provider prefers `sacct`, where a job appears some time after it was submitted, and
    takes what does not appear for completed. What ended is known here for `MinJobAge`, by
    default five minutes.
    """

    FIELDS = "%i|%T|%V|%S|%e"

    def __init__(self, clusters: str | None = None) -> None:
        self._clusters = [f"--clusters={clusters}"] if clusters else []
        self.place = f"slurm {clusters or self._own_name()}".strip()

    @staticmethod
    def _own_name() -> str:
        for line in (_said(["scontrol", "show", "config"]) or "").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "ClusterName":
                return value.strip()
        return ""

    def jobs(self, statuses: Mapping[str, JobStatus]) -> Mapping[str, JobFacts] | None:
        command = ["squeue", "--me", "--noheader", "--states=all", f"--format={self.FIELDS}"]
        said = _said([*command, *self._clusters])
        return None if said is None else facts(said)

    def marked(self, mark: str) -> Sequence[str]:
        return (f"#SBATCH --comment={mark}",)

    def following(self, jobs: Sequence[str]) -> Sequence[str]:
        return (f"#SBATCH --dependency=afterany:{':'.join(jobs)}",) if jobs else ()

    def will(self) -> Mapping[str, Sequence[str]] | None:
        listing = ["squeue", "--me", "--noheader", "--format=%i %k", *self._clusters]
        return {"list": listing, "cancel": ["scancel", *self._clusters]}


STATES: Mapping[str, JobState] = {
    "PENDING": JobState.PENDING,
    "CONFIGURING": JobState.PENDING,
    "REQUEUED": JobState.PENDING,
    "REQUEUE_HOLD": JobState.PENDING,
    "SPECIAL_EXIT": JobState.FAILED,
    "RUNNING": JobState.RUNNING,
    "COMPLETING": JobState.RUNNING,
    "STAGE_OUT": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "RESIZING": JobState.RUNNING,
    "SUSPENDED": JobState.HELD,
    "STOPPED": JobState.HELD,
    "COMPLETED": JobState.COMPLETED,
    "CANCELLED": JobState.CANCELLED,
    "TIMEOUT": JobState.TIMEOUT,
    "DEADLINE": JobState.TIMEOUT,
    "PREEMPTED": JobState.TIMEOUT,
    "FAILED": JobState.FAILED,
    "NODE_FAIL": JobState.FAILED,
    "BOOT_FAIL": JobState.FAILED,
    "OUT_OF_MEMORY": JobState.FAILED,
    "REVOKED": JobState.FAILED,
}


def facts(lines: str) -> dict[str, JobFacts]:
    """The jobs in what `squeue` prints, with times in seconds since the epoch.

    >>> facts("7|PENDING|100|160|220\\n8|RUNNING|100|130|190\\n9|CANCELLED|100|N/A|140\\n")["8"]
    JobFacts(phase=<Phase.RUNNING: 'running'>, state=<JobState.RUNNING: 2>,
             submitted_at=100.0, started_at=130.0, ended_at=None)
    """
    found = {}
    for line in lines.splitlines():
        job, _, rest = line.strip().partition("|")
        parts = rest.split("|")
        if len(parts) != 4 or parts[0] not in STATES:
            continue  # a heading of a cluster, or a state that is news to us
        state = STATES[parts[0]]
        phase = _phase(state)
        submitted, started, ended = map(_time, parts[1:])
        found[job] = JobFacts(
            phase,
            state,
            submitted,
            None if phase is Phase.WAITING else started,  # when it is expected to start
            ended if phase is Phase.OVER else None,
        )
    return found


def _phase(state: JobState) -> Phase:
    if state in TERMINAL_STATES:
        return Phase.OVER
    return Phase.RUNNING if state in (JobState.RUNNING, JobState.HELD) else Phase.WAITING


def _time(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # N/A, or Unknown
        return None


def _said(command: Sequence[str]) -> str | None:
    """What a command prints; None if it fails, or does not answer."""
    environment = {**os.environ, "SLURM_TIME_FORMAT": "%s"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout
