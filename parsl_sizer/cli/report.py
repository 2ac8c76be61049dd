"""``parsl-sizer report``: what a recorded run cost, for people, programs and browsers."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from parsl_sizer.archive.base import Query
from parsl_sizer.report.figures import as_json
from parsl_sizer.report.html import render
from parsl_sizer.report.overview import overview
from parsl_sizer.report.recorded import curves_of
from parsl_sizer.report.run_summary import summary_of

from .archives import opened, the_run
from .output import console, print_json, progress, say, ticking


def run(arguments: Namespace) -> None:
    with opened(arguments) as found:
        archive = found.archive
        line = the_run(arguments.run_id, found)
        with progress(line.run.run_id, line.attempts) as advance:
            entries = archive.entries(Query(run_id=line.run.run_id))
            summary = summary_of(line.run, ticking(entries, advance))
        curves = curves_of(summary, archive) if arguments.html else {}
    if arguments.html:
        page = Path(arguments.html)
        # What a name has that is no text must not keep the others from being read.
        page.write_text(render(summary, curves), encoding="utf-8", errors="backslashreplace")
        say(f"The page is in {page}.")
    if arguments.json:
        print_json(as_json(summary))
    elif not arguments.html:
        console().print(overview(summary))
