"""``parsl-sizer whatif``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.cli import main

Printed = Callable[..., Any]


@pytest.fixture
def archive(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "archive.sqlite3"
    assert main(["import", str(trace), "--archive", str(path)]) == 0
    capsys.readouterr()
    return path


def test_a_file_is_advised_on_category_by_category(printed: Printed, trace: Path) -> None:
    found = printed("whatif", trace)
    assert found["source"] == str(trace)
    assert found["refused"] == {}
    assert len(found["categories"]) == 3
    assert sum(advice["tasks"] for advice in found["categories"].values()) == 120
    for advice in found["categories"].values():
        assert advice["baseline"] == "largest peak"
        assert advice["low"] <= advice["saving"] <= advice["high"]
        assert all(len(point) == 3 for point in advice["curve"])
        assert advice["ladder"] == sorted(advice["ladder"])


def test_a_category_of_the_archive_is_the_same_as_in_the_file(
    printed: Printed, trace: Path, archive: Path
) -> None:
    in_file = printed("whatif", trace, "--category", "c1")["categories"]
    assert list(in_file) == ["c1"]
    assert printed("whatif", "c1", "--archive", archive)["categories"] == in_file


def test_people_get_advice_a_table_and_a_curve(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", "c1", "--archive", str(archive)]) == 0
    out = capsys.readouterr().out
    assert "tasks with peaks from" in out
    assert "\nAllocate " in out
    assert "less than the largest peak for every task" in out
    assert "with 90% confidence" in out
    assert "first allocation" in out
    assert out.count("★") == 1
    assert "█" in out
    assert "samples" not in out


def test_few_peaks_are_refused_with_their_number(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    few = tmp_path / "few.csv"
    few.write_text("category,memory_mb,time_s\n" + "align,100,1\n" * 7)
    assert "Category 'align' has 7 measured peaks" in refused("whatif", few)
    few.write_text("category,memory_mb,time_s\n" + "align,100,1\nsort,1,1\n" * 7)
    assert "None of the 2 categories" in refused("whatif", few)


def test_categories_with_few_peaks_do_not_hinder_the_others(
    printed: Printed, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with trace.open("a") as file:
        file.write("rare,,1,100,1,5,\n")
    found = printed("whatif", trace)
    assert len(found["categories"]) == 3
    assert "has 1 measured peak of memory" in found["refused"]["rare"]
    assert main(["whatif", str(trace)]) == 0
    assert "'rare' has 1 measured peak" in capsys.readouterr().err


def test_sampled_peaks_are_told_beside_the_advice(
    tmp_path: Path, printed: Printed, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.txt"
    rows = "".join(
        f"{number}\ta/{number}\tALIGN (x)\tCOMPLETED\t1m\t{1 + number % 3} GB\t8 GB\n"
        for number in range(40)
    )
    path.write_text("task_id\thash\tname\tstatus\trealtime\tpeak_rss\tmemory\n" + rows)
    assert main(["whatif", str(path)]) == 0
    out = capsys.readouterr().out
    assert "All peaks are the largest of some samples, so lower bounds" in out
    assert "less than what was allocated" in out
    advice = printed("whatif", path)["categories"]["ALIGN"]
    assert advice["sampled"] == 40


def test_nothing_larger_than_the_node_is_advised(
    trace: Path, printed: Printed, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = printed("whatif", trace)["categories"]["c1"]
    node = whole["largest"] * 0.99
    command = ["whatif", str(trace), "--category", "c1", "--node", f"memory={node:.0f}"]
    assert main(command) == 0
    assert "more than the node has, or " in capsys.readouterr().out
    advice = printed(*command)["categories"]["c1"]
    assert max(advice["ladder"]) <= node
    assert advice["too_large"] == whole["tasks"] - advice["tasks"] > 0


def test_the_curve_is_drawn(trace: Path, tmp_path: Path, printed: Printed) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "curve.png"
    printed("whatif", trace, "--png", path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_what_is_neither_a_file_nor_a_category_is_told(
    refused: Callable[..., str], archive: Path, tmp_path: Path, trace: Path
) -> None:
    assert "neither a file 'nope' nor" in refused("whatif", "nope", "--archive", archive)
    sentence = refused("whatif", "nope", "--category", "c1", "--archive", archive)
    assert "--category is for a file, and there is no file nope" in sentence
    assert "no task of category 'x'" in refused("whatif", trace, "--category", "x")
    page = tmp_path / "page.md"
    page.write_text("# Words\n")
    assert "none of the formats" in refused("whatif", page)
    assert "a unit may be missing" in refused("whatif", trace, "--node", "memory=64")
