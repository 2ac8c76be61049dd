"""The arguments of the commands on the archive, and what their help says."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from parsl_sizer.archive.importers.catalog import names

from . import search, values

Fill = Callable[[argparse.ArgumentParser], None]


def where(command: argparse.ArgumentParser) -> None:
    """Which archive: all commands that use one take this."""
    command.add_argument(
        "--archive",
        metavar="WHERE",
        help="a file, or postgresql://... (default: $PARSL_SIZER_ARCHIVE, else yours)",
    )


def imports(command: argparse.ArgumentParser) -> None:
    """What ``import`` takes."""
    command.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="what another system logged; of a folder every file in it that is recognised",
    )
    command.add_argument(
        "--format",
        choices=names(),
        metavar="NAME",
        help=f"don't guess it: {', '.join(names())}",
    )
    command.add_argument(
        "--dry-run", action="store_true", help="read and tell, but add nothing to the archive"
    )
    where(command)


def history(command: argparse.ArgumentParser) -> None:
    """What ``history`` takes."""
    search.add_options(command, last=search.LAST)
    command.add_argument(
        "--runs", action="store_true", help="the runs that have such attempts, not the attempts"
    )
    where(command)


def whatif(command: argparse.ArgumentParser) -> None:
    """What ``whatif`` takes."""
    command.add_argument(
        "what",
        metavar="CATEGORY|FILE",
        help="a category of the archive, or a file that could be imported",
    )
    command.add_argument(
        "--category", metavar="NAME", help="of a file, only this category (default: all)"
    )
    command.add_argument(
        "--node",
        type=values.amounts,
        default={},
        metavar="memory=AMOUNT",
        help="the largest node: nothing larger is advised (default: there is no limit)",
    )
    command.add_argument(
        "--last",
        type=values.positive,
        default=10_000,
        metavar="N",
        help="look at the newest N attempts of a category of the archive (default: 10000)",
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="S", help="of the bootstrap (default: 0)"
    )
    command.add_argument("--png", metavar="FILE", help="draw the curve (needs the extra 'plots')")
    where(command)


def explain(command: argparse.ArgumentParser) -> None:
    """What ``explain`` takes."""
    command.add_argument("task", metavar="TASK", help="the task's id")
    search.add_run(command, help="the run that it is of", default=search.LAST_RUN)
    where(command)


def report(command: argparse.ArgumentParser) -> None:
    """What ``report`` takes."""
    command.add_argument(
        "run_id",
        nargs="?",
        default=search.LAST_RUN,
        metavar="RUN",
        help=f"the run, by {search.BY} (default: {search.LAST_RUN})",
    )
    command.add_argument("--html", metavar="FILE", help="write the page to this file")
    where(command)


def export(command: argparse.ArgumentParser) -> None:
    """What ``export`` takes."""
    search.add_options(command, last=None)
    command.add_argument(
        "-o", "--output", metavar="FILE", help="where to write it (default: standard output)"
    )
    command.add_argument(
        "--csv", action="store_true", help="a trace of the tasks that were done, oldest first"
    )
    where(command)


def waits(command: argparse.ArgumentParser) -> None:
    """What ``waits`` takes."""
    command.add_argument(
        "--place", metavar="NAME", help="only this batch system, such as 'slurm alvis'"
    )
    command.add_argument(
        "--since",
        type=values.moment,
        metavar="WHEN",
        help="only blocks asked for since then: 7d, or a date",
    )
    where(command)


def prune(command: argparse.ArgumentParser) -> None:
    """What ``prune`` takes."""
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--older-than",
        type=values.age,
        metavar="AGE",
        help="runs that ended longer ago than this, such as 90d; "
        "or began, if their end is not known",
    )
    which.add_argument(
        "--run", dest="run_ids", nargs="+", metavar="RUN", help=f"these runs, each by {search.BY}"
    )
    which.add_argument(
        "--keep-runs", type=values.count, metavar="N", help="all runs but the newest N"
    )
    search.add_options_of_runs(command)
    command.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    command.add_argument("--yes", action="store_true", help="don't ask")
    where(command)


def serve(command: argparse.ArgumentParser) -> None:
    """What ``serve`` takes."""
    command.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where to listen; where others can reach it, all need the token "
        "(default: 127.0.0.1, this machine only)",
    )
    command.add_argument(
        "--port", type=values.port, default=8421, metavar="N", help="0 is any (default: 8421)"
    )
    command.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="a name of this machine that browsers may call it by; may be repeated",
    )
    command.add_argument(
        "--token-file",
        metavar="FILE",
        help="who knows the token in this file may post outcomes (default: "
        "$PARSL_SIZER_TOKEN, else nobody may)",
    )
    command.add_argument(
        "--private",
        action="store_true",
        help="reading needs the token on this machine too, where others may be logged in",
    )
    where(command)
