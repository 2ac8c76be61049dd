"""A picture of a comparison."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from parsl_sizer.model import Attempt, Ending, Kind, Outcome, Resources, TaskInfo, Usage
from parsl_sizer.report import Metrics, Result, Standing, plot, standings

NODE = Resources(cores=16, memory=64e9, disk=64e9)
PNG = b"\x89PNG\r\n"


def ranked(*names: str, time_s: float = 3600.0) -> list[Standing]:
    results = []
    for size, name in enumerate(names, start=4):
        metrics = Metrics(NODE)
        peak = {Kind.MEMORY: 3e9}
        attempt = Attempt(TaskInfo(1, "align"), 1, {Kind.MEMORY: size**2 * 1e9})
        outcome = Outcome(attempt, Ending.DONE, usage=Usage(peak, time_s))
        metrics.add(peak, time_s, [outcome])
        results.append(Result(name, metrics))
    return standings(results)


def test_a_picture_is_drawn_whatever_the_names_are(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "compare.anything"
    plot.bars(ranked("doubling", "cost $\\frac", "流れ", "x" * 500), "$ a title \\frac", path)
    assert path.read_bytes().startswith(PNG)


def test_a_picture_without_any_waste_can_be_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot.bars(ranked("doubling", time_s=0.0), "no time", tmp_path / "none.png")
    assert (tmp_path / "none.png").read_bytes().startswith(PNG)


def test_more_strategies_make_a_taller_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    def height(*names: str) -> int:
        path = tmp_path / "p.png"
        plot.bars(ranked(*names), "t", path)
        return int.from_bytes(path.read_bytes()[20:24], "big")

    assert height("a", "b", "c", "d") > height("a")


def test_without_matplotlib_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(plot.PlotsMissing, match=r'pip install "parsl_sizer\[plots\]"'):
        plot.check()
