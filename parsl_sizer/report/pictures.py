"""The charts of a run's page, each with its figures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import charts
from .charts import Bar, Curve, Mark, Scale, Tick, Words
from .markup import Column, Document, chart, fold, key, table
from .phrases import duration, gb_h, memory, moment, plural, share, time_unit
from .sums import GB_H
from .text import number

FIRST_MARKS, LATER_MARKS = 3, 2
"""Allocations that are drawn into a distribution; the table below it has them all."""
MOST_DRAWN = 200
"""Points of a curve."""
AT_THE_END = "first allocation at the end"
FEW = 12
"""Rows of a table that stands for a curve."""

Point = tuple[float, float, float]
"""A first allocation in bytes, what would be reserved in byte-seconds, retries per task."""

QUANTILES = {
    "p5": "5 % had at most",
    "p25": "25 % had at most",
    "p50": "half had at most",
    "p75": "75 % had at most",
    "p95": "95 % had at most",
    "max": "the largest",
}


def peaks(document: Document, place: str) -> str:
    """How the peaks of the category at a place are distributed, and what was allocated."""
    category = document.at(place)
    found = category["peaks"]
    if found is None:
        return "<p>No task of it finished with a measured peak.</p>"
    marks = _marks(category["ladder"])
    bins, quantiles = found["bins"], found["quantiles"]
    ends = [bins[0]["least"], bins[-1]["most"], *(mark.value for mark in marks)]
    scale = charts.log_scale(ends)
    bars = [
        Bar(
            bin_["least"],
            bin_["most"],
            bin_["tasks"],
            f"{memory(bin_['least'])} to {memory(bin_['most'])}: {plural(bin_['tasks'], 'task')}",
        )
        for bin_ in bins
    ]
    description = (
        f"Half of the tasks had a peak of at most {memory(quantiles['p50'])}, 95 % of at most "
        f"{memory(quantiles['p95'])}, the largest {memory(quantiles['max'])}. "
        + " ".join(f"There is a line at {mark.label}." for mark in marks)
    )
    words = Words(place.replace(".", "-"), "Peaks of memory, and allocations", description)
    highest = plural(max(bin_["tasks"] for bin_ in bins), "task")
    picture = charts.histogram(words, bars, marks, scale, _memory_ticks(scale), highest)
    keys = [key("bar", "tasks by peak of memory")]
    keys += [key("first", "first allocation")] if category["ladder"]["first"]["rungs"] else []
    keys += [key("later", "allocation of a retry")] if category["ladder"]["later"]["rungs"] else []
    return chart(picture, *keys) + fold(
        "Peaks and allocations in figures",
        _quantiles(document, place),
        _rungs(document, place),
        _bins(document, place),
    )


def _marks(ladder: dict[str, Any]) -> list[Mark]:
    """The final allocation and the most frequent ones, no amount twice."""
    found: dict[str, Mark] = {}
    if ladder["final"] is not None:
        final = memory(ladder["final"])
        found[final] = Mark(ladder["final"], f"{AT_THE_END} {final}", "first")
    for role, which, most in (
        ("first", "first", FIRST_MARKS),
        ("retry", "later", FIRST_MARKS + LATER_MARKS),
    ):
        for rung in sorted(ladder[which]["rungs"], key=lambda rung: -rung["attempts"]):
            shown = memory(rung["memory"])
            drawn = found.get(shown)
            if drawn and drawn.style != which and "retry" not in drawn.label:
                before = drawn.label.removesuffix(f" {shown}").replace(" allocation", "")
                found[shown] = drawn._replace(label=f"{before}, retry {shown}")
            elif not drawn and len(found) < most and rung["memory"] > 0:
                found[shown] = Mark(rung["memory"], f"{role} {shown}", which)
    return list(found.values())


def _quantiles(document: Document, place: str) -> str:
    rows = [
        (label, document.figure(f"{place}.peaks.quantiles.{name}", memory))
        for name, label in QUANTILES.items()
    ]
    caption = "Peaks of memory of the tasks that finished"
    return table(caption, [Column("of the tasks", is_text=True), Column("peak")], rows)


def _rungs(document: Document, place: str) -> str:
    rows = []
    for which, role in (("first", "first attempt"), ("later", "retry")):
        path = f"{place}.ladder.{which}"
        for at in range(len(document.at(path)["rungs"])):
            rung = f"{path}.rungs.{at}"
            rows.append(
                (
                    document.figure(f"{rung}.memory", memory),
                    role,
                    document.figure(f"{rung}.attempts", "{:,}".format),
                    document.figure(f"{rung}.first_at", moment),
                )
            )
        others = document.at(path)["other_attempts"]
        if others:
            count = document.figure(f"{path}.other_attempts", "{:,}".format)
            rows.append(("other amounts", role, count, ""))
    if not rows:
        return ""
    columns = [Column("allocation"), Column("of a", is_text=True), Column("attempts")]
    caption = "Allocations in the order of their first use"
    return table(caption, [*columns, Column("first used")], rows)


def _bins(document: Document, place: str) -> str:
    rows = []
    for at, bin_ in enumerate(document.at(f"{place}.peaks.bins")):
        if bin_["tasks"]:
            path = f"{place}.peaks.bins.{at}"
            least = document.figure(f"{path}.least", memory)
            most = document.figure(f"{path}.most", memory)
            rows.append((f"{least} to {most}", document.figure(f"{path}.tasks", "{:,}".format)))
    return table("Tasks by peak", [Column("peak"), Column("tasks")], rows)


def _memory_ticks(scale: Scale) -> list[Tick]:
    return [Tick(value, memory(value)) for value in charts.round_numbers(scale)]


def course(document: Document, path: str) -> str:
    """Allocation against use over time."""
    found = document.at(path)
    if found is None:
        return "<p>When attempts ran was not recorded.</p>"
    step_s, allocated, used = found["step_s"], found["allocated"], found["used"]
    span_s = step_s * len(allocated)
    unit_s, unit = time_unit(span_s)
    across = Scale(0.0, span_s)
    ticks = [
        Tick(value * unit_s, f"{number(value)} {unit}")
        for value in charts.round_numbers(Scale(0.0, span_s / unit_s))
    ]
    heights = [Tick(value, memory(value)) for value in _heights(max(*allocated, *used))]
    description = (
        f"Over {duration(span_s)} the attempts held {memory(max(allocated))} at most, "
        f"and the peaks of those running came to {memory(max(used))} at most."
    )
    words = Words(path.replace(".", "-"), "Memory allocated and used over time", description)
    drawn = [
        Curve(_stairs(used, step_s), "used", is_filled=True, is_stepped=True),
        Curve(_stairs(allocated, step_s), "allocated", is_stepped=True),
    ]
    picture = charts.curves(words, drawn, across, ticks, heights)
    keys = key("line", "allocated"), key("area", "peaks of what was running")
    return chart(picture, *keys) + fold("Over time in figures", _course_table(document, path))


def _stairs(values: Sequence[float], step_s: float) -> list[tuple[float, float]]:
    steps = [(step_s * at, value) for at, value in enumerate(values)]
    return [*steps, (step_s * len(values), values[-1])]


def _course_table(document: Document, path: str) -> str:
    found = document.at(path)
    count = len(found["allocated"])
    rows = [
        (
            duration(at * found["step_s"]),
            document.figure(f"{path}.allocated.{at}", memory),
            document.figure(f"{path}.used.{at}", memory),
            document.figure(f"{path}.running.{at}", number),
        )
        for at in range(0, count, -(-count // FEW))
    ]
    columns = [Column("after"), Column("allocated"), Column("used"), Column("running")]
    step = duration(found["step_s"])
    return table(f"Means over steps of {step}; some of {count:,}", columns, rows)


def _heights(most: float) -> list[float]:
    """Round numbers from nothing to above the highest."""
    if most <= 0:
        return [0.0, 1.0]
    found = charts.round_numbers(Scale(0.0, most), 4)
    step = found[1] if len(found) > 1 else most
    return found if found[-1] >= most else [*found, found[-1] + step]


def what_if(name: str, label: str, points: Sequence[Point]) -> str:
    """What a category would have reserved, and retried, with other first allocations."""
    points = [*points[:: -(-len(points) // MOST_DRAWN)], points[-1]]
    scale = charts.log_scale([first for first, _, _ in points])
    parts = []
    for place, title, unit, shown in (
        (1, "Memory reserved", GB_H, gb_h),
        (2, "Retries per task", 1.0, number),
    ):
        values = [(point[0], point[place] / unit) for point in points]
        least = min(values, key=lambda value: value[1])
        description = (
            f"{title} by {label}, over the first allocation from {memory(values[0][0])} to "
            f"{memory(values[-1][0])}: least, {shown(least[1])}, at {memory(least[0])}."
        )
        heights = [Tick(value, shown(value)) for value in _heights(max(y for _, y in values))]
        words = Words(f"{name}-{place}", f"{title} over the first allocation", description)
        drawn = [Curve(values, "line")]
        picture = charts.curves(words, drawn, scale, _memory_ticks(scale), heights)
        parts.append(chart(picture, key("line", f"{title.lower()}, over the first allocation")))
    step = -(-len(points) // FEW)
    rows = [
        (memory(first), gb_h(reserved / GB_H), number(retries))
        for first, reserved, retries in points[::step]
    ]
    columns = [Column("first allocation"), Column("reserved"), Column("retries per task")]
    return "".join(parts) + fold("What if, in figures", table(label, columns, rows))


def efficiency(value: float | None) -> str:
    """How much of what was allocated was used."""
    return "efficiency not known" if value is None else f"{share(value)} of it used"
