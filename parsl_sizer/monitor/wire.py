"""Frames between a supervisor and its runner, and the plain dictionaries that cross to it.

A frame is a head of plain values and a body of bytes. Both ends are forks of one process,
so heads are packed with `marshal`, the quickest there is.
"""

from __future__ import annotations

import json
import marshal
import socket
import struct
from typing import Any

LENGTHS = struct.Struct("!QQ")
SMALL = 1 << 16
"""Frames up to this many bytes are copied together: fewer calls, and each wakes somebody."""


def send(sock: socket.socket, head: dict[str, Any], body: bytes = b"") -> None:
    """Send a frame; raises `OSError` if there is nobody at the other end."""
    packed = marshal.dumps(head)
    lengths = LENGTHS.pack(len(packed), len(body))
    if len(body) <= SMALL:
        sock.sendall(b"".join((lengths, packed, body)))
    else:
        sock.sendall(lengths + packed)
        sock.sendall(body)


def receive(sock: socket.socket) -> tuple[dict[str, Any], bytes] | None:
    """The next frame, or None if the other end has gone."""
    try:
        lengths = _exactly(sock, LENGTHS.size)
        if lengths is None:
            return None
        of_head, of_body = LENGTHS.unpack(lengths)
        if of_body <= SMALL:
            both = _exactly(sock, of_head + of_body)
            return None if both is None else (marshal.loads(both[:of_head]), both[of_head:])
        packed, body = _exactly(sock, of_head), _exactly(sock, of_body)
    except ConnectionError:
        return None
    return None if packed is None or body is None else (marshal.loads(packed), body)


def _exactly(sock: socket.socket, count: int) -> bytes | None:
    """`count` bytes, in one piece and without a second copy, or None if they never come."""
    data = sock.recv(count, socket.MSG_WAITALL)
    while len(data) < count:  # a signal came between, or the end
        more = sock.recv(count - len(data), socket.MSG_WAITALL)
        if not more:
            return None
        data += more
    return data


APART = ("payload", "result", "error")
"""Values of a report that JSON does not have."""


class Plain(dict[str, Any]):
    """A dictionary of plain values that is quick to pickle and arrives as a plain one.

    Engines pickle with dill, whose pickler is written in Python: it takes 130 us for a
    report, and half of that for its text.

    >>> import pickle
    >>> came = pickle.loads(pickle.dumps(Plain(ending="returned", payload=b"abc")))
    >>> came, type(came)
    ({'ending': 'returned', 'payload': b'abc'}, <class 'dict'>)
    """

    def __reduce__(self) -> tuple[Any, ...]:
        text = json.dumps({name: value for name, value in self.items() if name not in APART})
        rest = [(name, self[name]) for name in APART if name in self]
        return json.loads, (text,), None, None, iter(rest)


Brief = tuple[str, str, Any]
"""The text of a report, and the name and value of what is no text: a quarter of the time."""


def brief(report: dict[str, Any]) -> Brief:
    """A report as short as it can be sent, for orders that ask for that.

    >>> opened(brief({"ending": "raised", "payload": None, "error": ValueError("seven")}))
    {'ending': 'raised', 'payload': None, 'error': ValueError('seven')}
    """
    text = json.dumps({name: value for name, value in report.items() if name not in APART})
    for name in APART:
        if report.get(name) is not None:
            return text, name, report[name]
    return text, "payload", None


def opened(came: Any) -> Any:
    """What a task gave back: the report, if it was brief, and else just that."""
    if isinstance(came, tuple) and len(came) == 3 and isinstance(came[0], str):
        text, name, value = came
        if name in APART and text.startswith("{"):
            return {**json.loads(text), "payload": None, name: value}
    return came
