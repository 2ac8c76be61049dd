"""What holds for a pool of the standard library holds for ours: the same tests over both."""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor
from multiprocessing import resource_tracker
from pathlib import Path

import pytest
import sizer_pool as calls
from sizer_runs import nothing_left, sized, wait_until

from parsl_sizer import SizedPoolExecutor

LIMIT_S = 60
KINDS = ["standard", "sized"]
Make = Callable[[], Executor]


def made(kind: str, folder: Path) -> Executor:
    if kind == "standard":
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(2, mp_context=context)
    return SizedPoolExecutor(sized(), run_dir=folder)


@pytest.fixture(scope="module", autouse=True)
def helper() -> None:
    """Have multiprocessing start the process that it keeps for itself, outside of any test."""
    resource_tracker.ensure_running()


@pytest.fixture(scope="module", params=KINDS)
def pool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    with nothing_left(), made(request.param, tmp_path_factory.mktemp("pool")) as pool:
        yield pool


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes a pool that is still idle: one that was busy with short calls sends some ahead."""
    pools = []
    with nothing_left():
        yield lambda: (pools.append(made(request.param, tmp_path / "run")), pools[-1])[1]
        (tmp_path / "go").touch()
        for pool in pools:
            pool.shutdown()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where calls wait for a file; they end with the test, whatever comes of it."""
    yield tmp_path
    (tmp_path / "go").touch()


def occupied(pool: Executor, folder: Path) -> list:
    """Futures of calls of which the first ones run, and the others wait; none ends by itself."""
    futures = [pool.submit(calls.wait_in_turn, str(folder), n) for n in range(10)]
    wait_until(lambda: len(list(folder.glob("*.begun"))) >= 2, "two calls that run")
    return futures


def test_a_call_returns(pool: Executor) -> None:
    assert pool.submit(calls.add, 1, b=2).result(LIMIT_S) == 3
    assert pool.submit(calls.Box, 3).result(LIMIT_S) == calls.Box(3)
    assert pool.submit(calls.Box(3).plus, 4).result(LIMIT_S) == 7
    assert pool.submit(calls.Box(3), 4).result(LIMIT_S) == 12
    assert pool.submit(len, "abc").result(LIMIT_S) == 3


def test_arguments_are_the_functions_own_whatever_they_are_called(pool: Executor) -> None:
    special = {
        name: [name]
        for name in (
            *("inputs", "outputs", "stdout", "stderr", "stdin", "walltime", "self", "fn", "func"),
            *("parsl_resource_specification", "_parsl_staging_inhibit", "label", "executors"),
        )
    }
    assert pool.submit(calls.both, 1, **special).result(LIMIT_S) == ((1,), special)


def test_an_error_arrives_as_it_was_raised(pool: Executor) -> None:
    future = pool.submit(calls.refuse, 7)
    with pytest.raises(calls.Refusal) as caught:
        future.result(LIMIT_S)
    assert caught.value.code == 7
    assert caught.value.args == (7, "as it should")
    assert future.exception() is caught.value


def test_what_cannot_be_called_is_an_error_of_the_call(pool: Executor) -> None:
    with pytest.raises(TypeError, match="'int' object is not callable"):
        pool.submit(3).result(LIMIT_S)
    with pytest.raises(TypeError):
        pool.submit()


@pytest.mark.parametrize("argument", [threading.Lock(), concurrent.futures.Future()])
def test_what_cannot_be_pickled_is_an_error_of_the_call(pool: Executor, argument: object) -> None:
    with pytest.raises(Exception, match="pickle"):
        pool.submit(calls.add, argument).result(LIMIT_S)
    assert pool.submit(calls.add, 1).result(LIMIT_S) == 1


def test_a_result_that_cannot_be_pickled_is_an_error_of_the_call(pool: Executor) -> None:
    with pytest.raises(Exception, match="pickle"):
        pool.submit(threading.Lock).result(LIMIT_S)
    assert pool.submit(calls.add, 1).result(LIMIT_S) == 1


def test_a_map_is_in_order_and_as_long_as_its_shortest_argument(pool: Executor) -> None:
    assert list(pool.map(calls.add, range(20), range(10, 27))) == [10 + 2 * n for n in range(17)]
    assert list(pool.map(calls.add, [])) == []


@pytest.mark.parametrize("chunksize", [2, 7, 100])
def test_a_map_in_chunks_gives_the_same(pool: Executor, chunksize: int) -> None:
    assert list(pool.map(calls.double, range(17), chunksize=chunksize)) == list(range(0, 34, 2))


def test_a_chunk_is_one_task(pool: Executor) -> None:
    processes = list(pool.map(calls.own_process, range(8), chunksize=4))
    assert len(set(processes[:4])) == len(set(processes[4:])) == 1


@pytest.mark.parametrize("chunksize", [0, -1])
def test_a_chunk_has_a_call_at_least(pool: Executor, chunksize: int) -> None:
    with pytest.raises(ValueError, match="chunksize must be >= 1"):
        pool.map(calls.double, [1], chunksize=chunksize)


def test_a_map_raises_where_a_call_did(pool: Executor) -> None:
    results = pool.map(calls.refuse_odd, [0, 2, 3, 4])
    assert [next(results), next(results)] == [0, 2]
    with pytest.raises(calls.Refusal):
        next(results)


