"""Everything is carried out, in whichever thread, and nothing while something else is."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest

from parsl_sizer.executor import loop as module
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

    def offer(self, message: Callable[[], None], *, anywhere: bool = True) -> None:
        """From a thread that is not the main one."""
        self.other.submit(self.loop.offer, message, anywhere=anywhere).result(LIMIT_S)

    def at_work(self, then: Callable[[], None] = lambda: None) -> threading.Event:
        """Have the loop's thread at work until this is set."""
        begun, go_on = threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            assert go_on.wait(LIMIT_S)
            then()

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
    assert not made.loop._thread.is_alive()


@pytest.fixture
def hectic() -> Iterator[None]:
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


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


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


def test_who_offers_carries_it_out_if_nobody_is_at_work(bench: Bench) -> None:
    seen = Seen()
    bench.offer(seen)
    assert seen.threads == ["other_0"]


def test_the_main_thread_leaves_it_to_the_loop(bench: Bench) -> None:
    seen = Seen()
    bench.loop.offer(seen)
    assert seen.wait() == LOOP


def test_what_is_not_for_any_thread_is_left_to_the_loop(bench: Bench) -> None:
    seen = Seen()
    bench.offer(seen, anywhere=False)
    assert seen.wait() == LOOP


def test_it_is_not_overtaken(bench: Bench) -> None:
    only_there, anywhere = Seen(), Seen()
    bench.loop._offers.append((only_there, False))  # the loop has not woken up for it yet
    bench.offer(anywhere)
    assert anywhere.wait() == LOOP
    assert only_there.threads == [LOOP]


def test_nobody_waits_for_who_has_been_at_work_for_long(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr(module, "PATIENCE_S", 1000.0)
    monkeypatch.setattr(module, "time", clock)
    go_on = bench.at_work()
    clock.monotonic = lambda: 1001.0
    order: list[int] = []
    for number in range(100):
        bench.offer(lambda number=number: order.append(number))  # type: ignore[misc]
    assert order == []
    seen = Seen()
    bench.offer(seen)
    go_on.set()
    assert seen.wait() == LOOP, "and word of it was left"
    assert order == list(range(100))


def test_who_asks_has_what_it_offered_before_carried_out_before(bench: Bench) -> None:
    begun, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def work() -> None:
        begun.set()
        assert go_on.wait(LIMIT_S)

    def ask() -> None:
        bench.loop.offer(lambda: order.append("offered"), anywhere=False)
        bench.loop.ask(lambda: order.append("asked"))

    with ThreadPoolExecutor(1) as another:
        working = bench.other.submit(bench.loop.offer, work)
        assert begun.wait(LIMIT_S)
        asking = another.submit(ask)
        until(lambda: bench.loop._offers)
        go_on.set()
        working.result(LIMIT_S)
        asking.result(LIMIT_S)
    assert order == ["offered", "asked"]


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


@pytest.mark.usefixtures("hectic")
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
    assert next(overlaps) == 0
    assert all(numbers == list(range(3000)) for numbers in done.values())


def test_who_offers_without_end_does_not_keep_the_loop_from_its_turn(bench: Bench) -> None:
    enough = threading.Event()

    def keep_on(_: int) -> None:
        while not enough.is_set():
            bench.loop.offer(lambda: None)

    with ThreadPoolExecutor(3) as threads:
        going = threads.map(keep_on, range(3))
        try:
            for _ in range(20):
                seen = Seen()
                bench.loop.put(seen)
                seen.wait()
                assert bench.tended.acquire(timeout=LIMIT_S)
        finally:
            enough.set()
        list(going)


def test_what_offers_itself_again_does_not_keep_it_from_tending(bench: Bench) -> None:
    enough = threading.Event()

    def again() -> None:
        if not enough.is_set():
            bench.loop.offer(again)

    bench.loop.put(again)
    try:
        for _ in range(5):
            assert bench.tended.acquire(timeout=LIMIT_S)
    finally:
        enough.set()


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


def test_nothing_is_carried_out_between_an_error_and_the_end(bench: Bench) -> None:
    error = RuntimeError("a bug")

    def broken() -> None:
        raise error

    ends: list[list[BaseException | None]] = []

    def offers() -> None:
        for message in (broken, *[lambda: ends.append(list(bench.ends))] * 1000):
            bench.loop.offer(message)

    bench.other.submit(offers).result(LIMIT_S)
    bench.loop.join(LIMIT_S)
    assert ends == [[error]] * 1000


def test_what_was_offered_before_an_error_is_heard_at_the_end(bench: Bench) -> None:
    error = RuntimeError("a bug")

    def broken() -> None:
        raise error

    go_on, seen = bench.at_work(then=broken), Seen()
    bench.offer(seen)
    go_on.set()
    assert seen.wait() == LOOP
    assert bench.ends == [error]


@pytest.mark.usefixtures("hectic")
@pytest.mark.parametrize("fails", [True, False])
def test_whenever_it_ends_every_offer_is_carried_out_once(fails: bool) -> None:
    for _ in range(50):
        bench, done = Bench(), list[int]()
        bench.loop.start()
        halfway = threading.Event()

        def keep_on(thread: int) -> None:
            for number in range(100):
                if number == 50:
                    halfway.set()  # noqa: B023
                bench.loop.offer(partial(done.append, 100 * thread + number))  # noqa: B023

        def end() -> None:
            bench.loop.stop()  # noqa: B023
            if fails:
                raise RuntimeError("a bug")

        with ThreadPoolExecutor(3) as threads:
            going = threads.map(keep_on, range(3))
            assert halfway.wait(LIMIT_S)
            bench.loop.put(end)
            list(going)
        bench.loop.join(LIMIT_S)
        bench.other.shutdown()
        assert sorted(done) == list(range(300))


def test_who_is_at_work_may_stop_it_and_does_not_wait_for_its_own_end(bench: Bench) -> None:
    def stop() -> None:
        bench.loop.ask(bench.loop.stop)
        bench.loop.join(LIMIT_S)

    bench.offer(stop)
    bench.loop.join(LIMIT_S)
    assert bench.ends == [None]
