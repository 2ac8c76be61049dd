"""How an attempt ended: who is believed, and what is not."""

from __future__ import annotations

import math
from concurrent.futures import Future
from typing import Any

import pytest
from parsl.app.errors import BashExitFailure, RemoteExceptionWrapper
from parsl.executors import ThreadPoolExecutor
from parsl.executors.errors import BadStateException
from parsl.executors.high_throughput.errors import ManagerLost, WorkerLost
from parsl.serialize import serialize

from parsl_sizer.engines import Engine
from parsl_sizer.engines.base import NodeLedgers
from parsl_sizer.engines.htex import HighThroughput
from parsl_sizer.engines.threads import Threads
from parsl_sizer.executor import ending
from parsl_sizer.executor.ending import TaskLost
from parsl_sizer.model import Attempt, Ending, Kind, TaskInfo

MEMORY = Kind.MEMORY
DONE, RAISED, EXHAUSTED, LOST = Ending.DONE, Ending.RAISED, Ending.EXHAUSTED, Ending.LOST
NOW = 100.0


def attempt(**allocation: float) -> Attempt:
    amounts = {Kind(name): amount for name, amount in allocation.items()}
    return Attempt(TaskInfo(1, "align"), 1, amounts, launched_at=90.0)


LIMITED = attempt(memory=1000.0, disk=500.0)
THREADS = Threads(ThreadPoolExecutor())


class Htex(HighThroughput):
    """Its errors only: nothing is started."""

    ledgers = None  # type: ignore[assignment]

    def __init__(self) -> None:
        pass


def done(value: Any = None, error: BaseException | None = None) -> Future[Any]:
    future: Future[Any] = Future()
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
    return future


def report(said: str = "returned", memory: float | None = 100.0, **more: Any) -> dict[str, Any]:
    known = {
        "parsl_sizer": 1,
        "ending": said,
        "exhausted": [],
        "peak": {} if memory is None else {"memory": memory},
        "wall_s": 5.0,
        "cpu_s": 2.5,
        "series": [(0.1, 50), (0.2, 100)],
        "host": "n1",
        "isolation": "runner",
        "layers": ["proc", "hwm"],
        "payload": serialize("the result"),
    }
    return known | more


def wrapped(error: BaseException) -> RemoteExceptionWrapper:
    return RemoteExceptionWrapper(type(error), error, None)


def read(
    value: Any = None,
    error: BaseException | None = None,
    given: Attempt = LIMITED,
    engine: Engine = THREADS,
) -> ending.Answer:
    return ending.read(done(value, error), given, engine, NOW)


def test_a_result_is_unpacked_and_its_usage_kept() -> None:
    answer = read(report())
    assert (answer.value, answer.error) == ("the result", None)
    outcome = answer.outcome
    assert outcome.ending is DONE
    assert outcome.ended_at == NOW
    assert not outcome.overran
    assert outcome.usage.peak == {MEMORY: 100.0}
    assert (outcome.usage.wall_s, outcome.usage.cpu_s) == (5.0, 2.5)
    assert outcome.usage.series == ((0.1, 50.0), (0.2, 100.0))
    assert (outcome.host, outcome.isolation, outcome.layers) == ("n1", "runner", ("proc", "hwm"))
    assert not answer.rejected


def test_a_result_that_came_inline_is_the_object_itself() -> None:
    thing = object()
    assert read(report(payload=None, result=thing)).value is thing


def test_a_result_without_a_report_is_the_result() -> None:
    for value in (5, {"ending": "of a story"}, {"parsl_sizer": 1}, None):
        answer = read(value)
        assert answer.value is value
        assert answer.outcome.ending is DONE
        assert answer.outcome.usage.wall_s == 10.0
        assert answer.outcome.usage.peak == {}


@pytest.mark.parametrize(("peak", "overran"), [(999.0, False), (1000.0, False), (1001.0, True)])
def test_who_returned_above_the_allocation_overran(peak: float, overran: bool) -> None:
    outcome = read(report(memory=peak)).outcome
    assert outcome.ending is DONE
    assert outcome.overran is overran


