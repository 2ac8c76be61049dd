"""What is recorded of a run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from sizer_runs import most_given_out

from parsl_sizer import Outcome
from parsl_sizer.archive.open import open_archive
from parsl_sizer.model import Ending


class Run:
    """A run, and what is recorded of it."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive

    @property
    def outcomes(self) -> list[Outcome]:
        """Of all attempts, the first one first."""
        archive = open_archive(self.archive, read_only=True)
        found = [entry.outcome for entry in archive.entries()]
        archive.close()
        return found[::-1]

    def tasks(self) -> Counter[tuple[str, float | None]]:
        """How many tasks there were of each category with each number of entries."""
        tasks = {outcome.attempt.task.task_id: outcome.attempt.task for outcome in self.outcomes}
        return Counter((task.category, task.features.get("entries")) for task in tasks.values())

    def endings(self) -> dict[int | str, list[Ending]]:
        """Those of each task's attempts."""
        found: dict[int | str, list[Ending]] = {}
        for outcome in self.outcomes:
            found.setdefault(outcome.attempt.task.task_id, []).append(outcome.ending)
        return found

    def most_given_out(self) -> float:
        """The largest sum of the memory of attempts that ran at the same time."""
        return most_given_out(self.outcomes)