def test_a_map_gives_up_in_time(pool: Executor, folder: Path) -> None:
    results = pool.map(calls.wait_in_turn, [str(folder)] * 2, range(2), timeout=0.2)
    with pytest.raises(concurrent.futures.TimeoutError):
        next(results)
    (folder / "go").touch()


def test_futures_can_be_waited_for(pool: Executor) -> None:
    futures = [pool.submit(calls.double, n) for n in range(10)]
    assert {f.result() for f in concurrent.futures.as_completed(futures, LIMIT_S)} == {
        *range(0, 20, 2)
    }
    done, waiting = concurrent.futures.wait(futures, LIMIT_S)
    assert (done, waiting) == (set(futures), set())
    failed = [pool.submit(calls.refuse, 1), pool.submit(calls.double, 1)]
    done, _ = concurrent.futures.wait(failed, LIMIT_S, concurrent.futures.FIRST_EXCEPTION)
    assert failed[0] in done


def test_a_callback_is_called_with_the_future(pool: Executor) -> None:
    called = threading.Event()
    seen = []
    future = pool.submit(calls.double, 4)
    future.add_done_callback(lambda done: (seen.append(done), called.set()))
    assert called.wait(LIMIT_S)
    assert seen == [future]
    assert (future.done(), future.running(), future.cancelled()) == (True, False, False)


def test_what_waits_can_be_cancelled_and_what_runs_cannot(make: Make, folder: Path) -> None:
    pool = make()
    futures = occupied(pool, folder)
    assert futures[0].running()
    assert not futures[0].cancel()
    assert futures[-1].cancel()
    assert futures[-1].cancelled()
    assert futures[-1].cancel()
    with pytest.raises(CancelledError):
        futures[-1].result()
    (folder / "go").touch()
    assert [future.result(LIMIT_S) for future in futures[:-1]] == list(range(9))
    assert pool.submit(calls.add, 1).result(LIMIT_S) == 1
    pool.shutdown()
    assert not (folder / "9.begun").exists()


def test_a_map_that_nobody_reads_on_is_cancelled(make: Make, folder: Path) -> None:
    pool = make()
    results = pool.map(calls.wait_in_turn, [str(folder)] * 20, range(20), timeout=0.1)
    with pytest.raises(concurrent.futures.TimeoutError):
        next(results)
    (folder / "go").touch()
    pool.shutdown()
    assert not (folder / "19.begun").exists()


def test_asyncio_awaits_calls(pool: Executor) -> None:
    async def main() -> list:
        loop = asyncio.get_running_loop()
        tasks = [loop.run_in_executor(pool, calls.double, n) for n in range(5)]
        wrapped = asyncio.wrap_future(pool.submit(calls.refuse, 3))
        return [
            *await asyncio.gather(*tasks),
            *await asyncio.gather(wrapped, return_exceptions=True),
        ]

    *numbers, error = asyncio.run(main())
    assert numbers == [0, 2, 4, 6, 8]
    assert isinstance(error, calls.Refusal)


def test_asyncio_cancels_what_waits(make: Make, folder: Path) -> None:
    pool = make()
    futures = occupied(pool, folder)

    async def main() -> None:
        task = asyncio.get_running_loop().run_in_executor(
            pool, calls.wait_in_turn, str(folder), "last"
        )
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(task, 0.1)

    asyncio.run(main())
    (folder / "go").touch()
    pool.shutdown()
    assert [future.result(0) for future in futures] == list(range(10))
    assert not (folder / "last.begun").exists()


def test_a_pool_that_was_shut_down_takes_nothing(make: Make) -> None:
    pool = make()
    with pool:
        future = pool.submit(calls.double, 2)
    assert future.done()
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        pool.submit(calls.double, 2)
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        pool.map(calls.double, [1])
    pool.shutdown()


def test_shutdown_waits_for_what_was_submitted(make: Make) -> None:
    pool = make()
    futures = [pool.submit(calls.double, n) for n in range(20)]
    pool.shutdown()
    assert [future.result(0) for future in futures] == list(range(0, 40, 2))


def test_shutdown_need_not_wait_and_calls_end_all_the_same(make: Make, folder: Path) -> None:
    pool = make()
    futures = occupied(pool, folder)
    pool.shutdown(wait=False)
    assert not any(future.done() for future in futures)
    (folder / "go").touch()
    assert [future.result(LIMIT_S) for future in futures] == list(range(10))
    pool.shutdown()


def test_shutdown_cancels_what_waits_if_it_is_told_to(make: Make, folder: Path) -> None:
    pool = make()
    futures = occupied(pool, folder)
    pool.shutdown(wait=False, cancel_futures=True)
    # Another shutdown before that would have the standard one forget that it was told to.
    wait_until(futures[-1].cancelled, "that the last call is given up")
    (folder / "go").touch()
    pool.shutdown()
    assert [future.result(LIMIT_S) for future in futures[:2]] == [0, 1]
    assert not (folder / "9.begun").exists()


def test_a_pool_has_workers(make: Make) -> None:
    with make() as pool:
        assert pool._max_workers == 2
