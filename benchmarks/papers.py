"""The tables and figures of the papers beside ours.

``python benchmarks/papers.py --only 001`` prints those of one paper: 000 is Phung et
al. (WORKS 2021), 001 Tovar et al. (TPDS 2018), 003 Witt et al. (HPCS 2019). The traces
are read from ``$PARSL_SIZER_DATA``; what has none is left out, with a sentence.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import papers_000
import papers_001
import papers_003
from printing import described
from rich.console import Console

TITLES = {
    "000": "Phung et al., Not All Tasks Are Created Equal, WORKS 2021",
    "001": "Tovar et al., A Job Sizing Strategy, TPDS 2018",
    "003": "Witt et al., Feedback-Based Resource Allocation, HPCS 2019",
}


def main() -> None:
    """Print the papers that were asked for, or all."""
    parser = argparse.ArgumentParser(description="The tables of the papers beside ours.")
    parser.add_argument("--only", choices=TITLES, help="only this paper")
    parser.add_argument(
        "--workflows",
        type=int,
        default=papers_003.WORKFLOWS,
        help="generated workflows of each type, in 003 (default: %(default)s; the paper has 100)",
    )
    asked = parser.parse_args()
    papers: dict[str, Callable[[], None]] = {
        "000": papers_000.main,
        "001": papers_001.main,
        "003": partial(papers_003.main, asked.workflows),
    }
    console = Console()
    console.print(described())
    for number, print_paper in papers.items():
        if asked.only in (None, number):
            console.rule(TITLES[number])
            print_paper()


if __name__ == "__main__":
    main()
