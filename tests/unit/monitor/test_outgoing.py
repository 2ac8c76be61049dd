"""A call ends its worker, and what that one answered before arrives all the same."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import weakref
from collections.abc import Iterator
from multiprocessing.queues import Queue
from typing import Any

import pytest
from parsl.serialize import pack_apply_message

from parsl_sizer.monitor import outgoing
from parsl_sizer.monitor.supervisor import run_packed

MANY = 50
LARGE = bytes(10_000)
"""Of these few fit into a pipe: the rest waits for a reader."""
LIMIT_S = 100

fork = multiprocessing.get_context("fork")


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def worker(result_queue: Queue[Any], order: dict[str, Any]) -> None:
    """As HTEX's does."""
    for number in range(MANY):
        result_queue.put((number, LARGE))
    run_packed(order, pack_apply_message(end, (), {}))


@pytest.fixture
def answers() -> Iterator[Queue[Any]]:
    made = fork.Queue()
    yield made
    made.close()


def test_a_worker_ends_after_its_answers_are_out(
    order: Any, answers: Queue[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, is_out = fork.Semaphore(0), outgoing.is_out

    def looked(queue: Any) -> bool:
        looks.release()
        return is_out(queue)

    monkeypatch.setattr(outgoing, "_known", None)
    monkeypatch.setattr(outgoing, "is_out", looked)
    process = fork.Process(target=worker, args=(answers, order(isolation="inline")))
    process.start()
    for _ in range(3):  # until it waits nothing is read, so there is something to lose
        while not looks.acquire(timeout=0.1):
            assert process.is_alive()
    assert [answers.get(timeout=LIMIT_S)[0] for _ in range(MANY)] == list(range(MANY))
    process.join(LIMIT_S)
    assert process.exitcode == -signal.SIGKILL


class Large:
    """What a first task may come with."""


def test_what_a_worker_drops_is_dropped(
    answers: Queue[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def worker(result_queue: Queue[Any]) -> weakref.ref[Large]:
        request = Large()
        outgoing.wait()
        assert outgoing._known == (os.getpid(), result_queue)
        kept = weakref.ref(request)
        del request
        gc.collect()
        assert kept() is None
        return kept

    monkeypatch.setattr(outgoing, "_known", None)
    worker(answers)


def test_a_queue_that_is_closed_is_not_waited_for() -> None:
    queue = fork.Queue()
    queue.put(1)
    assert queue.get(timeout=LIMIT_S) == 1
    queue.close()
    queue.join_thread()
    assert outgoing.is_out(queue)


def test_a_queue_that_was_never_used_is_empty(answers: Queue[Any]) -> None:
    assert outgoing.is_out(answers)


def test_a_queue_of_another_kind_is_not_waited_for() -> None:
    assert outgoing.is_out(object())
