"""What the package offers, and that it can be read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import parsl_sizer
from parsl_sizer.strategies.catalog import BUILT_IN, VARIANTS, Entry, family
from parsl_sizer.testing import SETTING

PUBLIC = {
    "Exhaustion",
    "Kind",
    "Outcome",
    "Part",
    "PerKind",
    "Predictor",
    "Proposal",
    "Resources",
    "ResourcesExhausted",
    "Scaling",
    "Setting",
    "SizedExecutor",
    "SizedPoolExecutor",
    "Sizing",
    "Split",
    "Strategy",
    "TaskInfo",
    "__version__",
    "profile_nodes",
    "register_joblib",
    "retry_handler",
    "sized",
    "sizing_of",
    "stage",
    "with_hints",
}
"""A name that is added here stays; one that goes is a breaking change for the changelog."""

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(Path(parsl_sizer.__file__).parent.rglob("*.py"))
FOLDERS = (".ci", "benchmarks", "docs", "examples", "parsl_sizer", "tests")


def texts() -> Iterator[tuple[Path, str]]:
    """Every file of the project that people read."""
    inside = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")))
    for path in (*ROOT.glob("*"), ROOT / ".pre-commit-config.yaml", *inside):
        if path.is_file() and path.suffix not in {".pyc", ".png"}:
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8", errors="replace")


def test_the_public_names_are_these() -> None:
    assert set(parsl_sizer.__all__) == PUBLIC
    assert set(dir(parsl_sizer)) == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_can_be_imported_and_is_documented(name: str) -> None:
    assert getattr(parsl_sizer, name).__doc__


def test_a_name_that_is_not_there_is_told_as_python_does() -> None:
    with pytest.raises(AttributeError, match="module 'parsl_sizer' has no attribute 'Guess'"):
        parsl_sizer.Guess  # noqa: B018


@pytest.mark.parametrize("path", MODULES, ids=lambda path: "/".join(path.parts[-2:]))
def test_a_module_opens_with_a_sentence(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, f"{path} has no docstring"
    assert re.search(r"[.?!:]$", docstring.split("\n\n")[0]), docstring.splitlines()[0]


@pytest.mark.parametrize("entry", BUILT_IN, ids=lambda entry: entry.name)
def test_a_strategy_of_the_catalog_can_be_built_and_says_what_it_does(entry: Entry) -> None:
    assert entry.summary.endswith(".")
    assert entry.summary != entry.name
    assert callable(family(entry.name, SETTING))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_of_the_papers_can_be_built(name: str) -> None:
    assert callable(family(name, SETTING))


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    own = {str(ROOT) + "/", str(Path.home()) + "/"}
    somebody = re.compile(r"(?<![\w.])/(?:home|root|Users|tmp|work)/[\w.]+")
    found = [
        f"{path}: {match}"
        for path, text in texts()
        for match in [*(p for p in own if p in text), *somebody.findall(text)]
    ]
    assert found == []


def test_building_and_testing_name_no_hosts() -> None:
    tools = {"Makefile", ".pre-commit-config.yaml", "pyproject.toml"}
    found = [
        str(path)
        for path, text in texts()
        if (path.name in tools or path.parts[0] == ".ci") and "://" in text
    ]
    assert found == []
