"""``parsl-sizer generate``: a trace of a known distribution."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from parsl_sizer.model import SizerError
from parsl_sizer.simulator import Row
from parsl_sizer.simulator.generate import generate
from parsl_sizer.simulator.trace import as_cells, write

from .output import print_json, progress, say, ticking


def run(arguments: Namespace) -> None:
    rows = _rows(arguments)
    facts = {"kind": arguments.kind, "tasks": arguments.tasks, "seed": arguments.seed}
    if arguments.output is None:
        if arguments.json:
            _print_rows(facts, rows)
        else:
            write(rows, sys.stdout)
        return
    with (
        Path(arguments.output).open("w", encoding="utf-8", newline="") as file,
        progress(f"{arguments.kind} tasks", arguments.tasks) as advance,
    ):
        write(ticking(rows, advance), file)
    if arguments.json:
        print_json(facts | {"output": arguments.output})
    else:
        say(f"Wrote {arguments.tasks:,} tasks to {arguments.output}.")


def _rows(arguments: Namespace) -> Iterator[Row]:
    options = {}
    for name in ("categories", "scale"):
        value = getattr(arguments, name)
        if value is None:
            continue
        if arguments.kind != "linear":
            raise SizerError(f"--{name} is an option of linear, not of {arguments.kind}.")
        options[name] = value
    try:
        return generate(
            arguments.kind, arguments.tasks, arguments.seed, estimate=arguments.estimate, **options
        )
    except ValueError as error:
        raise SizerError(f"Cannot generate a trace: {error}.") from None


def _print_rows(facts: dict[str, object], rows: Iterator[Row]) -> None:
    """One JSON object, written row by row: a trace may be larger than memory."""
    print(json.dumps(facts)[:-1] + ', "rows": [', end="")
    for number, row in enumerate(rows):
        print(",\n" if number else "\n", json.dumps(as_cells(row)), sep="", end="")
    print("\n]}")
