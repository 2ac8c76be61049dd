"""A batch system that tests can look into."""

from __future__ import annotations

from parsl.jobs.states import JobState, JobStatus
from parsl.launchers import SrunLauncher
from parsl.providers.base import ExecutionProvider


class Queue(ExecutionProvider):
    """A batch system in which every job waits for ever, or is refused."""

    def __init__(self, *, refuses: bool = False, **limits: int) -> None:
        self.refuses = refuses
        self.jobs: dict[str, JobState] = {}
        self.script_dir = None
        self.launcher = SrunLauncher()
        self.parallelism = 1
        self.nodes_per_block = 1
        self._cores_per_node: int | None = 16
        self._mem_per_node: float | None = 16
        self.init_blocks = limits.get("init_blocks", 0)
        self.min_blocks = limits.get("min_blocks", 0)
        self.max_blocks = limits.get("max_blocks", 20)

    def submit(self, command: str, tasks_per_node: int, job_name: str = "") -> object:
        if self.refuses:
            raise RuntimeError("the queue is closed")
        job = str(len(self.jobs))
        self.jobs[job] = JobState.PENDING
        return job

    def status(self, job_ids: list[object]) -> list[JobStatus]:
        return [JobStatus(self.jobs[str(job)]) for job in job_ids]

    def cancel(self, job_ids: list[object]) -> list[bool]:
        for job in job_ids:
            self.jobs[str(job)] = JobState.CANCELLED
        return [True] * len(job_ids)

    @property
    def label(self) -> str:
        return "queue"

    @property
    def status_polling_interval(self) -> int:
        return 1

    @property
    def active(self) -> int:
        return sum(state is JobState.PENDING for state in self.jobs.values())
