"""Every command, the server, a run's page and the benchmarks print what they have printed.

README.md says how to go on if one of these tests fails.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest

from parsl_sizer.archive.base import Wait
from parsl_sizer.archive.open import open_archive
from parsl_sizer.cli import main
from parsl_sizer.cli.parser import COMMANDS
from parsl_sizer.model import NodeProfile
from parsl_sizer.scaling import Geometry
from parsl_sizer.server.app import App
from parsl_sizer.server.guard import Guard

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("PARSL_SIZER_DATA", ROOT.parent / "shared" / "data")).resolve()
ARCHIVE = "archive.sqlite3"
ENVIRONMENT = {
    "TZ": "UTC",
    "COLUMNS": "400",  # no line is broken, however long the words in it are
    "PYTHONUTF8": "1",
    "PARSL_SIZER_ARCHIVE": ARCHIVE,
}
FIRST = "20261118-193725-50208082"
"""The first of two recorded runs, in which attempts ran out of memory, raised and were lost."""

JSON = {
    "history": "history --last 4",
    "history-of-runs": "history --runs",
    "history-of-exhausted": "history --category assemble --ending exhausted --last 3",
    "explain": f"explain 45 --run {FIRST}",
    "report": f"report {FIRST}",
    "whatif": "whatif align",
    "whatif-of-trace": "whatif linear.csv --node memory=64GB",
    "export": "export --last 3",
    "export-to-file": "export --csv -o exported.csv",
    "import": "import logs attempts.jsonl",
    "import-dry-run": "import logs --dry-run",
    "waits": "waits",
    "prune": f"prune --run {FIRST} --yes",
    "prune-dry-run": "prune --keep-runs 1 --dry-run",
    "profile-list": "profile --list",
    "profile-forget": "profile --forget node-4",
    "strategies": "strategies",
    "generate": "generate linear --tasks 5 --seed 3",
    "generate-to-file": "generate phases --tasks 50 -o generated.csv",
    "replay": "replay trimodal.csv",
    "replay-on-nodes": "replay linear.csv --per-category --nodes 3 --lag 8 --together",
    "compare": "compare linear.csv --lag 4",
}
"""The commands whose JSON is compared; --json is added."""
SHAPES = {
    "doctor": "doctor",
    "profile": "profile --dry-run --built-in --seconds 1 --folder .",
}
"""Commands that measure this machine: of their JSON the keys and the types are compared."""
NO_JSON = {"serve": "It serves until it is stopped; its JSON is below, asked of the application."}
"""Commands without a case, and why."""
TEXTS = {
    "history": "history --last 25",
    "history-of-runs": "history --runs",
    "explain": f"explain 45 --run {FIRST}",
    "report": f"report {FIRST}",
    "whatif": "whatif align",
    "export": "export --last 2",
    "export-of-trace": "export --csv --last 6",
    "import": "import logs",
    "waits": "waits",
    "prune": "prune --keep-runs 1 --dry-run",
    "profile-list": "profile --list",
    "strategies": "strategies",
    "replay": "replay linear.csv --per-category --nodes 3",
    "compare": "compare trimodal.csv --lag 4",
}
SERVED = {
    "served-runs": "/api/runs",
    "served-attempts": "/api/attempts?category=render&last=2",
    "served-run": "/api/runs/last",
    "served-error": "/api/nothing",
}
PAGES = {"page-of-run": f"report {FIRST} --html page.html"}
SERVED_PAGES = {"page-of-runs": "/?last=1", "page-of-error": "/nothing"}
PAPER_000 = (
    *("colmena", "topeft", "normal_small", "uniform_large", "exponential_small"),
    *("bimodal_small_std", "trimodal"),
)
QUALITY = ("colmena", "topeft", "nfcore_methylseq")
TAREMA = ("rnaseq-dirt02-001", "scrnaseq-dirt02-001", "srasearch-chameleon-10a-001")
BENCHMARKS = {
    "benchmark-papers-000": ("papers.py --only 000", [f"traces/{name}.csv" for name in PAPER_000]),
    "benchmark-papers-001": (
        "papers.py --only 001",
        ["traces/bwa.csv", "traces/cms_simulation.csv"],
    ),
    "benchmark-papers-003": ("papers.py --only 003 --workflows 1", []),
    "benchmark-quality": (
        f"quality.py --published reference --traces {','.join(QUALITY)}",
        ["reference.csv", *(f"traces/{name}.csv" for name in QUALITY)],
    ),
    "benchmark-tarema": (
        f"tarema.py --runs 2 --workflows {','.join(TAREMA)}",
        [f"workflows/{name}.json" for name in TAREMA],
    ),
    "benchmark-asa": ("asa.py --seeds 3", []),
    "benchmark-witt": ("witt.py --workflows 5 --tasks 30 --processes 1", []),
}
"""Short forms of the benchmarks, and the public data that each needs."""


def printed(command: str) -> str:
    """Return what a command prints, and then its remarks, unless that is JSON."""
    out, remarks = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(remarks):
        status = main(shlex.split(command))
    out.seek(0)
    remarks.seek(0)
    text, told = out.read(), remarks.read()
    assert status == 0, told
    return text if command.endswith("--json") else text + told


def printed_json(command: str) -> Any:
    """Return the JSON that a command prints."""
    return json.loads(printed(f"{command} --json"))


def printed_shape(command: str) -> Any:
    """Return the keys and the types of the JSON that a command prints."""
    return shape(printed_json(command))


def shape(value: Any) -> Any:
    """Return a value of JSON with the names of types in place of texts and numbers."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        shapes = [shape(item) for item in value]
        return [one for at, one in enumerate(shapes) if one not in shapes[:at]]
    types = {str: "text", bool: "true or false", type(None): "nothing"}
    return types.get(type(value), "number")


