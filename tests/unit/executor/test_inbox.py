"""Messages are acted upon one at a time, in order, by whoever is free."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from parsl_sizer.executor.inbox import Inbox

LIMIT_S = 60.0


class Bench:
    """An inbox, and what came of it."""

    def __init__(self) -> None:
        self.failed: list[BaseException] = []
        self.inbox = Inbox("inbox-test", lambda: None, self.failed.append)
        self.said: list[str] = []
        self.threads: list[threading.Thread] = []

    def say(self, text: str) -> None:
        self.said.append(text)
        self.threads.append(threading.current_thread())


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    made.inbox.start()
    yield made
    made.inbox.call(made.inbox.end)
    made.inbox.join(LIMIT_S)
    assert all(thread.name != "inbox-test" for thread in threading.enumerate())


def test_what_is_posted_is_called_in_order_and_elsewhere(bench: Bench) -> None:
    for text in "abc":
        bench.inbox.post(partial(bench.say, text))
    bench.inbox.call(partial(bench.say, "d"))
    assert bench.said == ["a", "b", "c", "d"]
    assert {thread.name for thread in bench.threads} == {"inbox-test"}


def test_who_acts_does_it_here(bench: Bench) -> None:
    bench.inbox.call(lambda: None)  # what its thread had to do is done
    acted = threading.Event()

    def until_nobody_else_was_acting() -> None:
        while threading.current_thread() not in bench.threads:
            bench.inbox.act(partial(bench.say, "here"))
        acted.set()

    here = threading.Thread(target=until_nobody_else_was_acting)
    here.start()
    assert acted.wait(LIMIT_S)
    here.join()


def test_what_comes_while_somebody_acts_is_called_by_that_one_and_afterwards(bench: Bench) -> None:
    has_begun, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        has_begun.set()
        assert go_on.wait(LIMIT_S)
        bench.say("slow")

    acting = threading.Thread(target=bench.inbox.act, args=[slow])
    acting.start()
    assert has_begun.wait(LIMIT_S)
    bench.inbox.act(partial(bench.say, "quick"))  # returns, though it cannot be called yet
    assert bench.said == []
    go_on.set()
    bench.inbox.call(partial(bench.say, "last"))
    acting.join()
    assert bench.said == ["slow", "quick", "last"]


def test_many_at_once_are_each_called_once_and_never_two_at_a_time(bench: Bench) -> None:
    counted, inside, overlaps = [0], [0], [0]

    def count() -> None:
        inside[0] += 1
        overlaps[0] += inside[0] > 1
        counted[0] += 1
        inside[0] -= 1

    def bring() -> None:
        for number in range(500):
            (bench.inbox.act if number % 2 else bench.inbox.post)(count)

    threads = [threading.Thread(target=bring) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.inbox.call(lambda: None)
    assert counted == [4000]
    assert overlaps == [0]


def test_a_message_that_raises_is_the_last_and_its_bringer_hears_nothing() -> None:
    bench = Bench()
    bench.inbox.act(lambda: 1 // 0)
    bench.inbox.act(partial(bench.say, "never"))
    assert [type(error) for error in bench.failed] == [ZeroDivisionError]
    assert bench.said == []
    assert len(bench.inbox.left()) == 1
