"""What the tests of the server share: an archive, and requests without a port."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.archive.open import open_archive
from parsl_sizer.server.app import App
from parsl_sizer.server.guard import Guard
from parsl_sizer.testing.archive_laws import entries

TOKEN = "a-token-for-tests-only"


@dataclass
class Got:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["Content-Type"] == "application/json"
        return json.loads(self.body)

    @property
    def error(self) -> str:
        [(name, sentence)] = self.json.items()
        assert name == "error"
        assert sentence.endswith(".")
        return str(sentence)

    @property
    def text(self) -> str:
        return self.body.decode()


def asked(app: App, address: str = "/", *, method: str = "GET", **more: Any) -> Got:
    """Ask as a server would; `more` are further values of WSGI's environment."""
    path, _, query = address.partition("?")
    body = more.pop("body", b"")
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "HTTP_HOST": "127.0.0.1:8421",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: object) -> Any:
        started.append((status, headers))

    parts = list(app(environ | more, start_response))
    [(status, headers)] = started
    assert all(type(part) is bytes for part in parts)
    for name, value in headers:
        assert type(name) is str
        assert type(value) is str
        assert value.isprintable()
        value.encode("latin-1")
    assert len(dict(headers)) == len(headers)
    got = Got(int(status.split()[0]), dict(headers), b"".join(parts))
    if method != "HEAD":
        assert got.headers["Content-Length"] == str(len(got.body))
    return got


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """60 attempts of three runs."""
    path = tmp_path / "archive.sqlite3"
    made = open_archive(path)
    made.record(entries())
    made.close()
    return path


@pytest.fixture
def app(archive: Path) -> App:
    """For all on this machine to read, and for who knows the token to post."""
    return App(archive, Guard(token=TOKEN))


@pytest.fixture
def get(app: App) -> Callable[..., Got]:
    """Asks for an address."""
    return lambda address="/", **more: asked(app, address, **more)


@pytest.fixture
def post(app: App) -> Callable[..., Got]:
    """Posts outcomes, with the token."""

    def posted(body: bytes, **more: Any) -> Got:
        more.setdefault("HTTP_AUTHORIZATION", f"Bearer {TOKEN}")
        return asked(app, "/api/outcomes", method="POST", body=body, **more)

    return posted


@pytest.fixture
def ask() -> Callable[..., Got]:
    """Asks any application."""
    return asked


@pytest.fixture
def token() -> str:
    return TOKEN
