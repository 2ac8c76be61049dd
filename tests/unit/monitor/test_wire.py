"""Frames, and what crosses between the two sides."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from parsl.serialize import deserialize, serialize

from parsl_sizer.monitor import wire

MB = 1_000_000


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


@pytest.mark.parametrize("size", [0, 1, wire.SMALL, wire.SMALL + 1, 20 * MB])
def test_frames_of_any_size_arrive(pair: tuple[socket.socket, socket.socket], size: int) -> None:
    head = {"a": [1, 2.5, None], "b": "text"}
    sender = threading.Thread(target=wire.send, args=(pair[0], 7, head, b"x" * size))
    sender.start()
    found = wire.receive(pair[1], 7)
    sender.join()
    assert found is not None
    assert found[0] == head
    assert found[1] == b"x" * size


def test_frames_arrive_one_after_the_other(pair: tuple[socket.socket, socket.socket]) -> None:
    wire.send(pair[0], 1, {"number": 1}, b"one")
    wire.send(pair[0], 2, {"number": 2})
    assert wire.receive(pair[1], 1) == ({"number": 1}, b"one")
    assert wire.receive(pair[1], 2) == ({"number": 2}, b"")


@pytest.mark.parametrize("part", [0, 3, 24, 28, 48])
def test_who_goes_in_the_middle_has_gone(
    pair: tuple[socket.socket, socket.socket], part: int
) -> None:
    whole, _ = socket.socketpair()
    with whole, _:
        wire.send(whole, 1, {"number": 1}, b"x" * 50)
        data = _.recv(1000)
    pair[0].sendall(data[:part])
    pair[0].close()
    assert wire.receive(pair[1], 1) is None


def test_a_frame_of_another_call_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    wire.send(pair[0], 1, {}, b"one")
    with pytest.raises(wire.WrongFrame, match="number 1 instead of 2"):
        wire.receive(pair[1], 2)


@pytest.mark.parametrize("head", [b"", b"x", b"xxx", b"i12"])
def test_bytes_that_are_no_frame_are_refused(
    pair: tuple[socket.socket, socket.socket], head: bytes
) -> None:
    pair[0].sendall(wire.HEADER.pack(1, len(head), 0) + head)
    with pytest.raises(wire.WrongFrame, match="no frame"):
        wire.receive(pair[1], 1)


@pytest.mark.parametrize(
    "report",
    [
        {"ending": "returned", "payload": b"bytes"},
        {"ending": "returned", "payload": b"x" * (wire.SMALL + 1)},
        {"ending": "returned", "payload": b""},
        {"ending": "stopped", "payload": None, "peak": {"memory": 1}, "series": [[0.5, 1]]},
    ],
)
def test_a_report_that_was_framed_is_opened_to_what_it_was(report: dict[str, object]) -> None:
    assert wire.opened(deserialize(serialize(wire.framed(report)))) == report


@pytest.mark.parametrize("other", [None, 7, b"", b"bytes", wire.MARK.decode("latin1"), {"a": 1}])
def test_what_is_no_frame_is_left_as_it_is(other: object) -> None:
    assert wire.opened(other) is other
