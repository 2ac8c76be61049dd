"""The application behind a port, until somebody ends it."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterable
from pathlib import Path

from parsl_sizer.archive.open import Where
from parsl_sizer.model import SizerError

from .app import App
from .guard import HOW, LOCAL, TOKEN_VARIABLE, Guard, is_local, token_in
from .request import MOST_BYTES

THREADS = 4
CONNECTIONS = 500
"""Half of the files that a process may usually have open."""
REQUEST_S = 60
"""A request has to arrive within this time, head and body; an idle connection is closed then."""
LIMITS = {
    "threads": THREADS,
    "connection_limit": CONNECTIONS,
    "channel_timeout": REQUEST_S,
    "cleanup_interval": 1,
    "max_request_header_size": 32_000,
    "max_request_body_size": MOST_BYTES + MOST_BYTES // 10,  # a little too much is told by us
    "asyncore_use_poll": True,
}
"""Options of waitress: no client that asks too much, or too slowly, keeps others waiting."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
NEEDED = "parsl-sizer serve needs waitress: pip install 'parsl-sizer[serve]'."


class CannotServe(SizerError):
    """Why nothing can be served; the message says what to do."""


def token_from(file: str | None) -> str | None:
    """The token in a file, else in the surroundings; None if there is none."""
    if file is None:
        said = os.environ.get(TOKEN_VARIABLE, "")
        return token_in(said) if said.strip() else None
    try:
        return token_in(Path(file).read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CannotServe(f"The token in {file} cannot be read: {reason}.") from None


def guard_for(
    host: str, names: Iterable[str], token: str | None, *, is_private: bool = False
) -> Guard:
    """Who is let in where the server listens at `host`, and is called by `names` besides.

    Where others can reach it, and where `is_private`, reading needs the token.
    """
    if token is None and not is_local(host):
        raise CannotServe(f"{host} can be reached by others, so that a token is needed: {HOW}.")
    if token is None and is_private:
        raise CannotServe(f"--private needs a token: {HOW}.")
    called = frozenset(name.lower() for name in (host, *names))
    return Guard(LOCAL | called, token, is_private or not is_local(host))


def serve(
    where: Where, guard: Guard, *, host: str, port: int, ready: Callable[[str], None]
) -> None:
    """Answer until this process is interrupted or told to end; `ready` is told the address."""
    try:
        from waitress.server import create_server
        from waitress.wasyncore import close_all

        from .channel import Channel
    except ImportError:
        raise CannotServe(NEEDED) from None
    with _listening(host, port) as listener:
        address = _address(host, listener.getsockname()[1])
        before = {number: signal.signal(number, _end) for number in SIGNALS}
        sockets: dict[int, object] = {}
        try:
            server = create_server(App(where, guard), map=sockets, sockets=[listener], **LIMITS)
            server.channel_class = Channel
            ready(address)
            server.run()
        except SystemExit:
            pass
        finally:
            close_all(sockets, ignore_all=True)
            for number, action in before.items():
                signal.signal(number, action)


def _end(*_: object) -> None:
    raise SystemExit  # waitress lets those finish who are at work


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CannotServe(
            f"Nothing can listen at {_address(host, port)}: {reason}; choose another --host or "
            "--port."
        ) from None


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"
