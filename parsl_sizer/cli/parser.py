"""The arguments of all commands, and what their help says."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn

from parsl_sizer.model import printable
from parsl_sizer.version import __version__

from . import archive_parser, profile_parser, values
from .archive_parser import Fill

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
  parsl-sizer profile
      how fast this machine computes, reads and writes, within half a minute

what earlier runs did is in an archive:
  search it            parsl-sizer history --category align --since 7d
  add other systems'   parsl-sizer import trace.txt
  what would be best   parsl-sizer whatif align
  why this allocation  parsl-sizer explain 17
  take it elsewhere    parsl-sizer export -o attempts.jsonl
  show a run           parsl-sizer report last --html run.html
  how long queues are  parsl-sizer waits --since 7d
  forget old runs      parsl-sizer prune --older-than 90d --dry-run
  show it to a team    parsl-sizer serve

An empty cell of a trace is unknown. 1 GB is 1000 MB. With --json every command prints
one JSON object. A fault in what you give is one sentence and exit status 2.
"""


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one sentence."""

    def parse_known_args(  # type: ignore[override]  # of its overloads one is used
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse what a command does not know here, where its own help can be named."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        sentence = printable(message.rstrip("."))
        print(f"{self.prog}: {sentence}; see {self.prog} --help.", file=sys.stderr)
        raise SystemExit(2)


class Command(NamedTuple):
    """What a command is good for, the arguments that it takes, and an example."""

    summary: str
    fill: Fill
    example: str


def command_line() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(
        prog="parsl-sizer",
        description="What would strategies for sizing tasks cost, and what did earlier runs do?",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"parsl-sizer {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="parsl-sizer")
    for name, (summary, fill, example) in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=f"example:\n  parsl-sizer {example}\n",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        fill(command)
        command.add_argument("--json", action="store_true", help="print one JSON object")
        command.set_defaults(run=_runner(name))
    return parser


def _runner(name: str) -> Callable[[argparse.Namespace], None]:
    module = MODULES.get(name, name)

    def run(arguments: argparse.Namespace) -> None:
        # Up to here `run` is what is called; for the command it is the run that the user named.
        arguments.run = getattr(arguments, "run_id", None)
        import_module(f"parsl_sizer.cli.{module}").run(arguments)

    return run


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
        type=values.positive,
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
        type=values.count,
        default=0,
        metavar="L",
        help="learn from a task only after L further ones were sized (default: 0)",
    )
    command.add_argument(
        "--ttf",
        type=values.share,
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
        type=values.node,
        default=values.NODE,
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
        "--tasks", type=values.positive, default=2000, metavar="N", help="how many (default: 2000)"
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
        "--categories", type=values.positive, metavar="N", help="how many linear has (default: 5)"
    )
    command.add_argument(
        "--scale",
        type=values.above_zero,
        metavar="FACTOR",
        help="of linear's memory; 1 is the paper's, 1 GB to 1 TB on average (default: 1/32)",
    )


def _strategies(command: argparse.ArgumentParser) -> None:
    """It takes nothing but what all commands take."""


COMMANDS = {
    "replay": Command(
        "what one strategy would have cost on a trace",
        _replay,
        "replay trace.csv --strategy auto --lag 32",
    ),
    "compare": Command(
        "all strategies on a trace, in one table and a picture",
        _compare,
        "compare trace.csv --png compare.png",
    ),
    "generate": Command(
        "make a trace of a known distribution",
        _generate,
        "generate trimodal --tasks 2000 --seed 1 -o trace.csv",
    ),
    "strategies": Command(
        "list the strategies, their papers and options", _strategies, "strategies"
    ),
    "doctor": Command(
        "what can be measured and limited on this machine, and why not",
        archive_parser.where,
        "doctor",
    ),
    "profile": Command(
        "measure what nodes can do, and tell which of them are alike",
        profile_parser.profile,
        "profile --config cluster.py",
    ),
    "import": Command(
        "add what other systems have logged to the archive",
        archive_parser.imports,
        "import trace.txt benchmarks/ --dry-run",
    ),
    "history": Command(
        "search the attempts and runs in the archive",
        archive_parser.history,
        "history --category align --ending exhausted --since 7d --memory 1GB..4GB",
    ),
    "whatif": Command(
        "what other allocations would have cost, and which to choose",
        archive_parser.whatif,
        "whatif align --node memory=128GB",
    ),
    "explain": Command(
        "all attempts of a task: what each was given and why, what it used, how it ended",
        archive_parser.explain,
        "explain 17",
    ),
    "report": Command(
        "what a run did and cost, as a page to keep",
        archive_parser.report,
        "report last --html run.html",
    ),
    "export": Command(
        "write attempts of the archive as lines of JSON, or as a trace",
        archive_parser.export,
        "export --category align --csv -o align.csv",
    ),
    "waits": Command(
        "how long blocks have waited in batch queues, and how long the next ones may",
        archive_parser.waits,
        "waits --since 7d",
    ),
    "prune": Command(
        "remove runs from the archive",
        archive_parser.prune,
        "prune --older-than 90d --dry-run",
    ),
    "serve": Command(
        "show the archive to a team, as pages for browsers and JSON for programs",
        archive_parser.serve,
        "serve --token-file token.txt",
    ),
}
MODULES = {"import": "import_files"}
"""The modules of commands whose names Python keeps for itself."""
