"""The worked example of docs/metrics.md is what the command prints."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from parsl_sizer.cli import main


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "metrics.md").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def replayed(
    page: str, folder: Path, capsys: pytest.CaptureFixture[str], *more: str
) -> dict[str, object]:
    [trace] = blocks(page, "csv")
    [command] = blocks(page, "sh")
    path = folder / "example.csv"
    path.write_text(trace)
    program, *arguments = shlex.split(command)
    assert program == "parsl-sizer"
    at = arguments.index("example.csv")
    assert main([*arguments[:at], str(path), *arguments[at + 1 :], *more]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def assert_has(found: Mapping[str, object], shown: Mapping[str, object]) -> None:
    """Everything shown was found, to the three digits that are shown."""
    for name, value in shown.items():
        if isinstance(value, dict):
            inner = found[name]
            assert isinstance(inner, dict)
            assert_has(inner, value)
        else:
            assert found[name] == pytest.approx(value, abs=0.0005), name


def test_what_is_shown_is_printed(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone, together = (json.loads(block) for block in blocks(page, "json"))
    found = replayed(page, tmp_path, capsys)
    assert_has(found, alone)
    memory = found["memory"]
    assert isinstance(memory, dict)
    assert set(alone["memory"]) == set(memory)
    assert_has(replayed(page, tmp_path, capsys, "--together"), together)


def test_a_kind_without_column_is_null(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = replayed(page, tmp_path, capsys)["disk"]
    assert isinstance(disk, dict)
    assert {name for name, value in disk.items() if value is None} == {
        *("used", "allocated", "waste", "fragmentation", "failed"),
        *("maq", "wrr", "ate", "throughput"),
    }
    assert {value for value in disk.values() if value is not None} == {0}


def test_the_arithmetic_of_the_page_is_right(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = replayed(page, tmp_path, capsys)["memory"]
    assert isinstance(memory, dict)
    example = page[page.index("## A worked example") :]
    rows = re.findall(r"^\| (\w+) \|.*\| (\d+) \|$", example, re.MULTILINE)
    assert len(rows) == 6
    for name, total in rows:
        assert memory[name] == float(total), name
    cells = re.findall(r"^\| (\w+) \|(.*·.*)\| (\d+) \|$", example, re.MULTILINE)
    assert len(cells) == 3
    for name, tasks, total in cells:
        products = (cell.split("·") for cell in tasks.split("|"))
        assert sum(
            float(first[0]) * float(first[1]) if len(first) == 2 else float(first[0] or 0)
            for first in products
            if "".join(first).strip()
        ) == float(total), name
    for name, value in re.findall(r"(MAQ|WRR|ATE|throughput) = [^.]*?= ([0-9.]+)$", example, re.M):
        assert memory[name.lower()] == pytest.approx(float(value), abs=0.0005)
