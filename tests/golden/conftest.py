"""Compare outputs with the recorded ones, whatever was renamed since; see README.md."""

from __future__ import annotations

import difflib
import json
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
INPUTS, EXPECTED, RENAMED = HERE / "inputs", HERE / "expected", HERE / "renamed.json"
HINT = "If this change is meant, run: make golden-update"
DIGITS = 6
"""Significant digits that numbers keep, so that versions of numpy and libm make no difference."""
TIMESTAMPS = range(1_700_000_000, 1_900_000_000)
"""Seconds since 1970 in this range are rounded to whole seconds instead."""
VOLATILE = {
    r'"seconds": [^,\n]+': '"seconds": "(measured)"',  # how long a replay took
    r"\d{4}-\d\d-\d\d, .+, \d+ cores, Python [\d.]+": "(date, machine)",  # of a benchmark
    r"The file has [\d.]+ .B\.": "The file has (some) bytes.",  # SQLite's versions differ
}
"""What differs between two runs of the same code: a pattern, and what is recorded instead."""


def renamed(name: str, text: str) -> str:
    """Put today's words into the recorded text of a file.

    All entries of the map are looked for at once, whole words, the longest first. An object in
    the map is for files whose names match its key only, and comes before the other entries.
    """
    entries: dict[str, Any] = json.loads(RENAMED.read_text(encoding="utf-8"))
    words = {old: new for old, new in entries.items() if isinstance(new, str)}
    for pattern, own in entries.items():
        if isinstance(own, dict) and fnmatch(name, pattern):
            words |= own
    if not words:
        return text
    longest_first = sorted(words, key=len, reverse=True)
    any_of_them = "|".join(_whole(word) for word in longest_first)
    return re.sub(any_of_them, lambda found: words[found[0]], text)


def _whole(word: str) -> str:
    before = r"(?<!\w)" if re.match(r"\w", word[0]) else ""
    after = r"(?!\w)" if re.match(r"\w", word[-1]) else ""
    return f"{before}{re.escape(word)}{after}"


def _recorded(path: Path) -> str:
    return renamed(path.name, path.read_text(encoding="utf-8"))


def pytest_configure(config: pytest.Config) -> None:
    """Before an update, put today's words into all that is recorded, and empty the map.

    The update may skip some cases, whose outputs then have today's words too. With pytest-xdist
    this happens once, before the workers start.
    """
    if config.getoption("--update-golden") and not hasattr(config, "workerinput"):
        for path in (*INPUTS.iterdir(), *EXPECTED.iterdir()):
            path.write_text(_recorded(path), encoding="utf-8")
        RENAMED.write_text("{}\n", encoding="utf-8")


class Golden:
    """The recorded inputs and outputs, in today's words."""

    def __init__(self, *, is_updated: bool) -> None:
        self._is_updated = is_updated

    def inputs(self) -> dict[str, str]:
        """Return the contents of the recorded inputs by the names of their files."""
        return {path.name: _recorded(path) for path in INPUTS.iterdir()}

    def check(self, name: str, output: Any) -> None:
        """Compare an output, a text or a value of JSON, with the recorded one, or record it."""
        path, is_json = EXPECTED / name, name.endswith(".json")
        text = _normal(dumped(output) if is_json else output)
        if self._is_updated:
            path.write_text(text, encoding="utf-8")
            return
        recorded = _recorded(path) if path.exists() else ""
        if is_json and recorded:
            recorded = dumped(json.loads(recorded))  # renamed keys are in their new order
        lines = [_compared(one) for one in (recorded, text)]
        if lines[0] != lines[1]:
            diff = difflib.unified_diff(*lines, f"recorded {name}", "now", lineterm="")
            pytest.fail("\n".join([*diff, HINT]), pytrace=False)

    def check_files(self, names: set[str]) -> None:
        """Check that each recorded output is of a case, or remove those that are of none."""
        unknown = {path.name for path in EXPECTED.iterdir()} - names
        if self._is_updated:
            for name in unknown:
                (EXPECTED / name).unlink()
        elif unknown:
            pytest.fail(
                f"No case has the output {', '.join(sorted(unknown))}. {HINT}", pytrace=False
            )


def dumped(value: Any) -> str:
    """Return a value as JSON with sorted keys; a list of plain values takes one line."""
    text = json.dumps(rounded(value), indent=1, sort_keys=True, ensure_ascii=False)
    return re.sub(r"\[\n\s+([^\[\]{}]*?)\n\s+\]", _in_one_line, text)


def _in_one_line(found: re.Match[str]) -> str:
    return "[" + re.sub(r",\n\s+", ", ", found[1]) + "]"


def rounded(value: Any) -> Any:
    """Return a value of JSON with rounded numbers."""
    if isinstance(value, float):
        return round(value) if int(value) in TIMESTAMPS else float(f"{value:.{DIGITS}g}") + 0.0
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def _normal(text: str) -> str:
    """Return a text without what is volatile, and without spaces at the ends of lines."""
    for pattern, instead in VOLATILE.items():
        text = re.sub(pattern, instead, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _compared(text: str) -> list[str]:
    """Return what matters of the lines: how wide a column is depends on the words in it."""
    narrow = re.sub(r" +", " ", re.sub(r"([-─━])\1{2,}", r"\1", text))
    return [line.strip(" ") for line in narrow.splitlines()]


@pytest.fixture(scope="session")
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return the recorded inputs and outputs."""
    return Golden(is_updated=request.config.getoption("--update-golden"))
