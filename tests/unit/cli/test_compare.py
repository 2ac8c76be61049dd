"""``parsl-sizer compare``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.cli import main
from parsl_sizer.cli.compare import everything, named
from parsl_sizer.strategies.catalog import BUILT_IN, VARIANTS

Printed = Callable[..., Any]

FEW = "whole-machine,percentile:p=50,oracle,doubling"


def test_strategies_come_least_waste_first_with_the_best_marked(
    printed: Printed, trace: Path
) -> None:
    found = printed("compare", trace, "--strategies", FEW)
    assert (found["tasks"], found["kind"], found["left_out"]) == (120, "memory", {})
    ranked = found["strategies"]
    wastes = [entry["memory"]["waste"] for entry in ranked]
    assert wastes == sorted(wastes)
    assert ranked[0]["strategy"] == "oracle"
    assert [entry["limit"] for entry in ranked] == [True, False, False, False]
    assert [entry["best"] for entry in ranked] == [False, True, False, False]
    assert found["best"] == ranked[1]["strategy"]
    assert ranked[1]["relative_waste"] == 1.0
    assert all(entry["seconds"] > 0 for entry in ranked)


def test_each_has_the_figures_of_replay(printed: Printed, trace: Path) -> None:
    conditions = ("--lag", 7, "--ttf", 0.5, "--node", "memory=50GB", "--together")
    [entry] = printed("compare", trace, "--strategies", "doubling", *conditions)["strategies"]
    alone = printed("replay", trace, "--strategy", "doubling", *conditions)
    for name in ("tasks", "attempts", "retries", "exhausted", "memory", "cores", "disk"):
        assert entry[name] == alone[name]
    assert entry["retries_per_task"] == alone["retries"] / alone["tasks"]


def test_a_comma_separates_strategies_and_options() -> None:
    assert named(["a,b:x=1,y=2,c", "d:z=3", "e=4"]) == ["a", "b:x=1,y=2", "c", "d:z=3,e=4"]
    assert named([" a , a,", "percentile 50,b"]) == ["a", "percentile 50", "b"]


@pytest.mark.parametrize("label", VARIANTS)
def test_the_papers_names_can_be_given(label: str) -> None:
    assert named([label]) == [label]


def test_by_default_every_strategy_and_variant_is_there_once() -> None:
    specs = [VARIANTS.get(name, name) for name in everything()]
    assert len(set(specs)) == len(specs)
    assert {spec.partition(":")[0] for spec in specs} == {entry.name for entry in BUILT_IN}
    assert set(VARIANTS.values()) <= set(specs)
    assert "percentile" not in specs  # it is percentile 95
    assert "greedy-bucketing" in specs  # its variant draws no more


def test_people_get_a_table_and_the_best_by_name(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(trace), "--strategies", FEW]) == 0
    out, error = capsys.readouterr()
    assert out.splitlines()[0] == f"{trace}: 120 tasks, 4 strategies"
    assert "oracle (the limit)" in out
    [best] = [line for line in out.splitlines() if line.startswith("★ ") and "least" not in line]
    assert out.splitlines()[-1] == f"★ least memory waste: {best.split()[1]}"
    assert error == ""


def test_a_picture_is_drawn(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "out.png"
    assert main(["compare", str(trace), "--strategies", FEW, "--png", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.endswith(f"Drawn in {path}.\n")


def test_a_picture_that_cannot_be_drawn_is_told_before_the_work(
    refused: Callable[..., str],
    trace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "Cannot draw" in refused("compare", trace, "--png", tmp_path)
    assert "Cannot draw" in refused("compare", trace, "--png", tmp_path / "absent" / "out.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "needs matplotlib" in refused("compare", trace, "--png", tmp_path / "out.png")


def test_impossible_rows_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "large.csv"
    path.write_text("category,memory_mb,time_s\na,99000,1\na,5,1\n")
    assert main(["compare", str(path), "--strategies", FEW]) == 0
    assert capsys.readouterr().err.count("Impossible") == 1


def test_a_trace_without_memory_is_compared_by_what_it_has(
    printed: Printed, tmp_path: Path
) -> None:
    path = tmp_path / "cores.csv"
    path.write_text("category,cores,time_s\na,3,10\na,5,10\n")
    found = printed("compare", path, "--strategies", FEW)
    assert found["kind"] == "cores"
    assert found["strategies"][0]["strategy"] == "oracle"


@pytest.mark.usefixtures("plugins")
def test_what_is_installed_but_broken_is_left_out_and_told(
    printed: Printed, tmp_path: Path
) -> None:
    path = tmp_path / "short.csv"
    path.write_text("category,memory_mb,time_s\na,5,1\na,7,1\n")
    found = printed("compare", path)
    assert {"absent", "unmakeable"} <= set(found["left_out"])
    assert "not today" in found["left_out"]["unmakeable"]
    names = {entry["strategy"] for entry in found["strategies"]}
    assert {"raising", "nonsense", "steady", "doubling", "oracle"} <= names


@pytest.mark.usefixtures("plugins")
def test_what_was_asked_for_but_is_broken_is_an_error(
    refused: Callable[..., str], trace: Path
) -> None:
    assert "not today" in refused("compare", trace, "--strategies", "doubling,unmakeable")


@pytest.mark.parametrize(
    ("strategies", "sentence"),
    [
        ("doubling,nope", "No strategy is called 'nope'"),
        (",", "names no strategy"),
        ("percentile:p=50,q=3", "it takes p"),
    ],
)
def test_strategies_that_are_not_there_are_told_before_the_work(
    refused: Callable[..., str], trace: Path, strategies: str, sentence: str
) -> None:
    assert sentence in refused("compare", trace, "--strategies", strategies)
