"""``parsl-sizer prune``: runs that nobody needs any more, removed from the archive."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from parsl_sizer.archive.base import RunLine
from parsl_sizer.model import SizerError
from parsl_sizer.report.plain import run_json

from .archives import Opened, counted, opened, the_run
from .history import runs_table
from .output import console, print_json
from .search import query_of_runs


def run(arguments: Namespace) -> None:
    with opened(arguments) as found:
        lines = _chosen(arguments, found)
    is_meant = bool(lines) and not arguments.dry_run
    if is_meant and not arguments.yes and (arguments.json or not sys.stdin.isatty()):
        raise SizerError(
            f"{_told(lines)} would be removed, but there is nobody to ask; say --yes to remove "
            "them, or --dry-run to see them."
        )
    if not arguments.json:
        _show(arguments, lines, found)
    removed = None
    if is_meant and (arguments.yes or _is_agreed(lines)):
        with opened(arguments, read_only=False) as writable:
            removed = writable.archive.prune([line.run.run_id for line in lines])
        if not arguments.json:
            print(
                f"Removed {counted(removed, 'attempt')} from {found.name}.{found.size} "
                "What was freed in it is used for new ones."
            )
    if arguments.json:
        runs = [run_json(line) for line in lines]
        print_json({"archive": found.name, "runs": runs, "removed": removed})


def _chosen(arguments: Namespace, found: Opened) -> list[RunLine]:
    """The runs to remove, the newest first."""
    if arguments.run_ids is not None:
        named = [the_run(wanted, found) for wanted in arguments.run_ids]
        return list({line.run.run_id: line for line in named}.values())
    lines = found.archive.runs(query_of_runs(arguments))
    if arguments.keep_runs is not None:
        return lines[arguments.keep_runs :]
    # Some formats do not say when: what may be new is kept.
    return [line for line in lines if 0 < line.ended_at < arguments.older_than]


def _show(arguments: Namespace, lines: Sequence[RunLine], found: Opened) -> None:
    if not lines:
        print(f"There is nothing to remove in {found.name}.{found.size}")
        return
    console().print(runs_table(lines))
    would = "would be" if arguments.dry_run else "will be"
    print(f"{_told(lines)} {would} removed from {found.name}.{found.size}", flush=True)


def _is_agreed(lines: Sequence[RunLine]) -> bool:
    try:
        answer = input(f"Remove {_told(lines)}? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return True
    print("Nothing is removed.")
    return False


def _told(lines: Sequence[RunLine]) -> str:
    attempts = sum(line.attempts for line in lines)
    return f"{counted(len(lines), 'run')} with {counted(attempts, 'attempt')}"
