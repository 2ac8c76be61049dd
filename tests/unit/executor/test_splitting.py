"""Splitting what ran out: whoever is asked and whatever is answered, somebody gets a result."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from parsl.app.errors import RemoteExceptionWrapper, wrap_error

from parsl_sizer import Exhaustion, Part, Split
from parsl_sizer.executor.calls import Call
from parsl_sizer.executor.splitting import BadSplit, Original, Splitter, checked

LIMIT_S = 20.0
SPECIFICATION = "parsl_resource_specification"


def total(numbers: list[int], scale: int = 1, **_: Any) -> int:
    return scale * sum(numbers)


def made(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    specification: dict[str, Any] | None = None,
) -> Original:
    function = wrap_error(total)
    call = Call(function, args, kwargs or {}, "inline", {}, "ledger")
    return Original(function, specification or {}, call)


def ran_out(original: Original) -> Exhaustion:
    return Exhaustion("total", total, *original.arguments(), (), None)


class Pool:
    """Takes tasks as an executor does, and runs them when it is told to."""

    def __init__(self) -> None:
        self.tasks: list[tuple[Any, dict[str, Any], tuple[Any, ...], dict[str, Any]]] = []
        self.futures: list[Future[Any]] = []
        self.submitted = threading.Condition()
        self.refuses: int | None = None

    def submit(self, function: Any, specification: Any, *args: Any, **kwargs: Any) -> Future[Any]:
        with self.submitted:
            if len(self.tasks) == self.refuses:
                raise TypeError("not for travelling")
            self.tasks.append((function, specification, args, kwargs))
            self.futures.append(Future())
            self.submitted.notify_all()
            return self.futures[-1]

    def wait_for(self, count: int) -> None:
        with self.submitted:
            assert self.submitted.wait_for(lambda: len(self.tasks) >= count, LIMIT_S)

    def run(self, number: int) -> None:
        """Run the task of this number."""
        self.wait_for(number + 1)
        function, _, args, kwargs = self.tasks[number]
        self.futures[number].set_result(function(*args, **kwargs))


class Bench:
    """A splitter, and what it has said."""

    def __init__(self) -> None:
        self.pool = Pool()
        self.warnings: list[str] = []
        self.splitter = Splitter(self.pool.submit, self.warnings.append)

    def ask(
        self,
        hook: Callable[[Exhaustion], Any],
        specification: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Future[Any] | None:
        original = made(([1, 2, 3, 4],), kwargs, specification)
        told: Future[Any] = Future()
        self.splitter.ask(hook, lambda: ran_out(original), original, told.set_result)
        answer: Future[Any] | None = told.result(LIMIT_S)
        return answer


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.splitter.close()
    left = {thread.name for thread in threading.enumerate()}
    assert not left & {"parsl_sizer-split", "parsl_sizer-combine"}


def halves(exhaustion: Exhaustion) -> Split:
    [numbers] = exhaustion.args
    middle = len(numbers) // 2
    return Split(
        [Part(numbers[:middle], **exhaustion.kwargs), Part(numbers[middle:], **exhaustion.kwargs)],
        sum,
    )


def test_parts_are_tasks_and_so_is_what_combines_their_results(bench: Bench) -> None:
    result = bench.ask(halves, scale=10)
    assert result is not None
    assert [task[2:] for task in bench.pool.tasks] == [
        (([1, 2],), {"scale": 10}),
        (([3, 4],), {"scale": 10}),
    ]
    bench.pool.run(1)
    bench.pool.run(0)
    bench.pool.run(2)
    assert bench.pool.tasks[2][2] == ([30, 70],), "in the order of the parts"
    assert result.result(LIMIT_S) == 100
    assert not bench.warnings


def test_any_number_of_parts_in_anything_that_can_be_gone_through(bench: Bench) -> None:
    result = bench.ask(lambda e: Split((Part([n]) for n in e.args[0]), max))
    assert result is not None
    for number in (0, 1, 2, 3, 4):
        bench.pool.run(number)
    assert result.result(LIMIT_S) == 4


def test_who_asks_for_nothing_gets_nothing(bench: Bench) -> None:
    assert bench.ask(lambda exhaustion: None) is None
    assert not bench.warnings
    assert not bench.pool.tasks


class Ugly(Exception):
    """An exception that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("too ugly")


def broken(error: BaseException) -> Callable[[Exhaustion], Split]:
    def hook(exhaustion: Exhaustion) -> Split:
        raise error

    return hook


@pytest.mark.parametrize(
    "error", [ValueError("no idea"), SystemExit(3), KeyboardInterrupt(), Ugly()], ids=type
)
def test_a_function_that_raises_anything_splits_nothing_and_is_told_of(
    bench: Bench, error: BaseException
) -> None:
    assert bench.ask(broken(error)) is None
    if not isinstance(error, Ugly):
        [warning] = bench.warnings
        assert repr(error) in warning
    assert bench.ask(halves) is not None, "the next one is asked all the same"


