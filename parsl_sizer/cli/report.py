"""``parsl-sizer report``: what a recorded run cost, for people, programs and browsers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from parsl_sizer.archive.base import Archive, Query, RunLine
from parsl_sizer.model import SizerError
from parsl_sizer.report.figures import as_json
from parsl_sizer.report.html import render
from parsl_sizer.report.overview import overview
from parsl_sizer.report.recorded import curves_of
from parsl_sizer.report.run_summary import summary_of

from .archives import opened
from .output import console, print_json, progress, say, ticking

LAST = "last"
SUGGESTED = 3


class UnknownRun(SizerError):
    """No run of that name, or several; the message says which there are."""


def run(arguments: Namespace) -> None:
    with opened(arguments) as found:
        archive = found.archive
        line = _chosen(arguments.run_id, archive, found.name)
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


def _chosen(wanted: str, archive: Archive, place: str) -> RunLine:
    """The run that is meant by its name, by the beginning of its name, or as the last."""
    lines = archive.runs(Query(last=1) if wanted == LAST else Query())
    if not lines:
        raise UnknownRun(f"There is no run in the archive {place} yet.")
    if wanted == LAST:
        return lines[0]
    exact = [line for line in lines if line.run.run_id == wanted]
    found = exact or [line for line in lines if line.run.run_id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownRun(
            f"{wanted!r} is the beginning of {len(found):,} runs: {_listed(found)}; "
            "write more of it."
        )
    names = [line.run.run_id for line in lines]
    close = get_close_matches(wanted, names, n=SUGGESTED, cutoff=0.5)
    if close:
        raise UnknownRun(f"There is no run {wanted!r}; did you mean {' or '.join(close)}?")
    raise UnknownRun(f"There is no run {wanted!r}; the newest are {_listed(lines)}.")


def _listed(lines: Sequence[RunLine]) -> str:
    listed = ", ".join(line.run.run_id for line in lines[:SUGGESTED])
    return f"{listed}, …" if len(lines) > SUGGESTED else listed
