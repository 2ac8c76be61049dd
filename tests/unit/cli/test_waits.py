"""`parsl-sizer waits`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.archive import Wait
from parsl_sizer.archive.open import open_archive
from parsl_sizer.cli import main
from parsl_sizer.scaling import Geometry

DAY = 86400.0
LARGE, SMALL = Geometry(4, 28, 64e9, "batch"), Geometry(1, 1)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive.sqlite3"
    opened = open_archive(path)
    now = time.time()
    waits = [Wait("a", "slurm one", LARGE, now - days * DAY, 200.0 + days) for days in (9, 3, 2, 1)]
    waits.append(Wait("b", "slurm one", LARGE, now, 900.0, at_most=True))
    waits.append(Wait("b", "pbs", SMALL, now, 20.0))
    opened.record_waits(waits)
    opened.close()
    return path


def test_each_shape_has_a_line(printed: Callable[..., Any], archive: Path) -> None:
    found = printed("waits", "--archive", archive)["waits"]
    assert [(line["place"], line["nodes"], line["seen"]) for line in found] == [
        ("pbs", 1, 1),
        ("slurm one", 4, 5),
    ]
    large = found[1]
    assert large["median_s"] == 202.5
    assert large["longest_s"] == 209.0
    assert large["last_s"] == 900.0
    assert large["expected_s"] == 200.0
    assert large["probability"] > 0.9
    assert (large["queue"], large["memory_per_node"]) == ("batch", 64e9)


def test_they_can_be_chosen(printed: Callable[..., Any], archive: Path) -> None:
    found = printed("waits", "--place", "slurm one", "--since", "60h", "--archive", archive)
    assert [line["seen"] for line in found["waits"]] == [3]


def test_people_see_a_table(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["waits", "--archive", str(archive)]) == 0
    out = capsys.readouterr().out
    assert "4 x 28 cores, 64 GB, batch" in out
    assert "3.3 min (" in out
    assert "< 15.0 min" in out


def test_an_archive_without_waits_says_where_they_come_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_archive(tmp_path / "new.sqlite3").close()
    assert main(["waits", "--archive", str(tmp_path / "new.sqlite3")]) == 0
    assert 'scaling="asa"' in capsys.readouterr().err
