"""The arguments of all commands, and what their help says."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from importlib import import_module
from typing import NoReturn

from parsl_sizer.model import Kind, Resources, parse_amounts
from parsl_sizer.version import __version__

NODE = Resources(cores=16, memory=64e9, disk=64e9)
"""The node of Phung et al., WORKS 2021."""

EXAMPLES = """\
examples:
  parsl-sizer generate trimodal --tasks 2000 --seed 1 -o trace.csv
      a trace to play with; yours is CSV with the header
      category,input_size,cores,memory_mb,disk_mb,time_s,user_memory_mb
  parsl-sizer compare trace.csv --png compare.png
      what every strategy would have cost on it, the best one marked
  parsl-sizer replay trace.csv --strategy auto --lag 32 --node cores=16,memory=64GB
      one strategy in detail, with 32 tasks in flight
  parsl-sizer replay trace.csv --strategy percentile:p=95 --json
      the same for programs, and a strategy with an option
  parsl-sizer strategies
      what there is, and the paper that each comes from
  parsl-sizer doctor
      which ways of measuring and limiting tasks work on this machine

An empty cell of a trace is unknown. 1 GB is 1000 MB. With --json every command prints
one JSON object. A fault in what you give is one sentence and exit status 2.
"""


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        sentence = message.rstrip(".")
        print(f"{self.prog}: {sentence}; see {self.prog} --help.", file=sys.stderr)
        raise SystemExit(2)


def command_line() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(
        prog="parsl-sizer",
        description="What would each strategy for sizing tasks have cost on this trace?",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"parsl-sizer {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="parsl-sizer")
    for name, summary, fill in (
        ("replay", "what one strategy would have cost on a trace", _replay),
        ("compare", "all strategies on a trace, in one table and a picture", _compare),
        ("generate", "make a trace of a known distribution", _generate),
        ("strategies", "list the strategies, their papers and options", _strategies),
        ("doctor", "what can be measured and limited on this machine, and why not", _doctor),
    ):
        command = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            allow_abbrev=False,
        )
        fill(command)
        command.add_argument("--json", action="store_true", help="print one JSON object")
        command.set_defaults(run=_runner(name))
    return parser


def _runner(name: str) -> Callable[[argparse.Namespace], None]:
    def run(arguments: argparse.Namespace) -> None:
        import_module(f"parsl_sizer.cli.{name}").run(arguments)

    return run


def _doctor(command: argparse.ArgumentParser) -> None:
    """It takes nothing but ``--json``."""


def _replay(command: argparse.ArgumentParser) -> None:
    _conditions(command)
    command.add_argument(
        "--strategy",
        default="auto",
        metavar="NAME",
        help="one of parsl-sizer strategies, with options as in percentile:p=50 (default: auto)",
    )
    command.add_argument(
        "--per-category", action="store_true", help="the figures of every category as well"
    )
    command.add_argument(
        "--nodes",
        type=_positive,
        metavar="N",
        help="also run the trace on N such nodes, all tasks submitted at once and any kind "
        "failing the attempt: makespan, utilisation and throughput",
    )


def _compare(command: argparse.ArgumentParser) -> None:
    _conditions(command)
    command.add_argument(
        "--strategies",
        action="append",
        metavar="A,B,...",
        help="only these, options as in --strategy; may be repeated (default: all)",
    )
    command.add_argument(
        "--png", metavar="FILE", help="draw the comparison (needs the extra 'plots')"
    )


def _conditions(command: argparse.ArgumentParser) -> None:
    """What `replay` and `compare` have in common."""
    command.add_argument("trace", metavar="TRACE", help="a CSV file, or - for standard input")
    command.add_argument(
        "--lag",
        type=_count,
        default=0,
        metavar="L",
        help="learn from a task only after L further ones were sized (default: 0)",
    )
    command.add_argument(
        "--ttf",
        type=_share,
        default=1.0,
        metavar="SHARE",
        help="when a failing attempt fails, as a share of the task's time (default: 1.0)",
    )
    command.add_argument(
        "--objective",
        choices=("waste", "throughput"),
        default="waste",
        help="what the strategies that can choose aim at (default: waste)",
    )
    command.add_argument(
        "--node",
        type=_node,
        default=NODE,
        metavar="KIND=AMOUNT,...",
        help="the largest node (default and for kinds left out: cores=16,memory=64GB,disk=64GB)",
    )
    command.add_argument(
        "--together",
        action="store_true",
        help="any kind that runs out fails the attempt for all (default: each kind by itself)",
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="S", help="for strategies that draw (default: 0)"
    )


def _generate(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "kind",
        metavar="KIND",
        choices=("uniform", "normal", "exponential", "bimodal", "trimodal", "phases", "linear"),
        help="uniform, normal, exponential, bimodal, trimodal, phases or linear",
    )
    command.add_argument(
        "--tasks", type=_positive, default=2000, metavar="N", help="how many (default: 2000)"
    )
    command.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="the same seed, the same trace (default: 0)",
    )
    command.add_argument(
        "-o", "--output", metavar="FILE", help="where to write it (default: standard output)"
    )
    command.add_argument(
        "--estimate",
        metavar="HOW",
        help="how users estimate memory: power2, power10, max:FACTOR or none "
        "(default: power2 for linear, else none)",
    )
    command.add_argument(
        "--categories", type=_positive, metavar="N", help="how many linear has (default: 5)"
    )
    command.add_argument(
        "--scale",
        type=_above_zero,
        metavar="FACTOR",
        help="of linear's memory; 1 is the paper's, 1 GB to 1 TB on average (default: 1/32)",
    )


def _strategies(command: argparse.ArgumentParser) -> None:
    """It takes nothing but what all commands take."""


def _count(text: str) -> int:
    return _whole(text, least=0)


def _positive(text: str) -> int:
    return _whole(text, least=1)


def _whole(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, {least} or more")
    return number


def _share(text: str) -> float:
    number = _number(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return number


def _above_zero(text: str) -> float:
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _node(text: str) -> Resources:
    try:
        amounts = parse_amounts(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    for kind, amount in amounts.items():
        least = {Kind.GPUS: 0.0, Kind.CORES: 1e-3}.get(kind, 1e6)
        if amount < least:
            given = text.strip()
            hint = "; a unit may be missing, as in 64GB" if least == 1e6 else ""
            raise argparse.ArgumentTypeError(f"{given!r} leaves no {kind.value} to run in{hint}")
    return NODE.updated(amounts)
