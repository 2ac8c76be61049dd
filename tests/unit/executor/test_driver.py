"""The loop that drives the sizer: every future gets an answer, whatever goes wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import pytest
from parsl.executors.errors import BadStateException

from parsl_sizer.engines import Engine
from parsl_sizer.executor import driver
from parsl_sizer.executor.arguments import unsized
from parsl_sizer.executor.calls import Call
from parsl_sizer.executor.carried import Ticket
from parsl_sizer.executor.driver import Answered, Driver, Job, ShutDown
from parsl_sizer.executor.history import nothing_known
from parsl_sizer.executor.splitting import Original
from parsl_sizer.executor.story import SizedFuture
from parsl_sizer.model import (
    Attempt,
    Ending,
    Kind,
    Node,
    Outcome,
    Resources,
    ResourcesExhausted,
    SizerError,
    TaskInfo,
    Usage,
)
from parsl_sizer.sizing import Categories, Consult, Sizer
from parsl_sizer.strategies import Setting, catalog

LIMIT_S = 20.0
NODE = Node("n1", Resources(cores=4, memory=1e9, disk=1e12))


class Inner:
    """An inner executor whose calls end when the test says so."""

    def __init__(self) -> None:
        self.calls: list[Future[Any]] = []
        self.bad_state_is_set = False
        self.executor_exception = RuntimeError("the engine is dead")
        self.refuses: Exception | None = None
        self.label = "inner"

    def submit(self, function: Any, specification: Any, *args: Any) -> Future[Any]:
        if self.refuses is not None:
            raise self.refuses
        future: Future[Any] = Future()
        self.calls.append(future)
        return future


class Pretended(Engine):
    """An engine with one node."""

    name = "pretended"
    isolations = ("inline",)

    def __init__(self) -> None:
        super().__init__(Inner())
        self.error: Exception | None = None
        self.here = [NODE]
        self.closed = 0

    def close(self) -> None:
        self.closed += 1

    def nodes(self) -> list[Node]:
        if self.error is not None:
            raise self.error
        return list(self.here)


class Bench:
    """A driver and what goes with it."""

    from_main = True
    """Whether it is the main thread that submits."""

    def __init__(
        self,
        *,
        consults: bool = False,
        load: Callable[[TaskInfo], Future[Sequence[Outcome]]] | None = None,
    ) -> None:
        self.engine = Pretended()
        self.inner: Inner = self.engine.inner
        self.sizer = Sizer(unsized(), consults=consults, loads=load is not None)
        self.asked: list[tuple[Consult, Answered]] = []
        self.driver = Driver(
            self.sizer,
            self.engine,
            load=load or nothing_known,
            consult=lambda job, consult, answered: self.asked.append((consult, answered)),
        )
        self.count = 0

    def submit(
        self, memory: float = 1e9, ticket: Ticket | None = None, category: str = "align"
    ) -> SizedFuture:
        self.count += 1
        requested = {Kind.MEMORY: memory}
        task = TaskInfo(self.count, category, requested=requested)
        job = Job(task, Call(len, ("abc",), {}, "inline", {}, "ledger"), SizedFuture(self.count))
        job.ticket = ticket
        job.original = Original(len, {}, job.call)
        self.give(job)
        return job.future

    def give(self, job: Job) -> None:
        if self.from_main:
            self.driver.submit(job)
        else:  # as Parsl does
            with ThreadPoolExecutor(1) as other:
                other.submit(self.driver.submit, job).result(LIMIT_S)

    def launched(self, count: int) -> Future[Any]:
        until(lambda: len(self.inner.calls) == count)
        return self.inner.calls[-1]


@pytest.fixture(autouse=True, params=["from main", "from another"])
def which_thread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "from_main", request.param == "from main")


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = Bench(consults=getattr(request, "param", False))
    made.driver.start()
    yield made
    made.driver.stop_watching()
    made.driver.finish()
    names = {thread.name for thread in threading.enumerate()}
    assert not names & {"parsl_sizer-loop", "parsl_sizer-nodes"}


def test_a_task_is_launched_and_its_future_resolved(bench: Bench) -> None:
    future = bench.submit()
    bench.launched(1).set_result("the result")
    assert future.result(LIMIT_S) == "the result"
    assert future.story.sizing().attempts[0].ending is Ending.DONE
    assert len(bench.driver) == 0


def test_what_was_cancelled_while_it_waited_is_not_launched(bench: Bench) -> None:
    first, *waiting, last = [Ticket() for _ in range(2000)]
    futures = [bench.submit(ticket=ticket) for ticket in (first, *waiting, last)]
    call = bench.launched(1)
    assert first.running()
    assert not first.cancel()
    assert all(ticket.cancel() for ticket in waiting)
    call.set_result("the first")
    bench.launched(2).set_result("the last")
    assert futures[0].result(LIMIT_S) == "the first"
    assert futures[-1].result(LIMIT_S) == "the last"
    assert isinstance(futures[1].exception(LIMIT_S), CancelledError)
    assert (waiting[0].story, last.story) == (None, futures[-1].story)
    assert len(bench.driver) == len(bench.sizer) == bench.driver.running == 0


@pytest.mark.parametrize("why", ["refused", "unequipped"])
def test_what_a_worker_did_not_run_is_sent_again(bench: Bench, why: str) -> None:
    future = bench.submit()
    for sent in (1, 2, 3):
        bench.launched(sent).set_result({"parsl_sizer": 1, "ending": why})
    bench.launched(4).set_result("the result")
    assert future.result(LIMIT_S) == "the result"
    assert len(future.story.sizing().attempts) == 1
    assert bench.driver.running == bench.driver.held == 0


def test_what_a_worker_did_not_run_fails_once_the_run_is_over(bench: Bench) -> None:
    future = bench.submit()
    call = bench.launched(1)
    bench.driver.drain()
    call.set_result({"parsl_sizer": 1, "ending": "refused"})
    with pytest.raises(ShutDown):
        future.result(LIMIT_S)


def test_an_engine_may_hold_its_lock_while_it_fails_its_calls(bench: Bench) -> None:
    """Work Queue's does, when its manager has died; it takes that lock to submit, too."""
    futures = [bench.submit() for _ in range(2)]
    call = bench.launched(1)
    lock, submit = threading.Lock(), bench.inner.submit

    def locked(*args: Any) -> Future[Any]:
        with lock:
            return submit(*args)

    bench.inner.submit = locked  # type: ignore[method-assign]
    with lock:
        call.set_exception(RuntimeError("the manager has died"))
    bench.launched(2).set_result("the result")
    with pytest.raises(RuntimeError, match="the manager has died"):
        futures[0].result(LIMIT_S)
    assert futures[1].result(LIMIT_S) == "the result"


