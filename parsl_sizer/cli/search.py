"""The options with which attempts and runs are looked for: the same in every command."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Sequence

from parsl_sizer.archive import criteria
from parsl_sizer.archive.base import Query
from parsl_sizer.model import Ending, SizerError

from . import values

LAST = 20
LAST_RUN = "last"
BY = f"its id, the beginning or the end of it, or {LAST_RUN}"
ENDINGS = tuple(ending.value for ending in Ending)


def add_options(command: argparse.ArgumentParser, *, last: int | None) -> None:
    """Everything that can be looked for, and how many are shown if nothing is said."""
    add_run(command, help="of this run", default=None)
    command.add_argument("--category", metavar="NAME", help="of this category")
    add_options_of_runs(command)
    command.add_argument(
        "--command", dest="part", metavar="TEXT", help="with this in the command or function"
    )
    command.add_argument(
        "--input", metavar="TEXT", help="with this in the name of one of its input files"
    )
    command.add_argument("--host", metavar="NAME", help="that ran on this host")
    command.add_argument(
        "--ending",
        dest="endings",
        action="append",
        choices=ENDINGS,
        metavar="HOW",
        help=f"that ended like this: {', '.join(ENDINGS)}; may be repeated",
    )
    command.add_argument(
        "--label",
        dest="labels",
        action="append",
        metavar="NAME=VALUE",
        help="with this label, of the task or of its run; may be repeated for other labels",
    )
    command.add_argument(
        "--since",
        type=values.moment,
        metavar="WHEN",
        help="that ended since: 2025-03-01, 2025-03-01T14:30, or how long ago: 3d, 2h",
    )
    command.add_argument(
        "--until", type=values.moment, metavar="WHEN", help="that ended until then"
    )
    command.add_argument(
        "--memory",
        type=values.memory_range,
        metavar="A..B",
        help="whose peak of memory was in this range, such as 1GB..4GB or 2GB..",
    )
    command.add_argument(
        "--time",
        dest="wall_s",
        type=values.time_range,
        metavar="A..B",
        help="that took so long, such as 10s..2h or ..1m",
    )
    command.add_argument(
        "--last",
        type=values.positive,
        default=last,
        metavar="N",
        help=f"the newest N only (default: {last or 'all'})",
    )


def add_run(command: argparse.ArgumentParser, *, help: str, default: str | None) -> None:
    """A run, and which one it is if nothing is said."""
    otherwise = f" (default: {default})" if default else ""
    command.add_argument(
        "--run",
        dest="run_id",
        default=default,
        metavar="RUN",
        help=f"{help}, by {BY}{otherwise}",
    )


def add_options_of_runs(command: argparse.ArgumentParser) -> None:
    """What all attempts of a run have in common."""
    command.add_argument("--user", metavar="NAME", help="of runs of this user")
    command.add_argument("--workflow", metavar="NAME", help="of runs of this workflow")
    command.add_argument(
        "--source", metavar="NAME", help="live, or the format that the run was imported from"
    )


def query_of(arguments: Namespace) -> Query:
    """What `add_options` were told to look for."""
    return Query(
        run_id=arguments.run,
        category=arguments.category,
        user=arguments.user,
        workflow=arguments.workflow,
        command=arguments.part,
        input=arguments.input,
        host=arguments.host,
        source=arguments.source,
        endings=tuple(Ending(name) for name in arguments.endings or ()),
        labels=_labels(arguments.labels or ()),
        since=arguments.since,
        until=arguments.until,
        memory=arguments.memory or (None, None),
        wall_s=arguments.wall_s or (None, None),
        last=arguments.last,
    )


def _labels(texts: Sequence[str]) -> dict[str, str]:
    try:
        return criteria.labels(texts)
    except ValueError as error:
        raise SizerError(f"--label: {error}.") from None


def query_of_runs(arguments: Namespace) -> Query:
    """What `add_options_of_runs` were told to look for."""
    return Query(user=arguments.user, workflow=arguments.workflow, source=arguments.source)
