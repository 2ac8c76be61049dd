"""What all commands have in common."""

from __future__ import annotations

import argparse
import io
import json
import math
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from parsl_sizer.cli import main
from parsl_sizer.cli.output import print_json, progress
from parsl_sizer.cli.parser import command_line
from parsl_sizer.version import __version__

Printed = Callable[..., Any]


def commands() -> dict[str, argparse.ArgumentParser]:
    [found] = [
        action
        for action in command_line()._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    return dict(found.choices)


def options() -> Iterator[tuple[str, str]]:
    for name, parser in commands().items():
        for action in parser._actions:
            yield from ((name, option) for option in action.option_strings)


def test_alone_it_teaches_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    for command in commands():
        assert f"  parsl-sizer {command}" in out
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == out


def test_the_examples_of_the_help_can_be_parsed() -> None:
    lines = (line.strip() for line in (command_line().epilog or "").splitlines())
    examples = [line.split() for line in lines if line.startswith("parsl-sizer ")]
    assert len(examples) == 7
    for _, *arguments in examples:
        assert command_line().parse_args(arguments).run is not None


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"parsl-sizer {__version__}\n"


def test_every_command_has_help_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    for name, parser in commands().items():
        assert main([name, "--help"]) == 0
        assert f"usage: parsl-sizer {name}" in capsys.readouterr().out
        assert any("--json" in action.option_strings for action in parser._actions)
        assert all(action.help for action in parser._actions)


@pytest.mark.parametrize("command", sorted(commands()))
def test_every_command_and_its_options_are_documented(root: Path, command: str) -> None:
    page = (root / "docs" / "cli.md").read_text(encoding="utf-8")
    [section] = re.findall(rf"^## {command}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    for name, option in options():
        if name == command and option not in ("-h", "--help"):
            assert re.search(rf"`{option}\b", section), option


def test_every_key_of_the_json_is_documented(root: Path, printed: Printed, trace: Path) -> None:
    page = (root / "docs" / "cli.md").read_text(encoding="utf-8")

    def keys(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            for key, inner in value.items():
                yield key
                yield from keys(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from keys(inner)

    replayed = printed("replay", trace, "--strategy", "doubling", "--nodes", 2)
    compared = printed("compare", trace, "--strategies", "doubling")
    generated = printed("generate", "normal", "--tasks", 1)
    for key in {*keys(replayed), *keys(compared), *keys(generated)}:
        assert f"`{key}`" in page or key in page.split("## replay")[0], key


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["replay"], "the following arguments are required: TRACE"),
        (["replay", "trace.csv", "--strat", "doubling"], "unrecognized arguments: --strat"),
        (["strategies", "extra"], "unrecognized arguments: extra"),
    ],
)
def test_what_is_no_command_is_told_in_one_sentence(
    refused: Callable[..., str], arguments: list[str], sentence: str
) -> None:
    assert sentence in refused(*arguments)


@pytest.mark.parametrize(
    ("arguments", "prog"),
    [
        (["history", "--catgory", "x"], "parsl-sizer history"),
        (["strategies", "extra"], "parsl-sizer strategies"),
        (["history", "--last", "0"], "parsl-sizer history"),
        (["--catgory", "x"], "parsl-sizer"),
    ],
)
def test_the_help_that_lists_what_there_is_is_named(
    refused: Callable[..., str], arguments: list[str], prog: str
) -> None:
    assert refused(*arguments).endswith(f"; see {prog} --help.\n")


def test_the_readme_names_the_extra_where_it_lists_what_needs_it(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    [section] = [part for part in readme.split("\n## ") if "    parsl-sizer serve " in part]
    assert "pip install '.[serve]'" in section


def test_an_interruption_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            signal.raise_signal(signal.SIGINT)
            return b""

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Interrupted()))
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # it may be ignored, inherited
    try:
        assert main(["replay", "-", "--strategy", "doubling"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr() == ("", "Interrupted.\n")


def test_json_has_no_numbers_that_json_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [math.nan, math.inf, 1.0], "b": (-math.inf,)})
    found = json.loads(capsys.readouterr().out)
    assert found == {"a": [None, None, 1.0], "b": [None]}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("replaying", 10) as advance:
        advance(10)
    assert "replaying" in terminal.getvalue()
    piped = io.StringIO()
    monkeypatch.setattr(sys, "stderr", piped)
    with progress("replaying", 10) as advance:
        advance(10)
    assert piped.getvalue() == ""


def test_a_replay_on_a_terminal_shows_how_far_it_is(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["replay", str(trace), "--strategy", "doubling", "--nodes", "2"]) == 0
    assert "0/120" in terminal.getvalue()
    assert "2 nodes" in terminal.getvalue()
    assert main(["compare", str(trace), "--strategies", "doubling,whole-machine"]) == 0
    assert "2 strategies" in terminal.getvalue()
    assert "0/240" in terminal.getvalue()
