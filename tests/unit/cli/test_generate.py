"""``parsl-sizer generate``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.cli import main
from parsl_sizer.cli.parser import command_line
from parsl_sizer.model import Kind
from parsl_sizer.simulator import read
from parsl_sizer.simulator.generate import KINDS, generate

Printed = Callable[..., Any]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_what_the_library_generates(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    assert main(["generate", kind, "--tasks", "40", "--seed", "5", "-o", str(path)]) == 0
    rows, expected = list(read(path)), list(generate(kind, 40, 5))
    assert [row.task for row in rows] == [row.task for row in expected]
    assert [row.time_s for row in rows] == [row.time_s for row in expected]
    for row, other in zip(rows, expected, strict=True):
        assert row.peak == pytest.approx(dict(other.peak))


def test_without_a_file_it_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "normal", "--tasks", "3"]) == 0
    out, error = capsys.readouterr()
    assert out.startswith("category,input_size,cores,memory_mb,disk_mb,time_s,user_memory_mb\nc1,")
    assert out.count("\n") == 4
    assert error == ""


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in "abc")
    for path, seed in ((first, 1), (second, 1), (third, 2)):
        assert (
            main(["generate", "linear", "--tasks", "9", "--seed", f"{seed}", "-o", f"{path}"]) == 0
        )
    assert first.read_bytes() == second.read_bytes() != third.read_bytes()


def test_json_has_the_rows_or_where_they_are(printed: Printed, tmp_path: Path) -> None:
    found = printed("generate", "bimodal", "--tasks", 4, "--seed", 2)
    rows = found.pop("rows")
    assert found == {"kind": "bimodal", "tasks": 4, "seed": 2}
    assert len(rows) == 4
    assert rows[0]["cores"] == 4
    assert rows[0]["input_size"] is None
    path = tmp_path / "trace.csv"
    found = printed("generate", "bimodal", "--tasks", 4, "--seed", 2, "-o", path)
    assert found["output"] == str(path)
    assert [row["category"] for row in rows] == [row.task.category for row in read(path)]


def test_linear_has_its_options(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    options = ["--categories", "2", "--scale", "1", "--estimate", "max:1.5"]
    assert main(["generate", "linear", "--tasks", "50", *options, "-o", str(path)]) == 0
    rows = list(read(path))
    assert {row.task.category for row in rows} == {"t1", "t2"}
    for category in ("t1", "t2"):
        mine = [row for row in rows if row.task.category == category]
        largest = max(row.peak[Kind.MEMORY] for row in mine)
        [asked] = {row.task.requested[Kind.MEMORY] for row in mine}
        assert asked == pytest.approx(1.5 * largest, rel=1e-6)


def test_the_parser_knows_the_kinds_of_the_library() -> None:
    for kind in KINDS:
        assert command_line().parse_args(["generate", kind]).kind == kind


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["zipf"], "invalid choice: 'zipf'"),
        (["normal", "--tasks", "0"], "'0' is not a whole number, 1 or more"),
        (["normal", "--tasks", "many"], "'many' is not a whole number"),
        (["normal", "--seed", "x"], "invalid int value"),
        (["normal", "--categories", "3"], "--categories is an option of linear, not of normal"),
        (["normal", "--scale", "3"], "--scale is an option of linear, not of normal"),
        (["linear", "--scale", "0"], "'0' is not a number above 0"),
        (["linear", "--estimate", "guess"], "estimate must be none, power2, power10 or max:FACTOR"),
        (["normal", "-o", "/absent/trace.csv"], "Cannot write /absent/trace.csv: no such file"),
    ],
)
def test_what_cannot_be_generated_is_told(
    refused: Callable[..., str], arguments: list[str], sentence: str
) -> None:
    assert sentence in refused("generate", *arguments)
