"""An archive that is forgotten with its process: for tests, and for what need not last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from parsl_sizer.model import Kind, NodeProfile

from .base import EVERYTHING, MOST, Entry, Query, Run, RunLine, Wait
from .profiles import newest, profile_of, profile_row
from .rows import clean, label_text, outcome_of, row_of, searched, task_key

Key = tuple[str, str, int]


class MemoryArchive:
    """Entries in a dictionary, kept as the others keep them: in rows."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._entries: dict[Key, Entry] = {}
        self._profiles: dict[tuple[str, float], NodeProfile] = {}
        self._waits: list[Wait] = []

    def record(self, entries: Sequence[Entry]) -> int:
        """Keep these for good, all or none; how many were not here before."""
        new = {}
        for run, outcome in entries:
            first = self._runs.setdefault(run.run_id, run)
            key = run.run_id, task_key(outcome.attempt.task.task_id), outcome.attempt.number
            if key not in self._entries and key not in new:
                why = clean(str(outcome.attempt.why))
                new[key] = Entry(first, outcome_of(row_of(outcome, why)))
        self._entries |= new
        return len(new)

    def entries(self, query: Query = EVERYTHING) -> Iterator[Entry]:
        """What was recorded, the newest first."""
        found = [entry for entry in self._entries.values() if matches(entry, query)]
        found.reverse()
        found.sort(key=lambda entry: entry.outcome.ended_at, reverse=True)
        yield from found[: query.last]

    def runs(self, query: Query = EVERYTHING) -> list[RunLine]:
        """The runs of which something matches, the newest first."""
        entries = [entry for entry in self._entries.values() if matches(entry, query)]
        lines = []
        for run in self._runs.values():
            own = [entry.outcome for entry in entries if entry.run is run]
            if own:
                categories = {outcome.attempt.task.category for outcome in own}
                ended_at = max(outcome.ended_at for outcome in own)
                lines.append(RunLine(run, len(own), len(categories), ended_at))
        lines.reverse()
        lines.sort(key=lambda line: line.run.started_at, reverse=True)
        return lines[: query.last]

    def prune(self, run_ids: Iterable[str]) -> int:
        """Remove runs with all their attempts; how many attempts that were."""
        gone = set(run_ids)
        kept = {key: entry for key, entry in self._entries.items() if key[0] not in gone}
        removed = len(self._entries) - len(kept)
        self._entries = kept
        for run_id in gone:
            self._runs.pop(run_id, None)
        return removed

    def keep_profiles(self, profiles: Iterable[NodeProfile]) -> int:
        """Keep what nodes can do, all or none; how many were not here before."""
        given = [profile_of(*profile_row(profile)) for profile in profiles]
        new = {(one.name, one.measured_at): one for one in reversed(given)}
        before = len(self._profiles)
        self._profiles = new | self._profiles
        return len(self._profiles) - before

    def profiles(self) -> list[NodeProfile]:
        """The newest profile of each host by each executor, in the order of their names."""
        return newest(self._profiles.values())

    def forget_profiles(self, names: Iterable[str]) -> int:
        """Remove all profiles of these names, old ones too; how many names had any."""
        gone = set(names)
        had = gone & {name for name, _ in self._profiles}
        self._profiles = {key: one for key, one in self._profiles.items() if key[0] not in gone}
        return len(had)

    def record_waits(self, waits: Sequence[Wait]) -> None:
        """Keep these for good, all or none."""
        first = len(self._waits) + 1
        self._waits += [wait._replace(number=at) for at, wait in enumerate(waits, start=first)]

    def waits(self, place: str | None = None, *, after: int = 0, last: int = MOST) -> list[Wait]:
        """So many, the newest, of those with a number above `after`; the oldest of them first."""
        found = [wait for wait in self._waits[after:] if place in (None, wait.place)]
        return found[-last:]

    def close(self) -> None:
        """Let go of it."""


def matches(entry: Entry, query: Query) -> bool:
    """Whether an entry is what is looked for."""
    run, outcome = entry
    task, usage = outcome.attempt.task, outcome.usage
    labels = [{name: label_text(value) for name, value in of.labels.items()} for of in (task, run)]
    equal = (
        (query.run_id, run.run_id),
        (query.category, task.category),
        (query.task_id, task.task_id),
        (query.user, run.user),
        (query.workflow, run.workflow),
        (query.host, outcome.host),
        (query.source, run.source),
    )
    ranges = (
        ((query.since, query.until), outcome.ended_at),
        (query.memory, usage.peak.get(Kind.MEMORY)),
        (query.wall_s, usage.wall_s),
    )
    return (
        all(wanted is None or wanted == found for wanted, found in equal)
        and (not query.endings or outcome.ending in query.endings)
        and all(_is_within(found, *wanted) for wanted, found in ranges)
        and (query.command is None or _has(task.command, query.command))
        and (query.input is None or any(_has(path, query.input) for path in task.inputs))
        and all(
            any(found.get(name) == searched(value) for found in labels)
            for name, value in query.labels.items()
        )
    )


def _has(text: str | None, part: str) -> bool:
    return text is not None and part.lower() in text.lower()


def _is_within(found: float | None, least: float | None, most: float | None) -> bool:
    if least is None and most is None:
        return True
    return (
        found is not None and (least is None or found >= least) and (most is None or found <= most)
    )
