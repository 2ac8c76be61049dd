"""Who is let in."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.server.app import App
from parsl_sizer.server.guard import LOCAL, Guard

Ask = Callable[..., Any]


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:8421", "[::1]", "[::1]:8421"]
)
def test_the_machine_itself_is_let_in(ask: Ask, app: App, host: str) -> None:
    assert ask(app, "/api/runs", HTTP_HOST=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "evil.example:8421", "127.0.0.1.evil.example", "localhost:80:80"),
        *("localhost@evil.example", "[::1", "::1", "evil.example/localhost", "\xff", " localhost"),
    ],
)
def test_another_name_is_refused_whatever_is_asked(ask: Ask, app: App, host: str) -> None:
    for address, method in (("/", "GET"), ("/api/runs", "GET"), ("/api/outcomes", "POST")):
        got = ask(app, address, method=method, HTTP_HOST=host)
        assert got.status == 403
        assert b"--allow-host" in got.body


def test_a_name_can_be_allowed(ask: Ask, archive: Path) -> None:
    app = App(archive, Guard(LOCAL | {"login1"}))
    assert ask(app, "/", HTTP_HOST="Login1:8421").status == 200
    assert ask(app, "/", HTTP_HOST="login2:8421").status == 403


def basic(text: str) -> str:
    return f"Basic {b64encode(text.encode()).decode()}"


def test_where_others_are_reading_needs_the_token(ask: Ask, archive: Path, token: str) -> None:
    app = App(archive, Guard(token=token, reading_needs_token=True))
    right = (f"Bearer {token}", f"bearer  {token}", basic(f"anybody:{token}"), basic(f":{token}"))
    for said in right:
        assert ask(app, "/runs/run-1", HTTP_AUTHORIZATION=said).status == 200
    wrong = ("", "Bearer", "Bearer x", token, f"Basic {token}", basic(token), basic(f"{token}:"))
    for said in (*wrong, "Basic \xff", "Bearer \xff☃", "Basic ===", f"Digest {token}"):
        for address in ("/", "/runs/run-1", "/api/runs", "/api/attempts", "/nothing"):
            got = ask(app, address, HTTP_AUTHORIZATION=said)
            assert got.status == 401
            assert got.headers["WWW-Authenticate"].startswith("Basic ")
            assert b"run-1" not in got.body


def test_posting_needs_the_token_in_its_header(ask: Ask, app: App, token: str) -> None:
    for said in ("", "Bearer x", f"Bearer {token}x", basic(f"me:{token}")):
        got = ask(app, "/api/outcomes", method="POST", body=b"{}", HTTP_AUTHORIZATION=said)
        assert got.status == 401
        assert got.headers["WWW-Authenticate"].startswith("Bearer ")
        assert token not in got.error


def test_without_a_token_nobody_posts_and_it_is_told_how_to_allow_it(
    ask: Ask, archive: Path
) -> None:
    app = App(archive, Guard())
    for said in ("", "Bearer ", "Bearer None", basic("a:")):
        got = ask(app, "/api/outcomes", method="POST", body=b"{}", HTTP_AUTHORIZATION=said)
        assert got.status == 403
        assert "--token-file FILE" in got.error
        assert "$PARSL_SIZER_TOKEN" in got.error
