"""``parsl-sizer serve`` before it serves: what it refuses, and why."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from parsl_sizer.cli import main
from parsl_sizer.cli.parser import command_line
from parsl_sizer.server.guard import LOCAL
from parsl_sizer.server.serve import CannotServe, guard_for, token_from

Refused = Callable[..., str]


@pytest.fixture
def refused(
    archive: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Refused:
    """Starts a server that must not start, and gives its one sentence."""
    monkeypatch.delenv("PARSL_SIZER_TOKEN", raising=False)

    def run(*arguments: object) -> str:
        assert main(["serve", "--archive", str(archive), *map(str, arguments)]) == 2
        out, error = capsys.readouterr()
        assert out == ""
        assert error.endswith(".\n")
        return error

    return run


def test_by_default_it_is_for_this_machine_only() -> None:
    arguments = command_line().parse_args(["serve"])
    assert (arguments.host, arguments.port) == ("127.0.0.1", 8421)
    assert arguments.token_file is None
    assert not arguments.private


def test_the_token_is_in_a_file_or_in_the_surroundings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PARSL_SIZER_TOKEN", raising=False)
    assert token_from(None) is None
    monkeypatch.setenv("PARSL_SIZER_TOKEN", " of-the-surroundings\n")
    assert token_from(None) == "of-the-surroundings"
    file = tmp_path / "token"
    file.write_text("in-a-file-of-its-own\n")
    assert token_from(str(file)) == "in-a-file-of-its-own"


@pytest.mark.parametrize("content", [b"", b"too short", b"with spaces in the middle", b"\xff" * 40])
def test_a_token_that_can_be_guessed_or_not_be_said_is_refused(
    refused: Refused, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    assert "secrets.token_urlsafe()" in refused("--token-file", file)


def test_a_token_that_cannot_be_read_is_told(refused: Refused, tmp_path: Path) -> None:
    missing = tmp_path / "none"
    assert f"{missing} cannot be read: no such file" in refused("--token-file", missing)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "login1"])
def test_where_others_can_reach_it_a_token_is_needed(host: str, refused: Refused) -> None:
    assert "so that a token is needed" in refused("--host", host)
    with pytest.raises(CannotServe):
        guard_for(host, (), None)
    guard = guard_for(host, ["Login1.Example"], "a-token-for-tests-only")
    assert guard.reading_needs_token
    assert guard.names == LOCAL | {host, "login1.example"}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_on_this_machine_reading_needs_none(host: str) -> None:
    assert not guard_for(host, (), None).reading_needs_token


def test_where_others_are_logged_in_reading_can_need_the_token_too(refused: Refused) -> None:
    assert "--private needs a token: start parsl-sizer serve with --tok" in refused("--private")
    guard = guard_for("127.0.0.1", (), "a-token-for-tests-only", is_private=True)
    assert guard.reading_needs_token
    assert guard.names == LOCAL


def test_a_port_that_is_taken_is_told(refused: Refused) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = refused("--port", port)
    assert f"Nothing can listen at http://127.0.0.1:{port}/: address already in use" in sentence
    assert "--port" in sentence


@pytest.mark.parametrize("port", ["65536", "-1", "http"])
def test_what_is_no_port_is_told(refused: Refused, port: str) -> None:
    assert repr(port) in refused(f"--port={port}")


def test_without_waitress_it_is_told_how_to_get_it(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "waitress.server", None)
    assert "pip install 'parsl-sizer[serve]'" in refused("--port", 0)
