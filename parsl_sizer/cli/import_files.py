"""``parsl-sizer import``: what other systems have logged, added to the archive.

A file with a fault in it adds nothing: what was recorded of it is taken back, so that it can
be mended and imported again. An attempt that the archive refuses is no such fault: it is skipped.
"""

from __future__ import annotations

import gc
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from parsl_sizer.archive.base import Archive, Entry, Query
from parsl_sizer.archive.divided import put
from parsl_sizer.archive.importers.base import Importer, ImportFailed, Notes
from parsl_sizer.archive.importers.catalog import importer, recognise

from . import FAULTY_INPUT
from .archives import Opened, counted, opened
from .output import print_json, progress, say, tell, ticking

BATCH = 20_000
"""So many attempts are recorded at a time."""


@dataclass(slots=True)
class Result:
    """What became of one file."""

    path: Path
    format: str | None = None
    notes: Notes = field(default_factory=Notes)
    new: int | None = None
    """How many attempts the archive did not have; None if it was not asked."""
    fault: str | None = None

    def sentence(self) -> str:
        """What to tell of it."""
        if self.fault is not None:
            return self.fault
        taken = counted(self.notes.taken, "attempt")
        sentence = f"{self.path} ({self.format}): {taken}"
        if self.new is not None:
            sentence += f", {self.new:,} of them new"
        if self.notes.skipped:
            reasons = "; ".join(f"{n:,} × {why}" for why, n in self.notes.skipped.most_common())
            sentence += f". Skipped: {reasons}"
        return sentence.rstrip(".") + "."

    def as_json(self) -> dict[str, object]:
        return {
            "file": str(self.path),
            "format": self.format,
            "taken": self.notes.taken if self.fault is None else 0,
            "new": self.new,
            "skipped": dict(self.notes.skipped.most_common()),
            "error": self.fault,
        }


def run(arguments: Namespace) -> None:
    results = []
    with ExitStack() as stack:
        found: Opened | None = None
        if not arguments.dry_run:
            found = stack.enter_context(opened(arguments, read_only=False))
        for path, reader, fault in _chosen(arguments):
            result = _imported(path, reader, fault, found.archive if found else None)
            results.append(result)
            if result.fault is not None:
                say(result.fault)
            elif not arguments.json:
                tell(result.sentence())
        if arguments.json:
            files = [result.as_json() for result in results]
            print_json({"archive": found.name if found else None, "files": files})
        elif read := [result for result in results if result.fault is None]:
            tell(_summary(read, found))
    sys.stdout.flush()
    if any(result.fault is not None for result in results):
        raise SystemExit(FAULTY_INPUT)


def _chosen(arguments: Namespace) -> Iterator[tuple[Path, Importer | None, str | None]]:
    """The files, and either who reads each or why nobody can."""
    named = importer(arguments.format) if arguments.format else None
    for path in map(Path, arguments.files):
        if path.is_dir():
            readers = list(_inside(path, named))
            if not readers:
                yield path, None, f"No file in the folder {path} is one that can be imported."
            for inner, reader in readers:
                yield inner, reader, None
            continue
        try:
            if path.exists() and not path.is_file():
                raise ImportFailed(f"{path} is no file.")
            yield path, named or recognise(path), None
        except ImportFailed as error:
            yield path, None, str(error)


def _inside(folder: Path, named: Importer | None) -> Iterator[tuple[Path, Importer]]:
    for path in sorted(folder.iterdir()):
        if path.is_file():
            try:
                found = recognise(path)
            except ImportFailed:
                continue
            if named is None or found.NAME == named.NAME:
                yield path, found


def _imported(
    path: Path, reader: Importer | None, fault: str | None, archive: Archive | None
) -> Result:
    if reader is None:
        return Result(path, fault=fault)
    result = Result(path, reader.NAME)
    try:
        with progress(f"reading {path.name}", None) as advance, _uncollected():
            entries = ticking(reader.read(path, result.notes), advance)
            if archive is not None:
                result.new = _recorded(entries, archive, result.notes)
            else:
                for _ in entries:
                    pass
    except ImportFailed as error:
        result.fault = str(error)
    except OSError as error:
        result.fault = f"{path} cannot be read: {(error.strerror or str(error)).lower()}."
    return result


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without looking for cycles, which entries never are in: it takes a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _recorded(entries: Iterator[Entry], archive: Archive, notes: Notes) -> int:
    """Record them, how many were new; if they cannot be read or kept to the end, none.

    What the archive refuses is skipped, for the first one's reason: no two say quite the same.
    """
    new, why = 0, ""
    added: dict[str, bool] = {}
    try:
        while batch := list(islice(entries, BATCH)):
            for run_id in {entry.run.run_id for entry in batch} - added.keys():
                added[run_id] = not archive.runs(Query(run_id=run_id))
            count, refusals = put(archive.record, batch)
            new += count
            for refused, error in refusals:
                why = why or f"refused (of the first: {str(error).rstrip('.')})"
                notes.taken -= len(refused)
                notes.skip(why, len(refused))
    except BaseException:
        archive.prune(run_id for run_id, is_new in added.items() if is_new)
        raise
    return new


def _summary(read: list[Result], found: Opened | None) -> str:
    taken = counted(sum(result.notes.taken for result in read), "attempt")
    of = f"{taken} in {counted(len(read), 'file')}"
    if found is None:
        return f"{of}; nothing was recorded, as this was a dry run."
    new = sum(result.new or 0 for result in read)
    return f"{of}, {new:,} of them new in {found.name}."
