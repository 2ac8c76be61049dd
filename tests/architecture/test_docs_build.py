"""The documentation is built without a warning and shows every public name."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from parsl_sizer import SizedExecutor

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
DOCUMENTED = ("archive", "executor", "model", "sizing", "strategies", "testing")
"""Packages whose public names are all in the reference."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as people read it."""
    folder = tmp_path_factory.mktemp("site")
    strict = ("-W", "--keep-going", "-q", "-d", folder / "doctrees")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-b", "html", *strict, DOCS, folder / "html"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (built.returncode, built.stderr) == (0, "")
    return folder / "html"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_is_built_and_has_a_title(site: Path, page: Path) -> None:
    built = (site / page.relative_to(DOCS)).with_suffix(".html")
    assert "<h1>" in built.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_reference_has_every_public_name_of_a_package(site: Path, name: str) -> None:
    package = importlib.import_module(f"parsl_sizer.{name}")
    public = {f"parsl_sizer.{name}.{public}" for public in package.__all__}
    assert public - indexed(site) == set()


def test_the_table_of_arguments_has_every_argument_of_the_executor() -> None:
    _, _, section = (inspect.getdoc(SizedExecutor) or "").partition("Parameters\n----------\n")
    documented = [line for line in section.splitlines() if line and not line.startswith(" ")]
    _, *arguments = inspect.signature(SizedExecutor.__init__).parameters
    assert documented == arguments


def indexed(site: Path) -> set[str]:
    """What the site's index has: an inventory is four lines of header, then compressed lines."""
    *_, compressed = (site / "objects.inv").read_bytes().split(b"\n", 4)
    return {line.split()[0] for line in zlib.decompress(compressed).decode().splitlines()}
