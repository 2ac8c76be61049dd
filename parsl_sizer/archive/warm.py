"""What a category's strategy is taught before its first task: outcomes of earlier runs.

The newest are taken and taught last, so that the newest runs have the most to say. Of
tasks of other code than the task's every fourth is taken, and before the others. Peaks that
are only samples stand in where too few were measured.
"""

from __future__ import annotations

from parsl_sizer.model import Ending, Outcome, TaskInfo

from .base import SAMPLED, Archive, Entry, Query

LAST = 200
FEW = 20
"""With fewer measured peaks than this, sampled ones are taken too."""
OTHER_CODE = 4


def lessons(archive: Archive, task: TaskInfo, *, last: int = LAST) -> list[Outcome]:
    """Outcomes of the task's category to learn from, in the order to learn them."""
    query = Query(category=task.category, endings=(Ending.DONE, Ending.EXHAUSTED), last=last)
    entries = list(archive.entries(query))[::-1]
    measured = [entry for entry in entries if SAMPLED not in entry.outcome.layers]
    if len(measured) >= FEW:
        entries = measured
    own = [entry for entry in entries if _has_code(entry, task.code_hash)]
    others = [entry for entry in entries if not _has_code(entry, task.code_hash)]
    tasks = list(dict.fromkeys(_task(entry) for entry in others))
    some = set(tasks[::-OTHER_CODE])
    return [_of_its_run(entry) for entry in others if _task(entry) in some] + [
        _of_its_run(entry) for entry in own
    ]


def _task(entry: Entry) -> tuple[str, int | str]:
    return entry.run.run_id, entry.outcome.attempt.task.task_id


def _has_code(entry: Entry, code_hash: str | None) -> bool:
    """Whether an outcome is of this very code, as far as that is known."""
    found = entry.outcome.attempt.task.code_hash
    return code_hash is None or found is None or found == code_hash


def _of_its_run(entry: Entry) -> Outcome:
    """The outcome with a name for its task that no task of this run has."""
    outcome = entry.outcome
    task = outcome.attempt.task
    renamed = task._replace(task_id=f"{entry.run.run_id}/{task.task_id}")
    return outcome._replace(attempt=outcome.attempt._replace(task=renamed))
