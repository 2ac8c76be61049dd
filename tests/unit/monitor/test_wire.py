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
    sender = threading.Thread(target=wire.send, args=(pair[0], head, b"x" * size))
    sender.start()
    found = wire.receive(pair[1])
    sender.join()
    assert found is not None
    assert found[0] == head
    assert found[1] == b"x" * size


def test_frames_arrive_one_after_the_other(pair: tuple[socket.socket, socket.socket]) -> None:
    wire.send(pair[0], {"number": 1}, b"one")
    wire.send(pair[0], {"number": 2})
    assert wire.receive(pair[1]) == ({"number": 1}, b"one")
    assert wire.receive(pair[1]) == ({"number": 2}, b"")


@pytest.mark.parametrize("part", [0, 3, 16, 20, 40])
def test_who_goes_in_the_middle_has_gone(
    pair: tuple[socket.socket, socket.socket], part: int
) -> None:
    whole, _ = socket.socketpair()
    with whole, _:
        wire.send(whole, {"number": 1}, b"x" * 50)
        data = _.recv(1000)
    pair[0].sendall(data[:part])
    pair[0].close()
    assert wire.receive(pair[1]) is None


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
