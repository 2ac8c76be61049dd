"""Asks a manager of Work Queue or TaskVine who is there.

Both answer on the port that workers connect to: a line with the question, and a JSON list
back, after a handshake if the project has a password. They answer while they have tasks
only: at rest they do not even look at their port.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
import select
import socket
from typing import Any, BinaryIO

PATIENCE_S = 1.0
"""So long an answer is waited for at a time."""
GREETING = "auth password sha1"


class Status:
    """One question at a time to the manager on a port of this machine.

    A question that is not answered in time stays: it is waited for again with the next
    call. A new connection every time would fill the manager's backlog while it rests,
    and keep workers out.
    """

    def __init__(self, password: str | None = None) -> None:
        self._password = password
        self._key = secrets.token_hex(32)
        self._asked: socket.socket | None = None

    def ask(self, port: int, question: str) -> list[dict[str, Any]] | None:
        """The answer, one entry per thing asked for; None if there is none (yet)."""
        try:
            if self._asked is None:
                self._asked = self._connect(port, question)
            if not select.select([self._asked], [], [], PATIENCE_S)[0]:
                return None
            with self._asked, self._asked.makefile("rb") as incoming:
                if self._password is not None:
                    self._shake_hands(self._asked, incoming, self._password)
                    self._asked.sendall(_line(f"{question}_status"))
                answer = json.loads(incoming.read())
        except (OSError, ValueError):  # gone, or not a manager
            self.close()
            return None
        self._asked = None
        return answer if isinstance(answer, list) else None

    def close(self) -> None:
        """Wait no longer."""
        if self._asked is not None:
            with contextlib.suppress(OSError):
                self._asked.close()
            self._asked = None

    def _connect(self, port: int, question: str) -> socket.socket:
        opening = f"{question}_status"
        if self._password is not None:
            opening = f"{GREETING}\n{self._key}"
        connection = socket.create_connection(("localhost", port), PATIENCE_S)
        try:
            connection.sendall(_line(opening))
        except BaseException:
            connection.close()
            raise
        return connection

    def _shake_hands(self, connection: socket.socket, incoming: BinaryIO, password: str) -> None:
        """Show each other that both know the password, without saying it."""
        if incoming.readline().decode().strip() != GREETING:
            raise ValueError("the manager has no password")
        connection.sendall(_line(_proof(password, incoming.readline().decode().strip())))
        proven = hmac.compare_digest(
            incoming.readline().strip(), _proof(password, self._key).encode()
        )
        connection.sendall(_line("ok" if proven else "failure"))
        if incoming.readline().strip() != b"ok" or not proven:
            raise ValueError("the manager has another password")


def _line(text: str) -> bytes:
    return f"{text}\n".encode()


def _proof(password: str, key: str) -> str:
    return hashlib.sha1(f"{password} {key}".encode(), usedforsecurity=False).hexdigest()