@pytest.mark.parametrize(
    "answer",
    [
        42,
        "split it",
        [Part(1), Part(2)],
        (Part(1), Part(2)),
        Split([Part(1)], sum),
        Split([], sum),
        Split([Part(1), 2], sum),  # type: ignore[list-item]
        Split(None, sum),  # type: ignore[arg-type]
        Split([Part(1), Part(2)], "sum"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_an_answer_that_is_none_splits_nothing_and_is_told_of(bench: Bench, answer: Any) -> None:
    assert bench.ask(lambda exhaustion: answer) is None
    assert not bench.pool.tasks
    [warning] = bench.warnings
    assert warning.startswith("on_exhausted failed, and tasks for which it does are not split. ")
    with pytest.raises((BadSplit, TypeError)):
        checked(answer)


def test_parts_that_cannot_be_submitted_leave_the_task_whole(bench: Bench) -> None:
    bench.pool.refuses = 1
    assert bench.ask(halves) is None
    assert "not for travelling" in bench.warnings[0]


def test_an_exception_in_a_part_is_the_tasks(bench: Bench) -> None:
    result = bench.ask(halves)
    assert result is not None
    bench.pool.run(1)
    bench.pool.futures[0].set_result(wrap_error(broken(ValueError("mine")))(None))
    value = result.result(LIMIT_S)  # as an app's exceptions arrive
    assert isinstance(value, RemoteExceptionWrapper)
    with pytest.raises(ValueError, match="mine"):
        value.reraise()
    assert len(bench.pool.tasks) == 2, "there is nothing to combine"


def test_of_two_parts_that_fail_the_first_to_do_so_is_heard(bench: Bench) -> None:
    result = bench.ask(halves)
    assert result is not None
    bench.pool.futures[1].set_exception(ValueError("first"))
    bench.pool.futures[0].set_exception(ValueError("second"))
    with pytest.raises(ValueError, match="first"):
        result.result(LIMIT_S)


def test_combining_may_fail_in_any_way(bench: Bench) -> None:
    raises = bench.ask(lambda e: halves(e)._replace(combine=lambda results: 1 / 0))
    assert raises is not None
    for number in (0, 1, 2):
        bench.pool.run(number)
    assert isinstance(raises.result(LIMIT_S), RemoteExceptionWrapper)
    lost = bench.ask(halves)
    assert lost is not None
    bench.pool.run(3)
    bench.pool.run(4)
    bench.pool.wait_for(6)
    bench.pool.futures[5].set_exception(RuntimeError("lost"))
    with pytest.raises(RuntimeError, match="lost"):
        lost.result(LIMIT_S)
    refused = bench.ask(halves)
    assert refused is not None
    bench.pool.refuses = 8
    bench.pool.run(6)
    bench.pool.run(7)
    with pytest.raises(TypeError, match="not for travelling"):
        refused.result(LIMIT_S)


def test_parts_have_the_hints_of_the_call_and_combining_has_those_of_none(bench: Bench) -> None:
    kept = {"priority": 3, "isolation": "inline", "labels": {"study": "a"}}
    hints = {"category": "sums", "memory": 200, "fixed": True, "features": {"numbers": 4}, **kept}
    result = bench.ask(halves, hints)
    assert result is not None
    bench.pool.run(0)
    bench.pool.run(1)
    bench.pool.wait_for(3)
    assert [task[1] for task in bench.pool.tasks[:2]] == [hints, hints]
    assert bench.pool.tasks[2][1] == kept


def test_a_part_may_have_hints_of_its_own(bench: Bench) -> None:
    def hook(exhaustion: Exhaustion) -> Split:
        parts = [
            Part(half, **{SPECIFICATION: {"features": {"numbers": 2}}}) for half in ([1, 2], [3, 4])
        ]
        return Split(parts, sum)

    assert bench.ask(hook, {"features": {"numbers": 4}, "priority": 1}) is not None
    for _, specification, args, kwargs in bench.pool.tasks:
        assert specification == kwargs[SPECIFICATION] == {"features": {"numbers": 2}}
        assert len(args[0]) == 2


def test_nobody_is_asked_after_the_end(bench: Bench) -> None:
    assert bench.ask(halves) is not None
    bench.splitter.close()
    told: list[Any] = []
    original = made(([1, 2],))
    bench.splitter.ask(halves, lambda: ran_out(original), original, told.append)
    bench.pool.run(0)
    bench.pool.run(1)
    assert told == []
    assert len(bench.pool.tasks) == 2


def test_a_function_that_hangs_does_not_keep_the_end_waiting() -> None:
    bench, goes_on = Bench(), threading.Event()
    entered = threading.Event()

    def hook(exhaustion: Exhaustion) -> None:
        entered.set()
        goes_on.wait(LIMIT_S)

    original = made(([1, 2],))
    told = threading.Event()
    bench.splitter.ask(hook, lambda: ran_out(original), original, lambda parts: told.set())
    assert entered.wait(LIMIT_S)
    bench.splitter.close()
    assert not told.is_set()
    goes_on.set()
    assert told.wait(LIMIT_S)


def test_who_takes_long_to_answer_holds_up_nobody_whose_parts_are_done(bench: Bench) -> None:
    result = bench.ask(halves)
    assert result is not None
    entered, goes_on = threading.Event(), threading.Event()

    def slow(exhaustion: Exhaustion) -> None:
        entered.set()
        goes_on.wait(LIMIT_S)

    original = made(([5],))
    bench.splitter.ask(slow, lambda: ran_out(original), original, lambda parts: None)
    assert entered.wait(LIMIT_S)
    for number in range(3):
        bench.pool.run(number)
    assert result.result(LIMIT_S) == 10
    goes_on.set()


def test_arguments_are_those_of_the_call_whatever_became_of_them() -> None:
    numbers = [1, 2]
    original = made((numbers,))
    original.call.pack()
    numbers.clear()
    assert original.arguments() == (([1, 2],), {})


def test_nothing_is_held_of_what_was_asked_about(bench: Bench) -> None:
    class Large:
        pass

    large = Large()
    gone = weakref.ref(large)
    bench.splitter.ask(
        lambda exhaustion: None, lambda: ran_out(made(())), made((large,)), lambda parts: None
    )
    del large
    until = time.monotonic() + LIMIT_S
    while gone() is not None and time.monotonic() < until:
        gc.collect()
    assert gone() is None
