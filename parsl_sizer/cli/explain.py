"""``parsl-sizer explain``: why a task was given what it was, and what became of it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from parsl_sizer.archive.base import LIVE, SAMPLED, Archive, Entry, Query, Run
from parsl_sizer.archive.warm import LAST
from parsl_sizer.model import Ending, Kind, SizerError, format_amount, printable
from parsl_sizer.report.plain import entry_json
from parsl_sizer.report.text import UNKNOWN, shortened

from .archives import Opened, amounts, counted, lasting, opened, the_run, when
from .output import console, print_json

MOST = 10_000
"""Of tasks that ended before, so many are looked at."""
KNOWN = 1.0
"""What ended before this moment is what nobody knows when it ended."""


@dataclass(frozen=True, slots=True)
class Before:
    """Tasks of the same category that had ended when an attempt began."""

    tasks: int
    is_all: bool
    peaks: tuple[float, float, float] | None
    """The least, the median and the largest peak of memory."""

    def sentence(self, where: str) -> str:
        """What was known from there."""
        if not self.tasks:
            return f"{where}: no task of its category had ended."
        more, newest = ("", "") if self.is_all else ("or more ", f" the newest {self.tasks:,}")
        tasks = counted(self.tasks, f"{more}task")
        if self.peaks is None:
            return f"{where}: {tasks} of its category had ended, of unknown memory."
        least, middle, most = (format_amount(Kind.MEMORY, peak) for peak in self.peaks)
        return (
            f"{where}: {tasks} of its category had ended,{newest} with peaks of memory from "
            f"{least} to {most}, half of them up to {middle}."
        )

    def as_json(self) -> dict[str, object]:
        least, middle, most = self.peaks or (None, None, None)
        return {
            "tasks": self.tasks,
            "is_all": self.is_all,
            "least": least,
            "median": middle,
            "largest": most,
        }


def run(arguments: Namespace) -> None:
    with opened(arguments) as found:
        run = the_run(arguments.run, found).run
        entries = _attempts(arguments.task, run, found)
        first = entries[0].outcome.attempt
        here = earlier = None
        if first.launched_at > 0:
            category = first.task.category
            launched_at = first.launched_at
            here = _before(found.archive, run, category, launched_at, is_here=True)
            started_at = min(run.started_at or launched_at, launched_at)
            earlier = _before(found.archive, run, category, started_at, is_here=False)
        if arguments.json:
            print_json(
                {
                    "archive": found.name,
                    "run": run.run_id,
                    "task": first.task.task_id,
                    "category": first.task.category,
                    "attempts": [entry_json(entry) for entry in entries],
                    "before_in_run": here and here.as_json(),
                    "before_in_earlier_runs": earlier and earlier.as_json(),
                }
            )
        else:
            _show(entries, here, earlier)


def _attempts(task: str, run: Run, found: Opened) -> list[Entry]:
    """All attempts of a task, the first one first. Ids are numbers or texts; both are tried."""
    ids: list[int | str] = [int(task), task] if task.isdecimal() and task.isascii() else [task]
    for task_id in ids:
        entries = list(found.archive.entries(Query(run_id=run.run_id, task_id=task_id)))
        if entries:
            return sorted(entries, key=lambda entry: entry.outcome.attempt.number)
    raise SizerError(
        f"The run {run.run_id} has no task {task!r} that has ended; name another run with --run, "
        f"or see parsl-sizer history --run {run.run_id}."
    )


def _before(archive: Archive, run: Run, category: str, until: float, *, is_here: bool) -> Before:
    """The newest that had ended at a moment, in this run or in others."""
    last = MOST if is_here else LAST
    query = Query(
        run.run_id if is_here else None,
        category,
        endings=(Ending.DONE,),
        since=KNOWN,
        until=until,
        last=last + 1,  # one more tells that there are more
    )
    outcomes = [o for its, o in archive.entries(query) if (its.run_id == run.run_id) is is_here]
    usages = [outcome.usage for outcome in outcomes[:last]]
    peaks = [usage.peak[Kind.MEMORY] for usage in usages if Kind.MEMORY in usage.peak]
    found = (min(peaks), median(peaks), max(peaks)) if peaks else None
    return Before(len(usages), len(outcomes) <= last, found)


def _show(entries: Sequence[Entry], here: Before | None, earlier: Before | None) -> None:
    out = console()

    def tell(line: str) -> None:
        out.print(printable(line, keep=""))

    run, outcome = entries[0]
    task = outcome.attempt.task
    of = f" of {shortened(run.workflow)}" if run.workflow else ""
    tell(f"Task {task.task_id}, category {shortened(task.category)}, in run {run.run_id}{of}")
    if task.command:
        tell(f"  command    {shortened(task.command, 100)}")
    if task.features:
        known = ", ".join(_feature(name, value) for name, value in task.features.items())
        tell(f"  known      {known}")
    if task.requested:
        tell(f"  requested  {amounts(task.requested)}")
    for entry in entries:
        tell("")
        for line in _attempt_lines(entry):
            tell(line)
    tell("")
    if here is None or earlier is None:
        tell("When it began is not known, nor what was known then.")
        return
    if run.source != LIVE:
        tell(f"It was imported ({run.source}): what it was given was not decided here.")
    tell(here.sentence("Before it in this run"))
    tell(earlier.sentence("Before this run"))


def _feature(name: str, value: float) -> str:
    if name == "input_size":
        return f"{format_amount(Kind.DISK, value)} of input"
    return f"{name} {value:g}"


def _attempt_lines(entry: Entry) -> list[str]:
    outcome = entry.outcome
    attempt, usage = outcome.attempt, outcome.usage
    given = amounts(attempt.allocation) + ("" if attempt.enforced else ", not enforced")
    used = amounts(usage.peak)
    if usage.cpu_s is not None:
        used += f", {lasting(usage.cpu_s)} of CPU time"
    if SAMPLED in outcome.layers:
        used += " (the largest of some samples, so at least)"
    ended = outcome.ending.value
    if outcome.exhausted:
        ended += f" its {' and '.join(sorted(kind.value for kind in outcome.exhausted))}"
    if outcome.node_lost:
        ended += " with its node"
    places = [outcome.host, *([attempt.node] if attempt.node != outcome.host else [])]
    return [
        f"Attempt {attempt.number}, {when(attempt.launched_at)}",
        f"  given      {given}",
        f"  because    {attempt.why or UNKNOWN}",
        f"  used       {used}",
        f"  ended      {ended} after {lasting(usage.wall_s)}",
        f"  on         {', '.join(filter(None, places)) or UNKNOWN}",
    ]