def test_a_callback_may_shut_it_down() -> None:
    bench = Bench()
    bench.driver.start()
    future, waiting = bench.submit(), bench.submit()
    is_down = threading.Event()

    def shut_down(_: Future[Any]) -> None:
        bench.driver.stop_watching()
        bench.driver.drain()
        bench.driver.finish()
        is_down.set()

    future.add_done_callback(shut_down)
    bench.launched(1).set_result("the result")
    assert is_down.wait(LIMIT_S)
    assert future.result(LIMIT_S) == "the result"
    with pytest.raises(ShutDown):
        waiting.result(LIMIT_S)
    until(lambda: all(thread.name != "parsl_sizer-loop" for thread in threading.enumerate()))


def test_what_is_stated_of_nodes_is_known_before_anything_can_be_submitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    monkeypatch.setattr(bench.engine, "stated", lambda: NODE.capacity)
    monkeypatch.setattr(bench.driver._loop, "start", lambda: None)
    bench.driver.start()
    bench.driver.stop_watching()
    assert bench.sizer.largest == NODE.capacity
    assert not bench.driver.room()


class Slow:
    """What looks up the past, and says nothing of a category before the test lets it."""

    def __init__(self) -> None:
        self.asked: dict[str, Future[Sequence[Outcome]]] = {}

    def load(self, task: TaskInfo) -> Future[Sequence[Outcome]]:
        assert task.category not in self.asked
        return self.asked.setdefault(task.category, Future())


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def warm(slow: Slow) -> Iterator[Bench]:
    made = Bench(load=slow.load)
    made.driver.start()
    yield made
    made.driver.stop_watching()
    made.driver.finish()


