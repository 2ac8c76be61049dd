"""Results as tables for people."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.report import Metrics, Result, standings
from parsl_sizer.report.text import category_table, compare_table, replay_table, shortened

NODE = Resources(cores=16, memory=64e9, disk=64e9)


def shown(table: RenderableType) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=120).print(table)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def metrics(*categories: str, allocation: float = 4e9) -> Metrics:
    found = Metrics(NODE, per_category=True)
    peak = {Kind.MEMORY: 3e9}
    for category in categories:
        attempt = Attempt(TaskInfo(1, category), 1, {Kind.MEMORY: allocation})
        outcome = Outcome(attempt, Ending.DONE, usage=Usage(peak, 3600.0))
        found.add(peak, 3600.0, [outcome], category=category)
    return found


def test_a_replay_has_a_row_per_measure_and_a_column_per_kind() -> None:
    lines = shown(replay_table(metrics("align")))
    assert lines[0].split() == ["memory", "cores", "disk"]
    assert "used                                  3 GB·h      –     –" in lines
    assert any(line.split() == ["tasks", "1", "0", "0"] for line in lines)


def test_a_category_has_a_row_and_a_long_name_is_shortened() -> None:
    name = "x" * 10_000
    lines = shown(category_table(metrics(name, "[red]流れ[/red]\n", "").categories, Kind.MEMORY))
    assert len(lines) == 4
    assert max(map(len, lines)) < 120
    assert any(line.startswith("x" * 39 + "…") for line in lines)
    assert any(line.startswith("[red]流れ[/red]") for line in lines)
    assert any(line.startswith("(none)") for line in lines)


def test_categories_without_the_kind_are_left_out() -> None:
    assert len(shown(category_table(metrics("align").categories, Kind.DISK))) == 1


def test_a_comparison_marks_the_best_and_the_limit() -> None:
    ranked = standings(
        [
            Result("whole[bold]", metrics("a", allocation=64e9)),
            Result("close", metrics("a")),
            Result("oracle", metrics("a", allocation=3e9), is_limit=True),
        ]
    )
    header, oracle, close, whole = shown(compare_table(ranked))
    assert header.split()[:3] == ["strategy", "memory", "waste"]
    assert oracle.split()[:4] == ["oracle", "(the", "limit)", "0"]
    assert close.split()[:2] == ["★", "close"]
    assert whole.split()[0] == "whole[bold]"


def test_an_empty_comparison_can_be_shown() -> None:
    assert len(shown(compare_table([]))) == 1


def test_a_name_is_one_line() -> None:
    assert shortened("a\n\tb") == "a b"
