"""Everything is carried out, in whichever thread, and nothing while something else is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from parsl_sizer.executor.loop import Loop

LIMIT_S = 20.0
LOOP = "parsl_sizer-loop"


class Bench:
    """A loop, and what it has told."""

    def __init__(self) -> None:
        self.tended = threading.Semaphore(0)
        self.ends: list[BaseException | None] = []
        self.loop = Loop(self._tend, self.ends.append)
        self.other = ThreadPoolExecutor(1, "other")

    def _tend(self) -> float:
        self.tended.release()
        return LIMIT_S

    def offer(self, message: Callable[[], None]) -> None:
        """From a thread that is not the main one."""
        self.other.submit(self.loop.offer, message).result(LIMIT_S)

    def at_work(self) -> threading.Event:
        """Have the loop's thread at work until this is set."""
        begun, go_on = threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            assert go_on.wait(LIMIT_S)

        self.loop.put(work)
        assert begun.wait(LIMIT_S)
        return go_on


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    made.loop.start()
    yield made
    made.loop.put(made.loop.stop)
    made.loop.join(LIMIT_S)
    made.other.shutdown()
    assert len(made.ends) == 1
    assert LOOP not in {thread.name for thread in threading.enumerate()}


class Seen:
    """Messages that say which thread has carried them out."""

    def __init__(self) -> None:
        self.threads: list[str] = []
        self.is_there = threading.Event()

    def __call__(self) -> None:
        self.threads.append(threading.current_thread().name)
        self.is_there.set()

    def wait(self) -> str:
        assert self.is_there.wait(LIMIT_S)
        self.is_there.clear()
        return self.threads[-1]


def test_who_offers_carries_it_out_if_nobody_is_at_work(bench: Bench) -> None:
    seen = Seen()
    bench.offer(seen)
    assert seen.threads == ["other_0"]


def test_the_main_thread_leaves_it_to_the_loop(bench: Bench) -> None:
    seen = Seen()
    bench.loop.offer(seen)
    assert seen.wait() == LOOP


def test_nobody_waits_for_long_for_who_is_at_work(bench: Bench) -> None:
    go_on = bench.at_work()
    order: list[int] = []
    for number in range(100):
        bench.offer(lambda number=number: order.append(number))  # type: ignore[misc]
    assert order == []
    go_on.set()
    seen = Seen()
    bench.loop.offer(seen)
    assert seen.wait() == LOOP
    assert order == list(range(100))


@pytest.mark.parametrize("by_loop", [True, False])
def test_what_is_offered_by_who_is_at_work_comes_after_it(bench: Bench, by_loop: bool) -> None:
    seen, order = Seen(), list[str]()

    def outer() -> None:
        bench.loop.offer(inner)
        order.append("outer")

    def inner() -> None:
        order.append("inner")
        seen()

    if by_loop:
        bench.loop.put(outer)
    else:
        bench.offer(outer)
    seen.wait()
    assert order == ["outer", "inner"]


def test_one_at_a_time_and_those_of_a_thread_in_order(bench: Bench) -> None:
    """Threads that offer and threads that put, and none of it is lost or done at a time."""
    inside: list[str] = []
    done: dict[int, list[int]] = {thread: [] for thread in range(6)}
    overlaps = count()

    def act(thread: int, number: int) -> None:
        if inside:
            next(overlaps)
        inside.append("")
        done[thread].append(number)
        inside.pop()

    def keep_on(thread: int) -> None:
        tell = bench.loop.put if thread % 2 else bench.loop.offer
        for number in range(3000):
            tell(lambda number=number: act(thread, number))  # type: ignore[misc]

    with ThreadPoolExecutor(len(done)) as threads:
        list(threads.map(keep_on, done))
    bench.loop.ask(lambda: None)
    bench.loop.ask(lambda: None)  # what was offered comes after what was put
    assert next(overlaps) == 0
    assert all(numbers == list(range(3000)) for numbers in done.values())


def test_who_offers_without_end_does_not_keep_the_loop_from_its_turn(bench: Bench) -> None:
    enough = threading.Event()

    def keep_on() -> None:
        while not enough.is_set():
            bench.loop.offer(lambda: None)

    going = bench.other.submit(keep_on)
    for _ in range(20):
        bench.loop.ask(lambda: None)
        assert bench.tended.acquire(timeout=LIMIT_S)
    enough.set()
    going.result(LIMIT_S)


def test_the_loop_is_woken_when_who_offers_says_so(bench: Bench) -> None:
    bench.offer(lambda: None)
    assert not bench.tended.acquire(timeout=0.05)
    bench.offer(bench.loop.wake)
    assert bench.tended.acquire(timeout=LIMIT_S)


@pytest.mark.parametrize("by_loop", [True, False])
def test_what_raises_ends_it_and_what_is_offered_then_is_still_heard(
    bench: Bench, by_loop: bool
) -> None:
    error = RuntimeError("a bug")

    def broken() -> None:
        raise error

    if by_loop:
        bench.loop.put(broken)
    else:
        bench.offer(broken)
    bench.loop.join(LIMIT_S)
    assert bench.ends == [error]
    seen = Seen()
    bench.loop.offer(seen)
    assert seen.wait() == "MainThread"
    bench.offer(lambda: bench.loop.offer(seen))  # as a callback does that does not give up
    assert seen.wait() == "other_0"
    bench.loop.ask(lambda: None)  # nobody waits for it for ever


def test_who_is_at_work_may_stop_it_and_does_not_wait_for_its_own_end(bench: Bench) -> None:
    def stop() -> None:
        bench.loop.ask(bench.loop.stop)
        bench.loop.join(LIMIT_S)

    bench.offer(stop)
    bench.loop.join(LIMIT_S)
    assert bench.ends == [None]
