"""Who may import whom, and what is loaded when."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import parsl_sizer

PURE = ("model", "strategies", "placement", "scaling", "sizing", "simulator", "report")
PACKAGE = Path(parsl_sizer.__file__).parent


def loaded_by(*modules: str) -> set[str]:
    """The top-level packages that a new interpreter has loaded after importing `modules`."""
    code = (
        "import importlib, json, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stdout))


def modules_in(folder: str) -> list[str]:
    paths = sorted((PACKAGE / folder).rglob("*.py"))
    return [
        ".".join(
            (parsl_sizer.__name__, *path.relative_to(PACKAGE).with_suffix("").parts)
        ).removesuffix(".__init__")
        for path in paths
    ]


def test_the_arrows_point_down_and_deciding_is_pure(root: Path) -> None:
    code = (
        "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_importing_the_package_loads_neither_parsl_nor_numpy() -> None:
    assert not loaded_by("parsl_sizer") & {"parsl", "numpy", "psutil", "rich", "matplotlib"}


@pytest.mark.parametrize("package", ["model", "strategies", "sizing", "strategies.catalog"])
def test_importing_what_is_needed_live_loads_no_numpy(package: str) -> None:
    assert not loaded_by(f"parsl_sizer.{package}") & {"parsl", "numpy", "psutil"}


@pytest.mark.parametrize("package", PURE)
def test_no_module_of_a_pure_package_loads_what_acts(package: str) -> None:
    assert not loaded_by(*modules_in(package)) & {"parsl", "psutil", "sqlite3", "psycopg"}
