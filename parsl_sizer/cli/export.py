"""``parsl-sizer export``: what is in the archive, for other programs and other archives."""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from argparse import Namespace
from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

from parsl_sizer.archive.base import Entry
from parsl_sizer.archive.lines import line_of
from parsl_sizer.model import Ending, SizerError, printable
from parsl_sizer.simulator import Row
from parsl_sizer.simulator.trace import COLUMNS, as_cells

from .archives import of_the_run, opened
from .output import print_json, progress, say, ticking
from .search import query_of


class Counted:
    """What was written, and what a trace has no place for."""

    def __init__(self) -> None:
        self.written = 0
        self.left_out = 0


def run(arguments: Namespace) -> None:
    if arguments.csv and arguments.json and arguments.output is None:
        raise SizerError("--csv and --json go together only with -o FILE, which gets the CSV.")
    counted, query = Counted(), query_of(arguments)
    with opened(arguments) as found, ExitStack() as stack:
        entries = found.archive.entries(of_the_run(query, found))
        entries = chain(list(islice(entries, 1)), entries)  # a fault comes before there is a file
        file: TextIO = sys.stdout
        if arguments.output is not None:
            path = Path(arguments.output)
            file = stack.enter_context(path.open("w", encoding="utf-8", newline=""))
            advance = stack.enter_context(progress("attempts", None))
            entries = ticking(entries, advance)
        if arguments.csv:
            _write(_oldest_first(_trace(entries, counted)), file)
        elif arguments.json and arguments.output is None:
            _write(_as_one_object(found.name, entries), file)
            return
        else:
            _write((f"{line_of(entry)}\n" for entry in _counting(entries, counted)), file)
    if counted.left_out:
        say(f"{counted.left_out:,} attempts that were not done are left out: traces have no such.")
    if arguments.json:
        facts = {"written": counted.written, "left_out": counted.left_out}
        print_json({"archive": found.name, "output": arguments.output, **facts})
    elif arguments.output is not None:
        say(f"Wrote {counted.written:,} {'tasks' if arguments.csv else 'attempts'} to {path}.")


def _write(texts: Iterable[str], file: TextIO) -> None:
    is_read_by_people = file.isatty()
    for text in texts:
        file.write(printable(text) if is_read_by_people else text)


def _counting(entries: Iterable[Entry], counted: Counted) -> Iterator[Entry]:
    for entry in entries:
        counted.written += 1
        yield entry


def _trace(entries: Iterable[Entry], counted: Counted) -> Iterator[str]:
    """The lines of a trace, the header last: whoever turns them round has it first."""
    line = csv.writer(_Echo(), lineterminator="\n").writerow
    for entry in entries:
        outcome = entry.outcome
        if outcome.ending is not Ending.DONE:
            counted.left_out += 1
            continue
        counted.written += 1
        row = Row(0, outcome.attempt.task, outcome.usage.peak, outcome.usage.wall_s)
        yield str(line(as_cells(row).values()))
    yield str(line(COLUMNS))


class _Echo:
    """A file that gives back what is written to it, as the writer of CSV does then too."""

    def write(self, text: str) -> str:
        return text


def _oldest_first(texts: Iterable[str]) -> Iterator[str]:
    """The texts from the last to the first, in memory for their places only.

    Archives give the newest first, and who replays a trace learns in its order.
    """
    with tempfile.TemporaryFile() as file:
        ends = array("q", [0])
        for text in texts:
            ends.append(ends[-1] + file.write(text.encode("utf-8", "backslashreplace")))
        for place in range(len(ends) - 1, 0, -1):
            file.seek(ends[place - 1])
            yield file.read(ends[place] - ends[place - 1]).decode()


def _as_one_object(name: str, entries: Iterable[Entry]) -> Iterator[str]:
    """One JSON object, made attempt by attempt: there may be more than memory holds."""
    yield json.dumps({"archive": name})[:-1] + ', "attempts": ['
    for number, entry in enumerate(entries):
        yield f"{',' if number else ''}\n{line_of(entry)}"
    yield "\n]}\n"
