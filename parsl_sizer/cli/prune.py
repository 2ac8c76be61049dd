"""``parsl-sizer prune``: runs that nobody needs any more, removed from the archive."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from collections.abc import Sequence

from parsl_sizer.archive.base import RunLine
from parsl_sizer.model import SizerError
from parsl_sizer.report.plain import run_json

from .archives import SUGGESTED, Opened, counted, opened, the_run
from .history import runs_table
from .output import console, print_json, say, tell
from .search import query_of_runs


def run(arguments: Namespace) -> None:
    with opened(arguments) as found:
        lines, undated = _chosen(arguments, found)
    is_meant = bool(lines) and not arguments.dry_run
    if is_meant and not arguments.yes and (arguments.json or not sys.stdin.isatty()):
        raise SizerError(
            f"{_told(lines)} would be removed, but there is nobody to ask; say --yes to remove "
            "them, or --dry-run to see them."
        )
    if not arguments.json:
        _show(arguments, lines, found)
    if undated:
        say(_kept(undated))
    removed = None
    if is_meant and (arguments.yes or _is_agreed(lines)):
        with opened(arguments, read_only=False) as writable:
            removed = writable.archive.prune([line.run.run_id for line in lines])
        if not arguments.json:
            tell(
                f"Removed {counted(removed, 'attempt')} from {found.name}.{found.size} "
                "What was freed in it is used for new ones."
            )
    if arguments.json:
        runs = [run_json(line) for line in lines]
        print_json({"archive": found.name, "runs": runs, "removed": removed})


def _chosen(arguments: Namespace, found: Opened) -> tuple[list[RunLine], list[RunLine]]:
    """The runs to remove, the newest first, and those that may be as old, but do not say."""
    if arguments.run_ids is not None:
        named = [the_run(wanted, found) for wanted in arguments.run_ids]
        return list({line.run.run_id: line for line in named}.values()), []
    lines = found.archive.runs(query_of_runs(arguments))
    if arguments.keep_runs is not None:
        return lines[arguments.keep_runs :], []
    # Some formats do not say when: what may be new is kept.
    old = [line for line in lines if 0 < _date(line) < arguments.older_than]
    return old, [line for line in lines if _date(line) <= 0]


def _date(line: RunLine) -> float:
    """When a run ended, or at least when it began; 0 if neither is known."""
    return line.ended_at if line.ended_at > 0 else line.run.started_at


def _kept(undated: Sequence[RunLine]) -> str:
    names = shlex.join(line.run.run_id for line in undated[:SUGGESTED])
    more = " …" if len(undated) > SUGGESTED else ""
    kept = counted(len(undated), "run")
    return f"Kept {kept} without a date; remove by name: parsl-sizer prune --run {names}{more}."


def _show(arguments: Namespace, lines: Sequence[RunLine], found: Opened) -> None:
    if not lines:
        tell(f"There is nothing to remove in {found.name}.{found.size}")
        return
    console().print(runs_table(lines))
    would = "would be" if arguments.dry_run else "will be"
    tell(f"{_told(lines)} {would} removed from {found.name}.{found.size}")


def _is_agreed(lines: Sequence[RunLine]) -> bool:
    try:
        answer = input(f"Remove {_told(lines)}? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return True
    tell("Nothing is removed.")
    return False


def _told(lines: Sequence[RunLine]) -> str:
    attempts = sum(line.attempts for line in lines)
    return f"{counted(len(lines), 'run')} with {counted(attempts, 'attempt')}"