def test_while_the_past_of_a_category_is_looked_up_earlier_tasks_run_and_settle(
    warm: Bench, slow: Slow
) -> None:
    other = warm.submit(memory=1e8, category="other")
    waits = [warm.submit(memory=1e8, category="hangs") for _ in range(3)]
    behind = warm.submit(memory=1e8, category="other")
    until(lambda: "other" in slow.asked)
    slow.asked["other"].set_result([])
    warm.launched(1).set_result("the other")
    assert other.result(LIMIT_S) == "the other"
    warm.launched(2).set_result("behind")  # it goes past them, after a moment
    assert behind.result(LIMIT_S) == "behind"
    assert len(warm.inner.calls) == 2
    slow.asked["hangs"].set_result([])
    warm.launched(5)
    for number, call in enumerate(warm.inner.calls[2:]):
        call.set_result(number)
    assert [future.result(LIMIT_S) for future in waits] == [0, 1, 2]


def test_to_go_past_a_category_that_is_looked_up_takes_no_other_event(
    warm: Bench, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "TICK_S", 1e6)
    monkeypatch.setattr(warm.driver, "_tick_at", time.monotonic() + 1e6)
    warm.submit(memory=1e8, category="hangs")
    warm.submit(memory=1e8, category="other")
    until(lambda: "other" in slow.asked)
    slow.asked["other"].set_result([])
    warm.launched(1)