def served(address: str) -> str:
    """Return what the server answers."""
    path, _, query = address.partition("?")
    environ: dict[str, Any] = {"PATH_INFO": path, "QUERY_STRING": query, "HTTP_HOST": "localhost"}
    setup_testing_defaults(environ)
    return b"".join(App(Path(ARCHIVE), Guard())(environ, lambda *_: print)).decode()


def served_json(address: str) -> Any:
    """Return the JSON that the server answers."""
    return json.loads(served(address))


def served_page(address: str) -> str:
    """Return the outline of the page that the server answers."""
    return Outline(served(address)).text()


def written_page(command: str) -> str:
    """Return the outline of the page that a command writes."""
    printed(command)
    return Outline(Path("page.html").read_text(encoding="utf-8")).text()


class Outline(HTMLParser):
    """The tags of a page and their texts, a line each; without looks and positions."""

    KEPT = ("id", "class", "href", "for", "name", "content", "aria-label", "data-figure")
    EMPTY = ("meta", "link", "input")
    """Tags without an end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self._open: list[str] = []
        self._lines: list[str] = []
        self._has_begun = False
        self.feed(page.replace("<wbr>", ""))

    def text(self) -> str:
        """Return the lines; where one is repeated, how many there are."""
        alike = ((line, len(list(lines))) for line, lines in groupby(self._lines))
        return "\n".join(f"{line} × {count}" if count > 1 else line for line, count in alike)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add(tag, *(f"{name}={value}" for name, value in attrs if name in self.KEPT))
        self._has_begun = tag not in self.EMPTY
        if self._has_begun:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self._has_begun = False

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if text and self._has_begun and self._open[-1] != "style":
            self._lines[-1] += f": {text}"
        elif text and self._open[-1] != "style":
            self._add(text)

    def _add(self, *words: str) -> None:
        self._lines.append("\t" * len(self._open) + " ".join(words))


def benchmarked(benchmark: tuple[str, Sequence[str]]) -> str:
    """Return what a benchmark prints; skip the test where data that it needs are absent."""
    command, needed = benchmark
    for name in needed:
        if not (DATA / name).is_file():
            pytest.skip(f"there is no {DATA / name}; name the folder of data in PARSL_SIZER_DATA")
    script, *arguments = shlex.split(command)
    ended = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / script), *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PARSL_SIZER_DATA": str(DATA)},
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    **{f"{name}.json": (printed_json, command) for name, command in JSON.items()},
    **{f"{name}.json": (printed_shape, command) for name, command in SHAPES.items()},
    **{f"{name}.json": (served_json, address) for name, address in SERVED.items()},
    **{f"{name}.txt": (printed, command) for name, command in TEXTS.items()},
    **{f"{name}.txt": (written_page, command) for name, command in PAGES.items()},
    **{f"{name}.txt": (served_page, address) for name, address in SERVED_PAGES.items()},
    **{f"{name}.txt": (benchmarked, benchmark) for name, benchmark in BENCHMARKS.items()},
}
"""How to make each output, by the name of the file that it is recorded in."""


@pytest.fixture(scope="session")
def prepared(golden: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the recorded inputs, and an archive of what was recorded of runs."""
    folder = tmp_path_factory.mktemp("golden")
    for name, text in golden.inputs().items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "tests" / "data" / "importers", folder / "logs")
    archive = folder / ARCHIVE
    printed(f"import {folder / 'attempts.jsonl'} --archive {archive}")
    waits = json.loads((folder / "waits.json").read_text(encoding="utf-8"))
    profiles = json.loads((folder / "profiles.json").read_text(encoding="utf-8"))
    with closing(open_archive(archive)) as opened:
        opened.record_waits(
            [Wait(run, at, Geometry(*block), *rest) for run, at, block, *rest in waits]
        )
        opened.keep_profiles([NodeProfile(*profile) for profile in profiles])
    return folder


@pytest.fixture
def workdir(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a copy of the prepared folder, with the same environment everywhere."""
    folder = shutil.copytree(prepared, tmp_path / "golden")
    monkeypatch.chdir(folder)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    yield folder
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("name", CASES)
def test_an_output_is_as_it_was_recorded(name: str, golden: Any, workdir: Path) -> None:
    output_of, argument = CASES[name]
    golden.check(name, output_of(argument))


def test_every_command_has_a_case_or_a_reason_to_have_none() -> None:
    commands = {shlex.split(command)[0] for command in (*JSON.values(), *SHAPES.values())}
    assert commands | NO_JSON.keys() == COMMANDS.keys()


def test_every_recorded_output_is_of_a_case(golden: Any) -> None:
    golden.check_files(set(CASES))
