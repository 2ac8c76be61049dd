"""What archives in SQLite and PostgreSQL have in common: statements and their parameters.

Statements are written with ``?`` for parameters, which no text in them contains otherwise.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from typing import Any

from parsl_sizer.model import NodeProfile
from parsl_sizer.scaling.geometry import Geometry

from .base import EVERYTHING, MOST, Entry, Query, Refused, Run, RunLine, Wait
from .profiles import COLUMNS as PROFILE_COLUMNS
from .profiles import newest, profile_of, profile_row
from .rows import COLUMNS, clean, label_text, outcome_of, row_of, searched, task_key

RUN_COLUMNS = (
    "run_id",
    "started_at",
    "user_name",
    "workflow",
    "checksum",
    "host",
    "source",
    "versions",
    "labels",
)
ATTEMPT_COLUMNS = ("run", *COLUMNS)
PAGE = 2000
"""So many rows are in memory at a time."""

_RUN = ", ".join(f"r.{column}" for column in RUN_COLUMNS)
_INSERT_RUN = (
    f"INSERT INTO runs ({', '.join(RUN_COLUMNS)}) VALUES ({', '.join('?' * len(RUN_COLUMNS))}) "
    "ON CONFLICT DO NOTHING"
)
_INSERT_LABEL = "INSERT INTO task_labels VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_INSERT_RUN_LABEL = "INSERT INTO run_labels VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_INSERT_INPUT = "INSERT INTO task_inputs VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_INSERT_PROFILE = (
    f"INSERT INTO node_profiles ({', '.join(PROFILE_COLUMNS)}) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)
_SELECT_PROFILES = (
    f"SELECT {', '.join(PROFILE_COLUMNS)} FROM node_profiles p WHERE measured_at = (SELECT "
    "MAX(measured_at) FROM node_profiles WHERE executor = p.executor AND host = p.host)"
)
_DELETE_PROFILES = (
    "DELETE FROM node_profiles "
    "WHERE CASE executor WHEN '' THEN host ELSE executor || '/' || host END = ?"
)
_WAIT = "run_id, place, queue, nodes, cores, memory, asked_at, wait_s, at_most"
_INSERT_WAIT = f"INSERT INTO waits ({_WAIT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_HAS_INPUT = "(a.run, a.task) IN (SELECT run, task FROM task_inputs WHERE path LIKE ? ESCAPE '!')"
_HAS_LABEL = (
    "((a.run, a.task) IN (SELECT run, task FROM task_labels WHERE name = ? AND value = ?) "
    "OR a.run IN (SELECT run FROM run_labels WHERE name = ? AND value = ?))"
)


@lru_cache(maxsize=1000)
def insertion(columns: tuple[str, ...]) -> str:
    """The statement for attempts that have values in these columns."""
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO attempts ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT DO NOTHING"


def selection(there: Collection[str]) -> str:
    """The columns of attempts, of which an older archive may not have all."""
    return ", ".join(f"a.{column}" if column in there else "NULL" for column in COLUMNS)


class SqlArchive(ABC):
    """An archive in a database that speaks SQL."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._attempt = selection(COLUMNS)

    @abstractmethod
    def _transaction(self, *, writes: bool = False) -> AbstractContextManager[object]:
        """All that happens inside is kept, or nothing; errors come out as `ArchiveError`."""

    @abstractmethod
    def _fetch(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement gives."""

    @abstractmethod
    def _insert(self, statement: str, rows: Sequence[Sequence[object]]) -> int:
        """How many of these rows were not there before."""

    def _insert_attempts(self, rows: Sequence[Sequence[object]]) -> int:
        return self._insert(insertion(ATTEMPT_COLUMNS), rows)

    def record(self, entries: Sequence[Entry]) -> int:
        """Keep these for good, all or none; how many were not here before."""
        try:
            try:
                return self._record(entries)
            except Refused:
                if not self._known:
                    raise
                self._known = {}  # a run that was written may have been removed since
                return self._record(entries)
        except (ValueError, TypeError, OverflowError) as error:
            raise Refused(f"An outcome cannot be recorded: {error!r:.200}.") from error

    def _record(self, entries: Sequence[Entry]) -> int:
        known = dict(self._known)
        with self._transaction(writes=True):
            rows, labels, inputs = [], [], []
            reason, why = object(), ""
            for run, outcome in entries:
                key = known.get(run.run_id)
                if key is None:
                    key = known[run.run_id] = self._key_of(run)
                task = outcome.attempt.task
                if outcome.attempt.why is not reason:  # those of one size have one reason
                    reason = outcome.attempt.why
                    why = clean(str(reason))
                rows.append((key, *row_of(outcome, why)))
                if task.labels or task.inputs:
                    name = task_key(task.task_id)
                    labels += [
                        (label, label_text(value), key, name)
                        for label, value in task.labels.items()
                    ]
                    inputs += [(searched(path), key, name) for path in task.inputs]
            new = self._insert_attempts(rows)
            if labels:
                self._insert(_INSERT_LABEL, labels)
            if inputs:
                self._insert(_INSERT_INPUT, inputs)
        self._known = known
        return new

    def entries(self, query: Query = EVERYTHING) -> Iterator[Entry]:
        """What was recorded, the newest first."""
        where, parameters = _where(query)
        left, after = query.last, ""
        place: tuple[object, ...] = ()
        while left is None or left > 0:
            count = PAGE if left is None else min(PAGE, left)
            with self._transaction():
                found = self._fetch(
                    f"SELECT {self._attempt}, {_RUN}, a.ended_at, a.id FROM attempts a "
                    f"JOIN runs r ON r.run = a.run WHERE {where}{after} "
                    f"ORDER BY a.ended_at DESC, a.id DESC LIMIT {count}",
                    (*parameters, *place),
                )
            for row in found:
                cut = len(COLUMNS)
                try:
                    run = _run_of(row[cut : cut + len(RUN_COLUMNS)])
                    entry = Entry(run, outcome_of(row[:cut]))
                except (ValueError, TypeError, KeyError):  # somebody else has written it
                    continue
                yield entry
            if len(found) < count:
                return
            if left is not None:
                left -= len(found)
            after, place = " AND (a.ended_at, a.id) < (?, ?)", found[-1][-2:]

    def runs(self, query: Query = EVERYTHING) -> list[RunLine]:
        """The runs of which something matches, the newest first."""
        where, parameters = _where(query)
        limit = "" if query.last is None else f" LIMIT {int(query.last)}"
        with self._transaction():
            found = self._fetch(
                f"SELECT {_RUN}, COUNT(*), COUNT(DISTINCT a.category), MAX(a.ended_at) "
                f"FROM attempts a JOIN runs r ON r.run = a.run WHERE {where} "
                f"GROUP BY r.run ORDER BY r.started_at DESC, r.run DESC{limit}",
                parameters,
            )
        return [RunLine(_run_of(row[:-3]), *row[-3:]) for row in found]

    def prune(self, run_ids: Iterable[str]) -> int:
        """Remove runs with all their attempts; how many attempts that were."""
        removed = 0
        with self._transaction(writes=True):
            for run_id in run_ids:
                found = self._fetch("SELECT run FROM runs WHERE run_id = ?", [run_id])
                for (key,) in found:
                    [(count,)] = self._fetch("SELECT COUNT(*) FROM attempts WHERE run = ?", [key])
                    self._insert("DELETE FROM runs WHERE run = ?", [[key]])
                    removed += count
        self._known.clear()
        return removed

    def keep_profiles(self, profiles: Iterable[NodeProfile]) -> int:
        """Keep what nodes can do, all or none; how many were not here before."""
        rows = [profile_row(profile) for profile in profiles]
        with self._transaction(writes=True):
            return self._insert(_INSERT_PROFILE, rows)

    def profiles(self) -> list[NodeProfile]:
        """The newest profile of each host by each executor, in the order of their names."""
        with self._transaction():
            rows = self._fetch(_SELECT_PROFILES) if self._has("node_profiles") else []
        found = []
        for row in rows:
            with suppress(ValueError, TypeError):  # somebody else has written it
                found.append(profile_of(*row))
        return newest(found)

    def forget_profiles(self, names: Iterable[str]) -> int:
        """Remove all profiles of these names, old ones too; how many names had any."""
        with self._transaction(writes=True):
            removed = [self._insert(_DELETE_PROFILES, [[name]]) for name in dict.fromkeys(names)]
        return sum(map(bool, removed))

    def _has(self, table: str) -> bool:
        """Whether there is this table: an older archive that may only be read lacks new ones."""
        return True

    def record_waits(self, waits: Sequence[Wait]) -> None:
        """Keep these for good, all or none."""
        rows = []
        for run_id, place, geometry, asked_at, wait_s, at_most, _ in waits:
            nodes, cores, memory, queue = geometry
            names = (run_id, clean(place), clean(queue))
            rows.append((*names, nodes, cores, memory, asked_at, wait_s, int(at_most)))
        with self._transaction(writes=True):
            self._insert(_INSERT_WAIT, rows)

    def waits(self, place: str | None = None, *, after: int = 0, last: int = MOST) -> list[Wait]:
        """So many, the newest, of those with a number above `after`; the oldest of them first."""
        where, parameters = ("", []) if place is None else (" AND place = ?", [clean(place)])
        with self._transaction():
            if not self._has("waits"):
                return []
            found = self._fetch(
                f"SELECT {_WAIT}, id FROM waits WHERE id > ?{where} "
                f"ORDER BY id DESC LIMIT {int(last)}",
                [after, *parameters],
            )
        return [_wait_of(row) for row in reversed(found)]

    def _key_of(self, run: Run) -> int:
        values = (
            run.run_id,
            run.started_at,
            run.user and clean(run.user),
            run.workflow and clean(run.workflow),
            run.checksum,
            run.host and clean(run.host),
            run.source,
            json.dumps(dict(run.versions)) if run.versions else None,
            json.dumps(dict(run.labels), default=str, skipkeys=True) if run.labels else None,
        )
        self._insert(_INSERT_RUN, [values])
        [(key,)] = self._fetch("SELECT run FROM runs WHERE run_id = ?", [run.run_id])
        labels = [(label, label_text(value), key) for label, value in run.labels.items()]
        if labels:
            self._insert(_INSERT_RUN_LABEL, labels)
        return int(key)


def _wait_of(row: Sequence[Any]) -> Wait:
    run_id, place, queue, nodes, cores, memory, asked_at, wait_s, at_most, number = row
    geometry = Geometry(nodes, cores, memory, queue)
    return Wait(run_id, place, geometry, asked_at, wait_s, bool(at_most), number)


def _run_of(row: Sequence[Any]) -> Run:
    *plain, versions, labels = row
    run_id, started_at, user, workflow, checksum, host, source = plain
    return Run(
        run_id,
        started_at,
        user,
        workflow,
        checksum,
        host,
        source,
        json.loads(versions) if versions else {},
        json.loads(labels) if labels else {},
    )


def _where(query: Query) -> tuple[str, list[object]]:
    """The condition for a query, and its parameters."""
    conditions: list[tuple[str, Sequence[object]]] = []
    for column, value in (
        ("a.category", query.category),
        ("a.host", query.host),
        ("a.task", None if query.task_id is None else task_key(query.task_id)),
    ):
        if value is not None:
            conditions.append((f"{column} = ?", [value]))
    of_runs = {
        "run_id": query.run_id,
        "user_name": query.user,
        "workflow": query.workflow,
        "source": query.source,
    }
    wanted = {column: value for column, value in of_runs.items() if value is not None}
    if wanted:
        own = " AND ".join(f"{column} = ?" for column in wanted)
        conditions.append((f"a.run IN (SELECT run FROM runs WHERE {own})", list(wanted.values())))
    for column, (least, most) in (
        ("a.ended_at", (query.since, query.until)),
        ("a.peak_memory", query.memory),
        ("a.wall_s", query.wall_s),
    ):
        if least is not None:
            conditions.append((f"{column} >= ?", [least]))
        if most is not None:
            conditions.append((f"{column} <= ?", [most]))
    if query.endings:
        marks = ", ".join("?" * len(query.endings))
        conditions.append((f"a.ending IN ({marks})", [ending.value for ending in query.endings]))
    if query.command is not None:
        conditions.append(("a.command LIKE ? ESCAPE '!'", [_part(query.command)]))
    if query.input is not None:
        conditions.append((_HAS_INPUT, [_part(query.input)]))
    for name, value in query.labels.items():
        wanted_value = searched(value)
        conditions.append((_HAS_LABEL, [name, wanted_value, name, wanted_value]))
    where = " AND ".join(condition for condition, _ in conditions) or "1 = 1"
    return where, [value for _, values in conditions for value in values]


def _part(text: str) -> str:
    for sign in "!%_":
        text = text.replace(sign, f"!{sign}")
    return f"%{text}%"