@pytest.mark.parametrize("how", ["fails", "is cancelled", "cannot be asked for"])
def test_if_the_past_cannot_be_looked_up_tasks_run_without_it(
    how: str, slow: Slow, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(task: TaskInfo) -> Future[Sequence[Outcome]]:
        if how == "cannot be asked for":
            raise RuntimeError("no thread is left")
        return slow.load(task)

    bench = Bench(load=broken)
    bench.driver.start()
    future = bench.submit()
    if how == "fails":
        until(lambda: slow.asked)
        slow.asked["align"].set_exception(RuntimeError("the archive is gone"))
    elif how == "is cancelled":
        until(lambda: slow.asked)
        slow.asked["align"].cancel()
    bench.launched(1).set_result("the result")
    assert future.result(LIMIT_S) == "the result"
    assert sum("nothing is known of earlier runs" in text for text in caplog.messages) == 1
    bench.driver.stop_watching()
    bench.driver.finish()


def test_a_task_is_cancelled_while_its_past_is_looked_up(warm: Bench, slow: Slow) -> None:
    tickets = [Ticket(), Ticket()]
    futures = [warm.submit(ticket=ticket) for ticket in tickets]
    until(lambda: slow.asked)
    assert tickets[0].cancel()
    assert isinstance(futures[0].exception(LIMIT_S), CancelledError)
    slow.asked["align"].set_result([])
    warm.launched(1).set_result("the result")
    assert futures[1].result(LIMIT_S) == "the result"


def test_shutting_down_fails_what_waits_for_its_past(warm: Bench, slow: Slow) -> None:
    futures = [warm.submit() for _ in range(3)]
    until(lambda: slow.asked)
    warm.driver.stop_watching()
    warm.driver.drain()
    for future in futures:
        with pytest.raises(ShutDown, match="before the task could start"):
            future.result(LIMIT_S)
    slow.asked["align"].set_result([])
    warm.driver.finish()
    assert warm.inner.calls == []


def test_the_share_of_a_task_is_by_the_past_that_comes_with_the_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    strategy = catalog.family("max-throughput", Setting((Kind.MEMORY,)))
    bench.sizer = Sizer(Categories(strategy), loads=True)
    monkeypatch.setattr(bench.engine, "stated", lambda: NODE.capacity)
    bench.driver = Driver(bench.sizer, bench.engine)
    bench.driver.start()
    task = TaskInfo("stage", "align")
    attempt = Attempt(TaskInfo("earlier", "align"), 1, {Kind.MEMORY: 1e9})
    usage = Usage({Kind.MEMORY: 0.2e9}, wall_s=1.0)
    past = [Outcome(attempt, Ending.DONE, usage=usage) for _ in range(20)]
    assert bench.driver.share(task, past) == pytest.approx(0.2, rel=0.3)
    assert bench.driver.share(TaskInfo("stage", "sort"), ()) == 1.0
    bench.driver.stop_watching()
    bench.driver.finish()


def test_who_submits_does_not_run_what_waits_for_another_task(bench: Bench) -> None:
    future, threads = bench.submit(), list[str]()
    bench.launched(1)
    future.add_done_callback(lambda _: threads.append(threading.current_thread().name))
    [job] = bench.driver._jobs.values()
    with ThreadPoolExecutor(1) as other:
        other.submit(bench.driver._loop.offer, lambda: bench.driver._over(job, "over", None))
        assert future.result(LIMIT_S) == "over"
    until(lambda: threads)
    assert threads == ["parsl_sizer-loop"]


def test_an_errand_is_submitted_from_the_loop_and_is_no_job(bench: Bench) -> None:
    threads = []

    def submit() -> Future[Any]:
        threads.append(threading.current_thread().name)
        return bench.inner.submit(None, {})

    answers = [bench.driver.errand(submit) for _ in range(2)]
    bench.launched(2)
    bench.inner.calls[0].set_result("done")
    bench.inner.calls[1].set_exception(ValueError("as it should"))
    assert answers[0].result(LIMIT_S) == "done"
    with pytest.raises(ValueError, match="as it should"):
        answers[1].result(LIMIT_S)
    assert set(threads) == {"parsl_sizer-loop"}
    assert len(bench.driver) == 0
    bench.inner.refuses = RuntimeError("not now")
    with pytest.raises(RuntimeError, match="not now"):
        bench.driver.errand(submit).result(LIMIT_S)


def test_what_finds_no_room_waits_for_it(bench: Bench) -> None:
    futures = [bench.submit() for _ in range(2)]
    bench.launched(1).set_result(1)
    assert futures[0].result(LIMIT_S) == 1
    bench.launched(2).set_result(2)
    assert futures[1].result(LIMIT_S) == 2


def test_small_requests_are_not_held_back_by_large_ones_of_their_category(bench: Bench) -> None:
    bench.submit(memory=0.7e9)
    large = [bench.submit(memory=0.7e9) for _ in range(5)]
    small = bench.submit(memory=0.1e9)
    bench.launched(2).set_result("small")
    assert small.result(LIMIT_S) == "small"
    assert not any(future.done() for future in large)


def test_a_submission_that_the_inner_executor_refuses_fails_its_task_alone(bench: Bench) -> None:
    bench.inner.refuses = ValueError("not that one")
    with pytest.raises(ValueError, match="not that one"):
        bench.submit().result(LIMIT_S)
    bench.inner.refuses = None
    future = bench.submit()
    bench.launched(1).set_result(1)
    assert future.result(LIMIT_S) == 1


@pytest.mark.parametrize("error", [ValueError("oh"), SystemExit(1)])
def test_a_callback_of_the_user_that_raises_stops_nothing(
    bench: Bench, error: BaseException
) -> None:
    def raises(done: Future[Any]) -> None:
        raise error

    future = bench.submit()
    future.add_done_callback(raises)
    bench.launched(1).set_result(1)
    assert future.result(LIMIT_S) == 1
    after = bench.submit()
    bench.launched(2).set_result(2)
    assert after.result(LIMIT_S) == 2


def test_a_future_that_was_cancelled_before_it_began_is_not_run(bench: Bench) -> None:
    first, second = bench.submit(), bench.submit()
    bench.launched(1)
    bench.inner.calls[0].set_result(1)
    assert first.result(LIMIT_S) == 1
    bench.launched(2).set_result(2)
    assert second.result(LIMIT_S) == 2
    early = SizedFuture(99)
    assert early.cancel()
    task = TaskInfo(99, "align")
    bench.give(Job(task, Call(len, (), {}, "inline", {}, "ledger"), early))
    after = bench.submit()
    bench.launched(3).set_result(3)
    assert after.result(LIMIT_S) == 3
    assert early.cancelled()


def test_if_the_loop_fails_every_future_fails_with_the_reason(bench: Bench) -> None:
    runs, waits = bench.submit(), bench.submit()
    bench.launched(1)

    def broken(event: object, now: float) -> list[Any]:
        raise RuntimeError("a bug")

    bench.sizer.handle = broken
    late = bench.submit()
    for future in (runs, waits, late):
        with pytest.raises(SizerError, match="The sizing loop failed: RuntimeError"):
            future.result(LIMIT_S)
    with pytest.raises(SizerError, match="The sizing loop failed"):
        bench.submit().result(LIMIT_S)


def test_a_report_that_cannot_be_read_fails_its_task_alone(bench: Bench) -> None:
    future = bench.submit()
    bench.launched(1).set_result({"parsl_sizer": 1, "ending": [], "payload": object()})
    wait = future.exception(LIMIT_S)
    assert isinstance(wait, Exception)
    after = bench.submit()
    bench.launched(2).set_result(2)
    assert after.result(LIMIT_S) == 2


def test_reports_that_say_what_cannot_be_are_counted(bench: Bench) -> None:
    future = bench.submit()
    poisoned = {"parsl_sizer": 1, "ending": "returned", "peak": {"memory": -1.0}, "wall_s": 1.0}
    bench.launched(1).set_result(poisoned | {"result": "fine", "payload": None})
    assert future.result(LIMIT_S) == "fine"
    assert bench.driver.rejected == 1
    assert not future.story.sizing().attempts[0].peak


def test_nodes_that_cannot_be_asked_for_are_asked_for_again(bench: Bench) -> None:
    bench.engine.error = OSError("no answer")
    future = bench.submit()
    bench.launched(1).set_result(1)
    assert future.result(LIMIT_S) == 1


def test_what_runs_on_a_node_that_gets_another_name_holds_what_it_has_there(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second task found all of the memory free that the first one holds."""
    bench.submit(memory=0.6e9)
    first = bench.launched(1)
    monkeypatch.setattr(bench.engine, "renamed", lambda name: "n1 job 7")
    bench.engine.here = [Node("n1 job 7", NODE.capacity)]
    until(lambda: list(bench.driver._nodes) == ["n1 job 7"])
    second, third = bench.submit(memory=0.6e9), bench.submit(memory=0.3e9)
    bench.launched(2).set_result("small")
    assert third.result(LIMIT_S) == "small"
    first.set_result("large")
    bench.launched(3).set_result("later")
    assert second.result(LIMIT_S) == "later"


def test_a_bad_state_reaches_tasks_that_are_held_also_while_others_keep_coming(
    bench: Bench,
) -> None:
    bench.submit()
    bench.launched(1)
    held = bench.submit()
    bench.inner.bad_state_is_set = True
    end = time.monotonic() + LIMIT_S
    while not held.done() and time.monotonic() < end:
        bench.submit()
        time.sleep(0.05)
    with pytest.raises(BadStateException, match="the engine is dead"):
        held.result(0)


def test_shutting_down_fails_what_waits_then_what_runs_then_what_comes(bench: Bench) -> None:
    runs, waits = bench.submit(), bench.submit()
    bench.launched(1)
    bench.driver.stop_watching()
    bench.driver.drain()
    with pytest.raises(ShutDown, match="before the task could start"):
        waits.result(LIMIT_S)
    assert not runs.done()
    with pytest.raises(ShutDown):
        bench.submit().result(LIMIT_S)
    bench.driver.finish()
    with pytest.raises(ShutDown, match="while the task was running"):
        runs.result(LIMIT_S)
    with pytest.raises(ShutDown):
        bench.submit().result(LIMIT_S)
    bench.inner.calls[0].set_result("too late")  # nobody minds


def test_what_runs_may_still_come_back_while_it_shuts_down(bench: Bench) -> None:
    runs = bench.submit()
    call = bench.launched(1)
    bench.driver.stop_watching()
    bench.driver.drain()
    call.set_result("just in time")
    assert runs.result(LIMIT_S) == "just in time"


def test_the_demand_is_told_in_nodes(bench: Bench) -> None:
    assert bench.driver.demand() == 0
    for _ in range(5):
        bench.submit(memory=0.5e9)
    until(lambda: bench.driver.demand() == pytest.approx(2.5))
    assert len(bench.driver) == 5


def test_what_was_cancelled_is_no_demand_while_no_node_is_there(bench: Bench) -> None:
    future = bench.submit()
    bench.launched(1).set_result("the result")
    assert future.result(LIMIT_S) == "the result"
    bench.engine.here.clear()
    until(lambda: not bench.driver.room())
    tickets = [Ticket() for _ in range(5)]
    for ticket in tickets:
        bench.submit(ticket=ticket)
    until(lambda: bench.driver.demand() == 5)
    assert all(ticket.cancel() for ticket in tickets[1:])
    until(lambda: bench.driver.demand() == 1)


def test_a_probe_that_fails_does_not_end_the_loop(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def probe() -> None:
        asked.append(1)
        raise RuntimeError("the engine is dead")

    monkeypatch.setattr(bench.engine, "probe", probe)
    until(lambda: asked)
    future = bench.submit()
    bench.launched(1).set_result("the result")
    assert future.result(LIMIT_S) == "the result"


def test_an_engine_is_closed_once_when_nobody_asks_for_nodes_any_more(bench: Bench) -> None:
    assert bench.engine.closed == 0
    bench.driver.stop_watching()
    assert bench.engine.closed == 1
    bench.driver.finish()
    assert bench.engine.closed == 1


STOPPED = {
    "parsl_sizer": 1,
    "ending": "stopped",
    "exhausted": ["memory"],
    "peak": {"memory": 1e9},
    "wall_s": 1.0,
}
asking = pytest.mark.parametrize("bench", [True], indirect=True, ids=["asking"])


def ran_out(bench: Bench) -> tuple[SizedFuture, Answered]:
    """A task that ran out, and the way to answer what is asked about it."""
    future = bench.submit()
    bench.launched(len(bench.inner.calls) or 1).set_result(STOPPED)
    until(lambda: bench.asked)
    [(consult, answered)] = bench.asked
    assert [outcome.ending for outcome in consult.outcomes] == [Ending.EXHAUSTED]
    assert not future.done()
    return future, answered


@asking
def test_a_task_that_is_split_has_the_result_of_its_parts(bench: Bench) -> None:
    future, answered = ran_out(bench)
    parts: Future[Any] = Future()
    answered(parts)
    after = bench.submit()
    bench.launched(2).set_result("another")
    assert after.result(LIMIT_S) == "another"
    assert len(bench.driver) == 1
    parts.set_result("the sum")
    assert future.result(LIMIT_S) == "the sum"
    assert [made.ending for made in future.story.sizing().attempts] == [Ending.EXHAUSTED]
    assert len(bench.driver) == bench.driver.running == 0


@asking
def test_a_task_that_is_split_has_the_error_of_its_parts(bench: Bench) -> None:
    future, answered = ran_out(bench)
    parts: Future[Any] = Future()
    parts.set_exception(ValueError("in a part"))
    answered(parts)
    with pytest.raises(ValueError, match="in a part"):
        future.result(LIMIT_S)


@asking
def test_a_task_that_is_not_split_and_cannot_grow_fails(bench: Bench) -> None:
    future, answered = ran_out(bench)
    answered(None)
    with pytest.raises(ResourcesExhausted):
        future.result(LIMIT_S)
    answered(None)  # nobody minds
    answered(Future())


@asking
def test_what_ran_out_is_final_until_a_larger_node_comes(bench: Bench) -> None:
    future, answered = ran_out(bench)
    assert not bench.driver.is_final(future)
    answered(None)
    future.exception(LIMIT_S)
    assert bench.driver.is_final(future)
    assert not bench.driver.is_final(SizedFuture(1))
    bench.engine.here.append(Node("n2", Resources(cores=64, memory=1e9, disk=1e13)))
    until(lambda: bench.driver.room() > 1e9)
    assert bench.driver.is_final(future)  # it has no more memory
    bench.engine.here.append(Node("n3", Resources(cores=1, memory=2e9)))
    until(lambda: not bench.driver.is_final(future))


@asking
@pytest.mark.parametrize("is_split", [True, False])
def test_shutting_down_fails_those_that_are_asked_about_and_those_that_are_split(
    bench: Bench, is_split: bool, caplog: pytest.LogCaptureFixture
) -> None:
    future, answered = ran_out(bench)
    future.add_done_callback(lambda _: answered(None))  # while the loop ends
    parts: Future[Any] = Future()
    if is_split:
        answered(parts)
        until(lambda: future.story is not None)
    bench.driver.stop_watching()
    bench.driver.drain()
    assert future.done() is not is_split, "parts that run may still come back"
    if not is_split:
        answered(parts)
    bench.driver.finish()
    parts.set_result("too late")
    with pytest.raises(ShutDown):
        future.result(LIMIT_S)
    assert not [record for record in caplog.records if "could not be resolved" in record.message]


@asking
def test_while_it_shuts_down_nobody_is_asked(bench: Bench) -> None:
    future = bench.submit()
    call = bench.launched(1)
    bench.driver.stop_watching()
    bench.driver.drain()
    call.set_result(STOPPED)
    with pytest.raises(ResourcesExhausted):
        future.result(LIMIT_S)
    assert bench.asked == []


@asking
def test_a_bad_state_reaches_a_task_that_is_asked_about(bench: Bench) -> None:
    future, answered = ran_out(bench)
    bench.inner.bad_state_is_set = True
    with pytest.raises(BadStateException, match="the engine is dead"):
        future.result(LIMIT_S)
    answered(Future())  # nobody minds
