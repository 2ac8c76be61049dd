"""Frames between a supervisor and its runner, and orders and reports as they cross to workers.

A frame has the number of its call, a head of plain values and a body of bytes. Both ends are
forks of one process, or run the same version of Python as engines want it, so heads are packed
with `marshal`, the quickest there is.
"""

from __future__ import annotations

import json
import marshal
import socket
import struct
from typing import Any

HEADER = struct.Struct("!QQQ")
"""The number of the call, and the lengths of head and body."""
READY = 0
"""The number of frames that belong to no call: the runner is ready for the next one."""
SMALL = 1 << 16
"""Frames up to this many bytes are copied together: fewer calls, and each wakes somebody."""


class WrongFrame(Exception):
    """A frame of another call, or bytes that are no frame: the other end cannot be trusted."""


def limit_wait(sock: socket.socket, limit_s: float) -> None:
    """Have `receive` give up on a frame of which nothing more has come for this long.

    The kernel does it, so that the time to send is not limited: the other end may be at work.
    """
    timeval = struct.pack("ll", int(limit_s), 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval)


def send(sock: socket.socket, call: int, head: dict[str, Any], body: bytes = b"") -> None:
    """Send a frame of the call with this number; raises `OSError` if the other end is closed."""
    packed = marshal.dumps(head)
    header = HEADER.pack(call, len(packed), len(body))
    if len(body) <= SMALL:
        sock.sendall(b"".join((header, packed, body)))
    else:
        sock.sendall(header + packed)
        sock.sendall(body)


def receive(sock: socket.socket, call: int) -> tuple[dict[str, Any], bytes] | None:
    """Return the next frame, or None if the other end is closed.

    Raises `WrongFrame` unless it is one of the call with this number, and whole.
    """
    try:
        header = _exactly(sock, HEADER.size)
        if header is None:
            return None
        number, of_head, of_body = HEADER.unpack(header)
        if number != call:
            raise WrongFrame(
                f"sent a frame with the number {number} instead of {call}, the number of this "
                "call, and was replaced"
            )
        if of_body <= SMALL:
            both = _exactly(sock, of_head + of_body)
            return None if both is None else (marshal.loads(both[:of_head]), both[of_head:])
        packed, body = _exactly(sock, of_head), _exactly(sock, of_body)
        return None if packed is None or body is None else (marshal.loads(packed), body)
    except ConnectionError:
        return None
    except BlockingIOError as error:
        raise WrongFrame("sent a part of a frame and not the rest, and was replaced") from error
    except (EOFError, TypeError, ValueError) as error:
        raise WrongFrame("sent bytes that are no frame, and was replaced") from error


def _exactly(sock: socket.socket, count: int) -> bytes | None:
    """`count` bytes, in one piece and without a second copy, or None if they never come."""
    data = sock.recv(count, socket.MSG_WAITALL)
    while len(data) < count:  # a signal came between, or the end, or a wait was too long
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


MARK = b"\x8fparsl_sizer 1\n"


def framed(report: dict[str, Any]) -> bytes | dict[str, Any]:
    """A report as bytes, which dill passes on at once, unless a large payload would be copied.

    >>> opened(framed({"ending": "returned", "payload": b"seven"}))
    {'ending': 'returned', 'payload': b'seven'}
    """
    payload = report["payload"]
    if payload is not None and len(payload) > SMALL:
        return report
    return MARK + marshal.dumps(dict(report))


def opened(came: Any) -> Any:
    """What a task gave back: the report, if it was framed, and else just that."""
    if type(came) is not bytes or not came.startswith(MARK):
        return came
    return marshal.loads(memoryview(came)[len(MARK) :])


def is_plain(value: object) -> bool:
    """Whether a value crosses in a frame as it is, and needs no codec."""
    return type(value) in PLAIN and (type(value) is not str or len(value) <= SMALL)


PLAIN = frozenset({type(None), bool, int, float, str})
