"""The questions to a manager, against one that speaks the same lines over a real socket."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from parsl_sizer.engines import cctools_status
from parsl_sizer.engines.cctools_status import Status

WORKERS = [{"hostname": "a", "cores_total": 4}, {"hostname": "b", "cores_total": 2}]


class Manager:
    """Answers as Work Queue does, once it looks at its port."""

    def __init__(self, password: str | None = None, answer: bytes | None = None) -> None:
        self.password = password
        self.answer = json.dumps(WORKERS).encode() if answer is None else answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.awake = threading.Event()
        self.questions: list[str] = []
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        self.awake.wait(30)
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.settimeout(10)
            with connection, connection.makefile("rb") as incoming:
                if self.password is None or self._knows_password(connection, incoming):
                    self.questions.append(incoming.readline().decode().strip())
                    connection.sendall(self.answer)

    def _knows_password(self, connection, incoming) -> bool:
        connection.sendall(b"auth password sha1\nmine\n")
        if incoming.readline() != b"auth password sha1\n":
            return False
        theirs = incoming.readline().decode().strip()
        shown = incoming.readline().decode().strip()
        is_right = shown == hashlib.sha1(f"{self.password} mine".encode()).hexdigest()
        proof = hashlib.sha1(f"{self.password} {theirs}".encode()).hexdigest()
        connection.sendall(f"{proof}\n{'ok' if is_right else 'failure'}\n".encode())
        return incoming.readline() == b"ok\n" and is_right


@contextmanager
def managing(*, awake: bool = True, **options) -> Iterator[Manager]:
    manager = Manager(**options)
    manager.thread.start()
    if awake:
        manager.awake.set()
    try:
        yield manager
    finally:
        manager.awake.set()
        manager.listener.shutdown(socket.SHUT_RDWR)
        manager.listener.close()
        manager.thread.join(10)


def test_a_manager_is_asked_and_its_answer_is_read() -> None:
    with managing() as manager:
        assert Status().ask(manager.port, "worker") == WORKERS
        assert manager.questions == ["worker_status"]


def test_a_manager_with_a_password_answers_whoever_knows_it() -> None:
    with managing(password="se cret\n") as manager:
        assert Status("se cret\n").ask(manager.port, "worker") == WORKERS


def test_a_manager_with_another_password_says_nothing() -> None:
    with managing(password="se cret") as manager:
        assert Status("guessed").ask(manager.port, "worker") is None


def test_a_manager_without_the_password_that_we_know_says_nothing() -> None:
    with managing() as manager:
        assert Status("se cret").ask(manager.port, "worker") is None


def test_a_manager_at_rest_is_asked_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cctools_status, "PATIENCE_S", 0.05)
    with managing(awake=False) as manager:
        status = Status()
        assert [status.ask(manager.port, "worker") for _ in range(3)] == [None] * 3
        manager.awake.set()
        monkeypatch.setattr(cctools_status, "PATIENCE_S", 10)
        assert status.ask(manager.port, "worker") == WORKERS
        assert manager.questions == ["worker_status"]
        assert status.ask(manager.port, "worker") == WORKERS


def test_a_port_where_nobody_listens_is_no_error() -> None:
    with managing() as manager:
        pass
    assert Status().ask(manager.port, "worker") is None


@pytest.mark.parametrize("answer", [b"", b"not JSON", b'[{"cut', b'{"no": "list"}', b"\xff"])
def test_an_answer_that_makes_no_sense_is_none(answer: bytes) -> None:
    with managing(answer=answer) as manager:
        status = Status()
        assert status.ask(manager.port, "worker") is None
        manager.answer = json.dumps(WORKERS).encode()
        assert status.ask(manager.port, "worker") == WORKERS


def test_a_question_can_be_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cctools_status, "PATIENCE_S", 0.05)
    with managing(awake=False) as manager:
        status = Status()
        assert status.ask(manager.port, "worker") is None
        status.close()
        status.close()