@pytest.mark.parametrize("kinds", [["memory"], ["disk"], ["memory", "disk"]])
def test_the_monitors_word_is_the_first(kinds: list[str]) -> None:
    answer = read(report("stopped", exhausted=kinds, payload=None))
    assert answer.outcome.ending is EXHAUSTED
    assert answer.outcome.exhausted == {Kind(kind) for kind in kinds}


def test_a_cgroup_that_counted_a_kill_comes_next() -> None:
    answer = read(report("died", 10.0, out_of_memory=True, signal=9, exhausted=["memory"]))
    assert answer.outcome.ending is EXHAUSTED
    assert answer.outcome.exhausted == {MEMORY}


@pytest.mark.parametrize(
    ("memory", "signal", "expected"),
    [
        (950.0, 9, EXHAUSTED),
        (1200.0, 9, EXHAUSTED),
        (500.0, 9, LOST),
        (None, 9, LOST),
        (950.0, 15, LOST),
        (950.0, 11, LOST),
    ],
)
def test_a_process_that_was_killed_is_exhausted_only_near_its_limit(
    memory: float | None, signal: int, expected: Ending
) -> None:
    answer = read(report("died", memory, signal=signal, payload=None))
    assert answer.outcome.ending is expected
    assert isinstance(answer.error, TaskLost)
    assert f"was killed by signal {signal} on n1" in str(answer.error)


def test_a_process_that_just_ended_is_lost_and_says_how() -> None:
    answer = read(report("died", exit_code=3, signal=None, payload=None))
    assert answer.outcome.ending is LOST
    assert "ended with exit status 3" in str(answer.error)


def test_a_process_that_was_replaced_is_lost_and_its_error_says_why() -> None:
    answer = read(report("died", reason="sent something else and was replaced", payload=None))
    assert answer.outcome.ending is LOST
    assert "sent something else and was replaced on n1" in str(answer.error)


@pytest.mark.parametrize(
    ("memory", "expected"), [(10.0, RAISED), (499.0, RAISED), (500.0, EXHAUSTED), (None, EXHAUSTED)]
)
@pytest.mark.parametrize("how", ["returned", "raised", "inline"])
def test_a_memory_error_is_exhaustion_only_near_the_limit(
    memory: float | None, expected: Ending, how: str
) -> None:
    error = MemoryError("no more")
    if how == "inline":
        given = report("raised", memory, payload=None, error=error)
    else:
        given = report(how, memory, payload=serialize(wrapped(error)))
    answer = read(given)
    assert answer.outcome.ending is expected
    assert isinstance(answer.cause(), MemoryError)


def test_a_memory_error_without_a_limit_is_the_users() -> None:
    for given in (attempt(), attempt(disk=5.0)):
        for memory in (None, 10.0):
            payload = serialize(wrapped(MemoryError()))
            answer = read(report(memory=memory, payload=payload), given=given)
            assert answer.outcome.ending is RAISED


@pytest.mark.parametrize(
    ("code", "memory", "expected"),
    [
        (-9, 950.0, EXHAUSTED),
        (137, 950.0, EXHAUSTED),
        (-9, 10.0, LOST),
        (137, None, LOST),
        (1, 950.0, RAISED),
        (-15, 950.0, RAISED),
    ],
)
def test_a_bash_app_that_was_killed(code: int, memory: float | None, expected: Ending) -> None:
    value = wrapped(BashExitFailure("align", code))
    answer = read(report(memory=memory, payload=serialize(value)))
    assert answer.outcome.ending is expected
    assert isinstance(answer.value, RemoteExceptionWrapper)  # Parsl unwraps it


