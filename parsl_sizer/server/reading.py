"""What can be read: runs and attempts, as pages and as JSON. Nothing here writes."""

from __future__ import annotations

from dataclasses import replace

from parsl_sizer.archive.base import Archive, Query, Run
from parsl_sizer.report.figures import Summary, as_json
from parsl_sizer.report.html import render
from parsl_sizer.report.plain import entry_json, run_json
from parsl_sizer.report.recorded import curves_of
from parsl_sizer.report.run_summary import summary_of

from .answer import Answer, Refused, json_answer, page
from .listing import listing
from .pages import runs_page
from .query import LONGEST, NAMES, Limit, fields, query_of
from .request import Request

LAST = "last"
"""Stands for the newest run."""
ON_A_PAGE = Limit(50, 1000)
RUNS, ATTEMPTS = Limit(100, 1000), Limit(1000, 10_000)


def page_of_runs(archive: Archive, name: str, request: Request) -> Answer:
    """The runs that are looked for, with a form to look for others."""
    query = query_of(request.query, ON_A_PAGE)
    lines = archive.runs(_with_one_more(query))
    asked = fields(request.query, NAMES)
    return page(runs_page(name, asked, lines, shown=query.last or 0, most=ON_A_PAGE.most))


def list_of_runs(archive: Archive, name: str, request: Request) -> Answer:
    """The runs that are looked for, as ``history --runs --json`` has them."""
    query = query_of(request.query, RUNS)
    lines = archive.runs(_with_one_more(query))
    return listing(name, "runs", map(run_json, lines), most=query.last or 0)


def list_of_attempts(archive: Archive, name: str, request: Request) -> Answer:
    """The attempts that are looked for, as ``history --json`` has them."""
    query = query_of(request.query, ATTEMPTS)
    entries = archive.entries(_with_one_more(query))
    return listing(name, "attempts", map(entry_json, entries), most=query.last or 0)


def page_of_run(archive: Archive, wanted: str, request: Request) -> Answer:
    """The page that ``report --html`` writes."""
    fields(request.query, ())
    summary = _summary(archive, wanted)
    return page(render(summary, curves_of(summary, archive)))


def report_of_run(archive: Archive, wanted: str, request: Request) -> Answer:
    """What ``report --json`` prints."""
    fields(request.query, ())
    return json_answer(as_json(_summary(archive, wanted)))


def _summary(archive: Archive, wanted: str) -> Summary:
    run = _run(archive, wanted)
    return summary_of(run, archive.entries(Query(run_id=run.run_id)))


def _run(archive: Archive, wanted: str) -> Run:
    if len(wanted) <= LONGEST and "\0" not in wanted:
        found = archive.runs(Query(run_id=wanted))
        if not found and wanted == LAST:
            found = archive.runs(Query(last=1))
        if found:
            return found[0].run
    raise Refused(404, f"There is no run {wanted!r:.80} here; /api/runs has those that there are.")


def _with_one_more(query: Query) -> Query:
    """To know whether there is more than is shown."""
    return replace(query, last=(query.last or 0) + 1)
