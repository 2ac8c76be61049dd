"""What the tests of the commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.cli import main
from parsl_sizer.simulator.generate import generate
from parsl_sizer.simulator.trace import write

Printed = Callable[..., Any]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """Runs a command with --json and gives what it printed."""

    def run(*arguments: object) -> Any:
        assert main([*map(str, arguments), "--json"]) == 0
        return json.loads(capsys.readouterr().out, parse_constant=_not_json)

    return run


def _not_json(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that must fail and gives its one sentence."""

    def run(*arguments: object) -> str:
        assert main([*map(str, arguments)]) == 2
        out, error = capsys.readouterr()
        assert out == ""
        assert error.count("\n") == 1
        assert error.startswith("parsl-sizer")
        assert error.endswith((".\n", "?\n"))
        assert "Traceback" not in error
        return error

    return run


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """120 tasks of three categories."""
    path = tmp_path / "trace.csv"
    with path.open("w", newline="") as file:
        write(generate("trimodal", 120, 1), file)
    return path


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of somebody else's with a strategy for every way to fail."""
    folder = tmp_path / "plugins"
    info = folder / "somebody-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[parsl_sizer.strategies]\n"
        "absent = somebody_absent:build\n"
        "unmakeable = somebody_strategies:unmakeable\n"
        "raising = somebody_strategies:raising\n"
        "nonsense = somebody_strategies:nonsense\n"
        "steady = somebody_strategies:steady\n"
    )
    (folder / "somebody_strategies.py").write_text(
        "from parsl_sizer import PerKind, Predictor\n"
        "class Fixed(Predictor):\n"
        "    def __init__(self, amount): self.amount = amount\n"
        "    def predict(self, task, largest): return self.amount * largest\n"
        "class Raising(Predictor):\n"
        "    def predict(self, task, largest): raise RuntimeError('no idea')\n"
        "def made(setting, predictor):\n"
        "    return lambda category: PerKind.of(setting.kinds, lambda kind: predictor)\n"
        "def unmakeable(setting): raise RuntimeError('not today')\n"
        "def raising(setting):\n"
        "    'Raises whatever it is asked.'\n"
        "    return made(setting, Raising())\n"
        "def nonsense(setting): return made(setting, Fixed(float('nan')))\n"
        "def steady(setting, *, share=0.9, of=object): return made(setting, Fixed(share))\n"
    )
    monkeypatch.syspath_prepend(str(folder))