def test_an_error_of_the_users_own_is_passed_on_as_it_came() -> None:
    answer = read(report(payload=serialize(wrapped(ValueError("mine")))))
    assert answer.outcome.ending is RAISED
    assert isinstance(answer.value, RemoteExceptionWrapper)
    answer = read(report("raised", payload=serialize(wrapped(ValueError("mine")))))
    assert answer.outcome.ending is RAISED
    assert isinstance(answer.error, ValueError)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_an_error_that_would_end_a_thread_is_wrapped_in_one_that_does_not(
    error: BaseException,
) -> None:
    """Else it would end the threads of Parsl that see it, and nobody would get an answer."""
    for answer in (
        read(report("raised", payload=serialize(wrapped(error)))),
        read(report("raised", payload=None, error=error)),
        read(error=error),
    ):
        assert answer.outcome.ending is RAISED
        assert isinstance(answer.error, Exception)
        assert type(error).__name__ in str(answer.error)


class Sour:
    """Cannot be unpacked."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce__(self) -> Any:
        return _turned, (self.error,)


def _turned(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [RuntimeError("sour"), SystemExit(1)])
def test_a_result_that_cannot_be_unpacked_is_the_tasks_error(error: BaseException) -> None:
    answer = read(report(payload=serialize(Sour(error))))
    assert answer.outcome.ending is RAISED
    assert isinstance(answer.error, Exception)
    assert type(error).__name__ in repr(answer.error)


def test_a_failure_that_says_nothing_is_an_error_all_the_same() -> None:
    answer = read(report("raised", payload=None))
    assert answer.outcome.ending is RAISED
    assert isinstance(answer.error, TaskLost)


def lost(kind: type[Exception]) -> Exception:
    return WorkerLost(1, "n1") if kind is WorkerLost else ManagerLost(b"m1", "n1")


def test_the_engines_own_errors() -> None:
    engine = Htex()
    worker = read(error=lost(WorkerLost), engine=engine)
    assert worker.outcome.ending is LOST
    assert not worker.outcome.node_lost
    assert isinstance(worker.error, WorkerLost)
    manager = read(error=lost(ManagerLost), engine=engine)
    assert manager.outcome.ending is LOST
    assert manager.outcome.node_lost
    bad = read(error=BadStateException(THREADS.inner, ValueError("dead")), engine=engine)
    assert bad.outcome.ending is RAISED
    assert read(error=lost(WorkerLost), engine=THREADS).outcome.ending is RAISED


POISON = [
    {"peak": {"memory": -1.0}},
    {"peak": {"memory": math.nan}},
    {"peak": {"memory": math.inf}},
    {"peak": {"memory": 1e30}},
    {"peak": {"memory": 10**400}},
    {"peak": {"memory": "much"}},
    {"peak": {"memory": None}},
    {"peak": {"memory": True}},
    {"peak": {"souls": 3}},
    {"peak": [1, 2]},
    {"wall_s": -3.0},
    {"wall_s": math.nan},
    {"wall_s": 10**400},
    {"wall_s": None},
    {"cpu_s": math.nan},
    {"cpu_s": "long"},
]
HARMLESS = [
    {"series": 5},
    {"series": [1, 2]},
    {"series": [(1, 2, 3), (math.nan, 1), (1, math.inf), None]},
    {"series": "text"},
    {"layers": None},
    {"layers": 7},
    {"exhausted": None},
    {"exhausted": [[], {}, 3]},
    {"host": 3, "isolation": b"x"},
    {"node": 5},
    {"node_name": 5},
    {"node": {"cores": math.nan, "memory": 10**400, "disk": -1}},
    {"out_of_memory": "maybe"},
]


@pytest.mark.parametrize("said", ["returned", "stopped", "died"])
@pytest.mark.parametrize("poison", POISON + HARMLESS)
def test_nothing_in_a_report_is_trusted(poison: dict[str, Any], said: str) -> None:
    answer = read(report(said, peak={"memory": 10.0, "cores": 1.0}) | poison)
    usage = answer.outcome.usage
    numbers = [*usage.peak.values(), usage.wall_s, *sum(usage.series, ())]
    assert all(0 <= number <= 1e18 for number in numbers)
    assert set(usage.peak) <= set(Kind)
    assert answer.rejected is (poison in POISON)
    if said == "returned":
        assert answer.value == "the result"


@pytest.mark.parametrize("poison", HARMLESS)
def test_no_node_is_known_by_nonsense(poison: dict[str, Any]) -> None:
    engine = Htex()
    engine.inner = engine.node = engine._latest = None
    engine._facts, engine._names = {}, {}
    engine.seen(report(node={"memory": 5.0}) | poison)
    assert all(0 <= amount <= 1e18 for node in engine._facts.values() for amount in node.values())


class Grows(Htex):
    """Its tasks grow, on workers that have 5000 bytes."""

    ledgers = NodeLedgers(5000.0, {})  # type: ignore[assignment]


GROWS = Grows()


def test_an_attempt_that_grew_had_what_it_held_at_its_end() -> None:
    answer = read(report(memory=1900.0, grown={"memory": 2000.0}), engine=GROWS)
    outcome = answer.outcome
    assert outcome.ending is DONE
    assert outcome.attempt.allocation == {MEMORY: 2000.0, Kind.DISK: 500.0}
    assert outcome.attempt.given_memory == 1000.0
    assert LIMITED.given_memory == 1000.0
    assert not outcome.overran
    assert not answer.rejected
    assert "at first, it grew while" in str(outcome.attempt.why)
    stopped = report("stopped", 2100.0, exhausted=["memory"], grown={"memory": 2000.0})
    outcome = read(stopped, engine=GROWS).outcome
    assert outcome.ending is EXHAUSTED
    assert outcome.attempt.allocation[MEMORY] == 2000.0


def test_what_had_grown_and_was_killed_is_lost() -> None:
    killed = report("died", 990.0, signal=9)
    assert read(killed, engine=GROWS).outcome.ending is EXHAUSTED
    grown = report("died", 1990.0, signal=9, grown={"memory": 2000.0})
    assert read(grown, engine=GROWS).outcome.ending is LOST


def test_so_is_what_a_grown_command_was_killed_in() -> None:
    for grown, said in (({}, EXHAUSTED), ({"grown": {"memory": 2000.0}}, LOST)):
        killed = report("raised", 1990.0 if grown else 990.0, error=BashExitFailure("app", 137))
        assert read(killed | grown, engine=GROWS).outcome.ending is said


def test_an_attempt_has_grown_also_if_its_worker_is_gone_meanwhile() -> None:
    class Gone(Htex):
        ledgers = NodeLedgers(None, {})  # type: ignore[assignment]

    said = report(memory=1900.0, grown={"memory": 2000.0}, node={"memory": 5000.0})
    answer = read(said, engine=Gone())
    assert answer.outcome.attempt.allocation[MEMORY] == 2000.0
    assert not answer.rejected


@pytest.mark.parametrize(
    "grown",
    [
        *(None, 7, [], {}, {"disk": 9e9}),
        *({"memory": amount} for amount in (math.nan, -1.0, 1e300, "all", None, 999.0, 5001.0)),
    ],
)
def test_growth_that_cannot_be_is_not_believed(grown: object) -> None:
    answer = read(report(grown=grown), engine=GROWS)
    assert answer.outcome.attempt == LIMITED
    assert answer.rejected


def test_an_attempt_may_have_grown_on_a_node_that_is_larger_than_all_known() -> None:
    said = report(memory=5900.0, grown={"memory": 6000.0})
    assert read(said, engine=GROWS).rejected
    answer = read(said | {"node": {"memory": 8000.0}}, engine=GROWS)
    assert answer.outcome.attempt.allocation[MEMORY] == 6000.0
    assert not answer.rejected


def test_nothing_grows_where_it_cannot() -> None:
    given = attempt(cores=1.0)
    said = report(grown={"memory": 2000.0})
    assert read(said, given=given, engine=GROWS).outcome.attempt == given
    assert read(said).outcome.attempt == LIMITED
