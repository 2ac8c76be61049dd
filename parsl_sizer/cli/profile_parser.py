"""The arguments of ``profile``, and what its help says."""

from __future__ import annotations

import argparse

from parsl_sizer.profiling import EXTRAS, FLAG, SECONDS

from . import values
from .archive_parser import where

WAIT_S = 600.0
ABOUT = """\
Of this machine, or with --config of every node behind a Parsl configuration: the speed of
one core and of all, the bandwidth of memory, reading and writing in order and at random.
By sysbench and fio where they are installed, else by probes of our own; the table says how.
A node takes half a minute, in which it should do nothing else. The profiles go into the
archive. --list shows them, with the groups of nodes that are alike, 1 the weakest, and the
labels of each group: a node with cpu 2 computes faster than one with cpu 1.
"""


def profile(command: argparse.ArgumentParser) -> None:
    """What ``profile`` takes."""
    command.description = f"{command.description}\n\n{ABOUT}"
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--config",
        metavar="FILE",
        help="a file of Python with config = Config(...), which is loaded to reach its nodes",
    )
    what.add_argument(
        "--list", action="store_true", help="measure nothing, show what the archive has"
    )
    what.add_argument(
        "--forget", nargs="+", metavar="NODE", help="remove these nodes from the archive"
    )
    command.add_argument(
        "--seconds",
        type=values.above_zero,
        default=SECONDS,
        metavar="S",
        help=f"measure for about so long on a node (default: {SECONDS:g})",
    )
    command.add_argument(
        "--extra",
        type=values.names,
        default=[],
        metavar="A,B,...",
        help=f"also look up {', '.join(EXTRAS)}, or a flag of processors as in {FLAG}avx2",
    )
    command.add_argument(
        "--built-in",
        action="store_true",
        help="don't use sysbench and fio: where some nodes lack them, figures compare",
    )
    command.add_argument(
        "--folder",
        metavar="DIR",
        help="read and write a file there (default: where temporary files go)",
    )
    command.add_argument(
        "--nodes",
        type=values.positive,
        metavar="N",
        help="with --config: wait for N nodes of each executor (default: those of its first "
        "blocks)",
    )
    command.add_argument(
        "--wait",
        type=values.above_zero,
        default=WAIT_S,
        metavar="S",
        help=f"with --config: for at most so many seconds (default: {WAIT_S:g})",
    )
    command.add_argument(
        "--by",
        type=values.names,
        metavar="A,B,...",
        help="group nodes by these features (default: what was measured, but for cpu_multi)",
    )
    command.add_argument(
        "--dry-run", action="store_true", help="measure and tell, but keep nothing"
    )
    where(command)
