"""Every Python block of the README and the docs compiles; those marked ``<!-- run -->`` run.

The marked blocks of a page are one program, in the order of the page. It runs in an empty
folder, as a user's script would. Of a block marked ``<!-- prints -->`` the lines without
a digit are in what the program prints: figures differ from run to run, words do not.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?P<mark><!-- run -->\n+)?^```python\n(?P<code>.*?)^```$", flags=re.DOTALL | re.MULTILINE
)
ANY_PYTHON = re.compile(r"^\s*[`~]{3,}\s*(?:\{[\w-]+\}\s*)?py", flags=re.MULTILINE)
PRINTED = re.compile(r"^<!-- prints -->\n+```text\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
PATIENCE_S = 300


@dataclass(frozen=True)
class Block:
    """A block of Python on a page."""

    page: str
    line: int
    code: str
    runs: bool

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    name = str(page.relative_to(ROOT))
    return [
        Block(
            page=name,
            line=text.count("\n", 0, found.start("code")),
            code=found["code"],
            runs=found["mark"] is not None,
        )
        for found in BLOCK.finditer(text)
    ]


BLOCKS = {str(page.relative_to(ROOT)): blocks(page) for page in PAGES}
PROGRAMS = {
    page: [block for block in found if block.runs]
    for page, found in BLOCKS.items()
    if any(block.runs for block in found)
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_python_is_written_in_a_way_that_is_not_checked(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = BLOCKS[str(page.relative_to(ROOT))]
    assert len(ANY_PYTHON.findall(text)) == len(found)
    assert text.count("<!-- run -->") == sum(block.runs for block in found)
    assert text.count("<!-- prints -->") == len(PRINTED.findall(text))
    assert any(block.runs for block in found) or "<!-- prints -->" not in text


@pytest.mark.parametrize("block", [block for found in BLOCKS.values() for block in found], ids=str)
def test_a_block_of_python_compiles(block: Block) -> None:
    compile("\n" * block.line + block.code, block.page, "exec")


@pytest.mark.parametrize("page", PROGRAMS)
def test_the_marked_blocks_of_a_page_run(page: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("\n\n".join(block.code for block in PROGRAMS[page]), encoding="utf-8")
    log = tmp_path / "output.txt"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-W", "error::SyntaxWarning", script.name],
            cwd=tmp_path,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(PATIENCE_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    printed = log.read_text(encoding="utf-8", errors="replace")
    assert status == 0, printed
    lines = {flat(line) for line in printed.splitlines()}
    assert [line for line in words_printed(page) if line not in lines] == [], printed


def words_printed(page: str) -> list[str]:
    """The lines without a digit that a page says its program prints."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [flat(line) for block in PRINTED.findall(text) for line in block.splitlines()]
    return [line for line in lines if line and not re.search(r"\d", line)]


def flat(line: str) -> str:
    return " ".join(line.split())
