"""What only our pool does: it sizes calls, and gets over what happens to them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import parsl
import pytest
import sizer_pool as calls
from parsl import Config
from parsl.data_provider.files import File
from parsl.executors import ThreadPoolExecutor
from sizer_runs import htex, nothing_left, running, sized, wait_until

from parsl_sizer import (
    Exhaustion,
    Kind,
    Part,
    ResourcesExhausted,
    SizedPoolExecutor,
    Split,
    sizing_of,
    with_hints,
)
from parsl_sizer.executor.arguments import BadArgument
from parsl_sizer.model import Ending

LIMIT_S = 60
MB = 1_000_000


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedPoolExecutor]:
    folder = tmp_path_factory.mktemp("pool")
    with nothing_left(), SizedPoolExecutor(sized(), run_dir=folder) as pool:
        yield pool


def test_anything_that_can_be_called_can_be_submitted(pool: SizedPoolExecutor) -> None:
    three = 3
    assert pool.submit(lambda number: number + three, 4).result(LIMIT_S) == 7
    assert pool.submit(calls.lambda_of(5)).result(LIMIT_S) == 5
    assert pool.submit(partial(calls.add, 1), b=2).result(LIMIT_S) == 3
    assert pool.submit(calls.lambda_of, 8).result(LIMIT_S)() == 8
    assert pool.submit(type("Local", (), {"__call__": lambda self: 6})()).result(LIMIT_S) == 6


def test_a_category_is_the_name_of_the_users_function(pool: SizedPoolExecutor) -> None:
    submitted = {
        "double": pool.submit(calls.double, 1),
        "add": pool.submit(partial(partial(calls.add, 1), b=2)),
        "plus": pool.submit(calls.Box(1).plus, 2),
        "Box": pool.submit(calls.Box(1), 2),
        "len": pool.submit(len, "abc"),
        "<lambda>": pool.submit(lambda: 1),
        "chosen": pool.submit(with_hints(calls.double, category="chosen"), 1),
    }
    for category, future in submitted.items():
        future.result(LIMIT_S)
        assert sizing_of(future).category == category


def test_hints_are_used_and_stay_here(pool: SizedPoolExecutor) -> None:
    fixed = with_hints(calls.names, memory="300MB", fixed=True)
    future = pool.submit(partial(fixed, a=1), b=2)
    assert future.result(LIMIT_S) == ["a", "b"]
    [attempt] = sizing_of(future).attempts
    assert attempt.allocation == {Kind.MEMORY: 300e6}
    again = with_hints(fixed, category="named")
    future = pool.submit(again)
    assert future.result(LIMIT_S) == []
    assert sizing_of(future).category == "named"
    assert sizing_of(future).attempts[0].allocation == {Kind.MEMORY: 300e6}


def test_a_file_among_the_arguments_is_the_files_own(
    pool: SizedPoolExecutor, tmp_path: Path
) -> None:
    file = File(str(tmp_path / "not there"))
    [got], named = pool.submit(calls.both, file, inputs=[file]).result(LIMIT_S)
    assert (got.url, named["inputs"][0].url) == (file.url, file.url)


def test_nothing_is_kept_of_functions_that_are_made_anew(pool: SizedPoolExecutor) -> None:
    class Captured:
        pass

    def call() -> weakref.ref:
        captured = Captured()
        assert pool.submit(lambda: captured and 1).result(LIMIT_S) == 1
        return weakref.ref(captured)

    kept = [call() for _ in range(5)]
    wait_until(lambda: (gc.collect(), all(ref() is None for ref in kept))[1], "their end")


def test_a_map_takes_no_more_than_it_is_told_to(pool: SizedPoolExecutor) -> None:
    taken = []
    numbers = (taken.append(number) or number for number in range(10**9))
    results = pool.map(calls.double, numbers, buffersize=3)
    assert taken == [0, 1, 2]
    assert [next(results) for _ in range(4)] == [0, 2, 4, 6]
    assert taken == list(range(7))
    results.close()


def test_chunks_are_known_by_their_function_and_their_length(pool: SizedPoolExecutor) -> None:
    seen = []
    executor = pool._dfk.executors["htex"]
    note, executor._driver._observe = executor._driver._observe, seen.append
    try:
        list(pool.map(calls.refuse_odd, range(0, 14, 2), chunksize=3))
    finally:
        executor._driver._observe = note
    tasks = [settle.task for settle in seen if settle.task.category == "refuse_odd"]
    assert sorted(task.features["calls"] for task in tasks) == [1, 3, 3]


def test_what_would_have_been_killed_is_completed_and_no_node_overfull(
    pool: SizedPoolExecutor, tmp_path: Path
) -> None:
    small = [pool.submit(calls.note_and_hold, str(tmp_path), n, 20, 0.05) for n in range(10)]
    assert [future.result(LIMIT_S) for future in small] == [20] * 10
    large = [pool.submit(calls.note_and_hold, str(tmp_path), n, 700, 0.5) for n in range(10, 14)]
    assert [future.result(LIMIT_S) for future in large] == [700] * 4
    attempts = [attempt for future in large for attempt in sizing_of(future).attempts]
    assert Ending.EXHAUSTED in {attempt.ending for attempt in attempts}
    assert calls.most_at_once(tmp_path) <= 2000


def test_a_call_that_no_node_can_hold_fails_and_the_pool_goes_on(pool: SizedPoolExecutor) -> None:
    future = pool.submit(with_hints(calls.note_and_hold, category="huge"), "none", 0, 2500, 30)
    with pytest.raises(ResourcesExhausted):
        future.result(LIMIT_S)
    assert pool.submit(calls.double, 2).result(LIMIT_S) == 4


def test_a_call_that_ran_out_can_be_split(tmp_path: Path) -> None:
    def halve(exhaustion: Exhaustion) -> Split | None:
        [amounts] = exhaustion.args
        if exhaustion.larger is not None or len(amounts) < 2:
            return None
        half = len(amounts) // 2
        return Split([Part(amounts[:half]), Part(amounts[half:])], sum)

    executor = sized(node="cores=2,memory=1GB", on_exhausted=halve)
    with nothing_left(), SizedPoolExecutor(executor, run_dir=tmp_path) as pool:
        assert pool.submit(calls.hold_all, [400, 300, 400, 300]).result(LIMIT_S) == 1400


@pytest.mark.parametrize("whom", ["me", "worker"])
def test_a_call_whose_process_was_killed_is_made_again(
    pool: SizedPoolExecutor, tmp_path: Path, whom: str
) -> None:
    future = pool.submit(calls.kill_once, str(tmp_path / "killed"), whom)
    assert future.result(LIMIT_S) == "survived"
    assert [attempt.ending for attempt in sizing_of(future).attempts] == [Ending.LOST, Ending.DONE]


def test_a_callback_may_shut_the_pool_down(tmp_path: Path) -> None:
    with nothing_left():
        pool = SizedPoolExecutor(sized(), run_dir=tmp_path)
        called = threading.Event()
        future = pool.submit(calls.double, 1)
        future.add_done_callback(lambda _: (pool.shutdown(), called.set()))
        assert called.wait(LIMIT_S)
        pool.shutdown()


def test_a_pool_lives_beside_a_parsl_that_was_loaded(tmp_path: Path) -> None:
    threads = ThreadPoolExecutor(label="mine", max_threads=1)
    with running(threads, tmp_path) as mine:
        with SizedPoolExecutor(htex(1), run_dir=tmp_path, report=False) as pool:
            assert parsl.dfk() is mine
            assert pool.submit(os.getpid).result(LIMIT_S) != os.getpid()
        assert parsl.dfk() is mine
        with SizedPoolExecutor(dfk=mine) as pool:
            assert pool._max_workers == 1
            assert pool.submit(os.getpid).result(LIMIT_S) == os.getpid()
        assert not mine.cleanup_called


def test_a_pool_may_use_some_executors_of_a_config(tmp_path: Path) -> None:
    one, two = ThreadPoolExecutor(label="one"), sized(htex(1, label="two"))
    config = Config(
        executors=[one, two], run_dir=str(tmp_path), initialize_logging=False, usage_tracking=0
    )
    with nothing_left(), SizedPoolExecutor(config=config, executors=["two"]) as pool:
        futures = [pool.submit(os.getpid) for _ in range(8)]
        assert os.getpid() not in {future.result(LIMIT_S) for future in futures}


def test_threads_make_calls_too(tmp_path: Path) -> None:
    threads = sized(ThreadPoolExecutor(label="threads", max_threads=2))
    with SizedPoolExecutor(threads, run_dir=tmp_path) as pool:
        future = pool.submit(with_hints(calls.both, category="here"), 1, inputs=[2])
        assert future.result(LIMIT_S) == ((1,), {"inputs": [2]})
        assert sizing_of(future).category == "here"
        with pytest.raises(calls.Refusal):
            pool.submit(calls.refuse, 1).result(LIMIT_S)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"config": Config(), "executor": ThreadPoolExecutor()}, "Give one of"),
        ({"config": Config(), "node": "cores=2"}, "'node' can only be given"),
        ({"config": Config(), "executors": ["none"]}, "There is no executor 'none'"),
    ],
)
def test_arguments_that_cannot_be_are_refused(arguments: dict, told: str) -> None:
    with pytest.raises(BadArgument, match=told):
        SizedPoolExecutor(**arguments)


SCRIPT = """
    import math
    from dataclasses import dataclass

    from parsl_sizer import SizedPoolExecutor


    class MyError(Exception):
        pass


    @dataclass
    class Point:
        x: float


    def root(point):
        if point.x < 0:
            raise MyError(point)
        return Point(math.sqrt(point.x))


    if __name__ == "__main__":
        pool = SizedPoolExecutor(max_workers=2, report=False)
        print(pool.submit(root, Point(4)).result() == Point(2))
        try:
            pool.submit(root, Point(-4)).result()
        except MyError as error:
            print(error.args == (Point(-4),))
        last = pool.submit(root, Point(9))
        last.add_done_callback(lambda done: print(done.result(), flush=True))
"""


def test_a_script_works_as_with_processes_and_leaves_without_a_shutdown(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    with nothing_left():
        done = subprocess.run(
            [sys.executable, script.name],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert (done.stdout.split("\n"), done.stderr) == (["True", "True", "Point(x=3.0)", ""], "")
    assert done.returncode == 0
