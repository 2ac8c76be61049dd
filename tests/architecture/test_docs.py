"""The documentation holds together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    broken = [link for link in links if ":" not in link and not (page.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_page_of_the_docs_is_in_the_index(page: Path) -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert page.name == "index.md" or f"({page.name})" in index


def test_the_changelog_begins_with_what_is_not_released() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", changelog, flags=re.MULTILINE)[0] == "[Unreleased]"


def test_contributing_shows_every_folder_of_the_package_and_of_the_tests() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = [path.name for path in (ROOT / "parsl_sizer").iterdir() if path.is_dir()]
    tests = [f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if path.is_dir()]
    missing = [name for name in (*folders, *tests) if "__" not in name and name not in text]
    assert missing == []
