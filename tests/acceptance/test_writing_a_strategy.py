"""What docs/writing-a-strategy.md and its example promise."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from parsl_sizer import testing
from parsl_sizer.model import UnknownStrategy
from parsl_sizer.strategies import Setting, catalog

ENTRY_POINTS = """\
[parsl_sizer.strategies]
recent-maximum = own_strategy:build
auto = own_strategy:build
"""


def page(root: Path) -> str:
    return (root / "docs" / "writing-a-strategy.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_runs_and_keeps_the_laws(root: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page(root), flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    scope: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, "docs/writing-a-strategy.md", "exec"), scope)
    assert "check_strategy" in scope


def test_the_page_lists_every_law(root: Path) -> None:
    listed = re.findall(r"^\| `(check_\w+)`", page(root), flags=re.MULTILINE)
    assert listed == [law.__name__ for law in testing.LAWS]


def test_the_example_prints_a_table_with_its_strategy(root: Path) -> None:
    ran = subprocess.run(
        [sys.executable, root / "examples" / "own_strategy.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    for name in ("recent-maximum", "whole-machine", "doubling", "MAQ"):
        assert name in ran.stdout


def test_a_strategy_that_is_registered_is_found_by_name_with_its_options(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "own_strategy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own_strategy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(root / "examples"))

    entry = catalog.entries()["recent-maximum"]
    assert entry.paper == "own_strategy"
    assert entry.summary.startswith("The largest of the last peaks")
    assert catalog.entries()["auto"].target == "parsl_sizer.strategies.auto:build"
    testing.check_propose_is_pure("recent-maximum:last=5")
    with pytest.raises(UnknownStrategy, match="it takes last"):
        catalog.family("recent-maximum:first=5", Setting())
