"""What only our pool does: it sizes calls, and gets over what happens to them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import parsl
import pytest
import sizer_pool as calls
from parsl import Config
from parsl.data_provider.files import File
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor
from parsl.launchers import SrunLauncher
from parsl.providers import LocalProvider
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
    with nothing_left(), SizedPoolExecutor(sized(grow=False), run_dir=folder) as pool:
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
        ({"initializer": print}, "'initializer' is not for a SizedPoolExecutor"),
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


@contextmanager
def started(script: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, path.name], cwd=folder, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def printed_by(script: str, folder: Path) -> str:
    """What a script prints that ends well and says nothing else."""
    with nothing_left(), started(script, folder) as process:
        printed, told = process.communicate(timeout=LIMIT_S)
    assert (told, process.returncode) == ("", 0)
    return printed.strip()


def test_a_script_works_as_with_processes_and_leaves_without_a_shutdown(tmp_path: Path) -> None:
    assert printed_by(SCRIPT, tmp_path).split("\n") == ["True", "True", "Point(x=3.0)"]


def test_a_number_is_that_of_workers(tmp_path: Path) -> None:
    with nothing_left(), SizedPoolExecutor(1, run_dir=tmp_path, report=False) as pool:
        assert pool._max_workers == 1
        assert pool.submit(calls.double, 2).result(LIMIT_S) == 4


def test_parts_and_what_combines_them_cross_as_the_call_does(tmp_path: Path) -> None:
    """With hints of their own, and with what only a script knows."""
    script = """
        import time
        from parsl_sizer import Part, SizedPoolExecutor, Split, with_hints


        class Found:
            def __init__(self, number):
                self.number = number


        def find(number, mb):
            held = bytearray(b"x") * (mb * 1_000_000)
            time.sleep(1 if mb > 100 else 0)
            return Found(number)


        def first(results):
            return results[0]


        def halves(exhaustion):
            hints = {"memory": 300}
            return Split([Part(1, 10, parsl_resource_specification=hints), Part(2, 10)], first)


        if __name__ == "__main__":
            with SizedPoolExecutor(1, report=False, on_exhausted=halves) as pool:
                hog = with_hints(find, memory=200, fixed=True)
                found = pool.submit(hog, 0, 400).result()
                print(isinstance(found, Found), found.number)
    """
    assert printed_by(script, tmp_path) == "True 1"


def test_what_is_cancelled_does_not_wait_for_a_node(tmp_path: Path) -> None:
    elsewhere = SrunLauncher()  # on this machine there would be a node
    provider = LocalProvider(init_blocks=0, min_blocks=0, max_blocks=0, launcher=elsewhere)
    none = HighThroughputExecutor(label="none", address="127.0.0.1", provider=provider)
    with nothing_left():
        pool = SizedPoolExecutor(none, run_dir=tmp_path, report=False)
        futures = [pool.submit(calls.double, number) for number in range(3)]
        wait_until(lambda: len(pool._dfk.executors["none"]._driver) == 3, "the calls")
        over = threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True})
        over.start()
        over.join(LIMIT_S)
        assert not over.is_alive()
        assert all(future.cancelled() for future in futures)


def test_a_program_that_just_ends_waits_for_calls_that_parsl_retries(tmp_path: Path) -> None:
    script = """
        import time
        from parsl import Config
        from parsl_sizer import SizedExecutor, SizedPoolExecutor
        from parsl_sizer.executor.executor import local_engine


        def fail():
            time.sleep(1)
            raise ValueError("each time")


        if __name__ == "__main__":
            sized = SizedExecutor(local_engine(1), report=False)
            config = Config(executors=[sized], retries=1, initialize_logging=False)
            pool = SizedPoolExecutor(config=config)
            pool.submit(int).result()
            pool.submit(fail).add_done_callback(lambda done: print(done.exception(), flush=True))
    """
    assert printed_by(script, tmp_path) == "each time"


def test_a_fork_may_leave_and_the_pool_goes_on(tmp_path: Path) -> None:
    script = """
        import os
        import sys
        from parsl_sizer import SizedPoolExecutor

        if __name__ == "__main__":
            with SizedPoolExecutor(1, report=False) as pool:
                pool.submit(int).result()
                child = os.fork()
                if not child:
                    sys.exit(7)
                print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), pool.submit(int).result())
    """
    with nothing_left(), started(script, tmp_path) as process:
        printed, _ = process.communicate(timeout=LIMIT_S)  # Work Queue's binding may complain
    assert (printed, process.returncode) == ("7 0\n", 0)


def test_an_interrupt_ends_calls_that_run_and_leaves_no_process(tmp_path: Path) -> None:
    script = """
        import signal
        import time
        from parsl_sizer import SizedPoolExecutor

        if __name__ == "__main__":
            signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored, inherited
            with SizedPoolExecutor(1, report=False) as pool:
                pool.submit(int).result()
                pool.submit(time.sleep, 3000)
                print("it runs", flush=True)
                while True:  # Python may miss an interrupt at the very beginning of a sleep
                    time.sleep(0.01)
    """
    with nothing_left(), started(script, tmp_path) as process:
        assert process.stdout.readline() == "it runs\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) != 0
