"""What is asked: the parts of a request that matter here, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .answer import Refused

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

MOST_BYTES = 10_000_000
"""That may be posted at a time."""


class Request(NamedTuple):
    """A request without its body."""

    method: str
    path: str
    query: str
    host: str
    authorization: str


def request_of(environ: WSGIEnvironment) -> Request:
    """The request that a server was sent."""
    return Request(
        str(environ.get("REQUEST_METHOD", "")),
        _text(environ, "PATH_INFO"),
        _text(environ, "QUERY_STRING"),
        str(environ.get("HTTP_HOST", "")),
        str(environ.get("HTTP_AUTHORIZATION", "")),
    )


def body_of(environ: WSGIEnvironment) -> bytes:
    """What was posted."""
    said = str(environ.get("CONTENT_LENGTH") or "0")
    if not (said.isascii() and said.isdigit()):
        raise Refused(400, f"The length of what is posted is {said!r:.40}, not a number.")
    if len(said) > len(str(MOST_BYTES)) or int(said) > MOST_BYTES:
        raise Refused(
            413, f"No more than {MOST_BYTES:,} bytes can be posted at a time; post fewer lines."
        )
    body: bytes = environ["wsgi.input"].read(int(said))
    return body


def _text(environ: WSGIEnvironment, name: str) -> str:
    """Servers hand over bytes as if each were a letter; they are meant to be UTF-8."""
    try:
        return str(environ.get(name, "")).encode("latin-1").decode()
    except UnicodeError:
        raise Refused(400, "The address is not UTF-8.") from None
