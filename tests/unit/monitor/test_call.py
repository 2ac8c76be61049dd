"""A call gives the same in every mode: results, exceptions, output, surroundings."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from parsl.serialize import deserialize

from parsl_sizer.monitor import call, probe, supervisor, travel
from parsl_sizer.monitor.sandbox import Sandbox
from parsl_sizer.monitor.wire import opened

Run = Callable[..., dict[str, Any]]


def add(one: Any, other: Any) -> Any:
    return one + other


def fail(error: BaseException) -> None:
    raise error


class Unpackable(Exception):
    def __init__(self) -> None:
        super().__init__("holds a lock")
        self.lock = threading.Lock()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a lock")


class Locked:
    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a lock")


def test_what_is_returned_comes_back(run: Run, isolation: str) -> None:
    report = run(add, [1], [2, 3], isolation=isolation)
    assert report["ending"] == "returned"
    assert report["result"] == [1, 2, 3]
    assert report["isolation"] == isolation


def test_what_is_raised_comes_back(run: Run, isolation: str) -> None:
    report = run(fail, ValueError("seven"), isolation=isolation)
    assert report["ending"] == "raised"
    assert isinstance(report["error"], ValueError)
    assert report["error"].args == ("seven",)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=type)
def test_what_would_end_a_process_ends_the_task_only(
    run: Run, isolation: str, error: BaseException
) -> None:
    report = run(fail, error, isolation=isolation)
    assert report["ending"] == "raised"
    assert type(report["error"]) is type(error)
    assert run(add, 1, 2, isolation=isolation)["result"] == 3


def test_a_result_that_cannot_be_packed_is_said_to_be_so(run: Run, supervised: str) -> None:
    report = run(Locked, isolation=supervised)
    assert report["ending"] == "raised"
    assert "cannot pickle a lock" in str(report["error"])


def test_an_exception_that_cannot_be_packed_is_said_to_be_so(run: Run, supervised: str) -> None:
    def raises() -> None:
        raise Unpackable

    report = run(raises, isolation=supervised)
    assert report["ending"] == "raised"
    assert "The task raised Unpackable, which cannot be packed" in str(report["error"])


def test_a_function_that_cannot_be_loaded_is_raised(order: Any) -> None:
    report = opened(travel.run_packed(order(), b"nonsense"))
    assert report["ending"] == "raised"
    assert isinstance(deserialize(report["payload"]).get_exception(), ValueError)


def test_output_goes_where_the_workers_goes(
    run: Run, isolation: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def speak() -> None:
        print("to stdout")
        print("to stderr", file=sys.stderr)
        os.write(1, b"past python\n")

    print("before")
    run(speak, isolation=isolation)
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == ["before", "past python", "to stdout"]
    assert "to stderr" in err


def test_variables_are_set_for_one_call(run: Run, isolation: str) -> None:
    def look() -> tuple[str | None, str | None]:
        return os.environ.get("OMP_NUM_THREADS"), os.environ.get("SIZER_TEST")

    env = {"OMP_NUM_THREADS": "3", "SIZER_TEST": "x"}
    before = os.environ.get("OMP_NUM_THREADS")
    assert run(look, isolation=isolation, env=env)["result"] == ("3", "x")
    assert run(look, isolation=isolation)["result"] == (before, None)


def test_temporary_files_stay_for_the_next_call_which_has_a_folder_of_its_own(
    run: Run, isolation: str
) -> None:
    def write() -> tuple[str, str]:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(b"0" * 50_000)
        Path(tempfile.gettempdir(), "folder").mkdir()
        return file.name, os.environ["TMPDIR"]

    before = tempfile.gettempdir()
    report = run(write, isolation=isolation)
    name, folder = report["result"]
    assert Path(name).parent == Path(folder)
    assert report["peak"]["disk"] >= 50_000
    assert tempfile.gettempdir() == before
    assert Path(name).is_relative_to(before)
    following = run(write, isolation=isolation)
    assert following["result"][1] != folder
    assert following["peak"]["disk"] < 80_000
    assert run(os.path.getsize, name, isolation=isolation)["result"] == 50_000


def test_temporary_files_go_with_a_call_that_is_cleaned_up_after(run: Run, isolation: str) -> None:
    def write() -> tuple[str, str]:
        folder = tempfile.mkdtemp()
        Path(folder, "file").write_bytes(b"0" * 50_000)
        shell = subprocess.run(["sh", "-c", "echo $TMPDIR"], check=True, capture_output=True)
        return folder, shell.stdout.decode().strip()

    for _ in range(2):
        report = run(write, isolation=isolation, clean_files=True)
        folder, in_shell = report["result"]
        assert Path(folder).parent == Path(in_shell)
        assert not Path(folder).exists()
        assert report["peak"]["disk"] >= 50_000


def test_an_unused_folder_is_that_of_the_next_call(run: Run, isolation: str) -> None:
    # In a fork each call has a supervisor of its own.
    folders = {run(tempfile.gettempdir, isolation=isolation)["result"] for _ in range(3)}
    assert len(folders) == (3 if isolation == "fork" else 1)


@pytest.mark.parametrize("die", [False, True])
def test_temporary_files_of_a_call_that_is_stopped_or_lost_go(
    run: Run, supervised: str, tmp_path: Path, die: bool
) -> None:
    note = tmp_path / "note"

    def write() -> None:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            note.write_text(file.name)
            file.write(b"0" * 30_000_000)
        if die:
            os._exit(1)
        time.sleep(1000)

    limits = {} if die else {"disk": 10_000_000}
    report = run(write, isolation=supervised, limits=limits)
    assert report["ending"] == ("died" if die else "stopped")
    assert not Path(note.read_text()).exists()


def test_in_a_sandbox_of_the_engine_the_working_folder_counts(
    run: Run, isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write() -> str | None:
        Path("output").write_bytes(b"0" * 300_000)
        return os.environ.get("TMPDIR")

    monkeypatch.chdir(tmp_path)
    report = run(write, isolation=isolation, sandbox="cwd")
    assert report["result"] == os.environ.get("TMPDIR")
    assert report["peak"]["disk"] >= 300_000
    assert (tmp_path / "output").exists()


def test_a_call_that_changes_the_folder_does_not_move_the_next_one(
    run: Run, isolation: str, tmp_path: Path
) -> None:
    def move() -> str:
        before = os.getcwd()  # noqa: PTH109
        os.chdir(tmp_path)
        return before

    assert run(move, isolation=isolation)["result"] == run(move, isolation=isolation)["result"]


@pytest.mark.parametrize("value", [None, True, 7, 0.5, "text", "x" * 10**6, b"bytes", [1, {2}]])
def test_results_of_all_sorts_come_back(run: Run, isolation: str, value: object) -> None:
    def give() -> object:
        return value

    report = run(give, isolation=isolation)
    assert report["result"] == value
    assert type(report["result"]) is type(value)


def test_a_call_of_a_moment_needs_one_core(run: Run, isolation: str) -> None:
    cores = [run(sum, (1, 2), isolation=isolation)["peak"]["cores"] for _ in range(20)]
    assert max(cores) <= 1.0


def test_time_and_cores_are_told(run: Run, isolation: str) -> None:
    def work() -> float:
        import time

        began = time.process_time()
        while time.process_time() - began < 0.1:
            pass
        return began

    report = run(work, isolation=isolation)
    assert report["wall_s"] >= 0.1
    assert report["cpu_s"] >= 0.1
    assert report["cores_mean"] == report["cpu_s"] / report["wall_s"]
    assert report["peak"]["cores"] >= report["cores_mean"]


def test_the_cpu_time_of_children_counts(run: Run, isolation: str) -> None:
    def work() -> None:
        import subprocess

        code = "import time\nwhile time.process_time() < 0.3: pass"
        subprocess.run([sys.executable, "-S", "-c", code], check=True)

    assert run(work, isolation=isolation)["cpu_s"] >= 0.3


def test_a_report_says_where_it_comes_from(
    run: Run, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARSL_WORKER_POOL_ID", "pool")
    monkeypatch.setenv("PARSL_WORKER_BLOCK_ID", "7")
    report = run(add, 1, 2, isolation=isolation)
    assert report["parsl_sizer"] == 1
    assert (report["pool"], report["block"]) == ("pool", "7")
    assert report["host"] == os.uname().nodename
    assert report["node"]["cores"] >= 1
    assert report["node"]["memory"] > 1e8
    assert "proc" in report["layers"]
    assert report["waited_s"] == 0.0


def test_names_are_resolved_once() -> None:
    assert call.resolve("json:dumps") is call.resolve("json:dumps")
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        call.resolve("nowhere:to_be_found")


def test_forks_draw_their_own_random_numbers(run: Run, supervised: str) -> None:
    import numpy as np

    def draw() -> float:
        return float(np.random.random())

    drawn = set()
    for _ in range(3):
        drawn.add(run(draw, isolation=supervised)["result"])
        run(os._exit, 3, isolation=supervised)  # the next call is in another runner
    assert len(drawn) == 3


@pytest.mark.parametrize("isolation", ["fork", "inline"])
def test_the_start_of_a_process_of_its_own_is_a_part_of_the_time(run: Any, isolation: str) -> None:
    def hold() -> int:
        held = bytearray(b"x") * 50_000_000
        time.sleep(0.3)
        return len(held)

    before_s = probe.age_s()
    alone = run(hold, isolation=isolation, series=8)
    started = run(hold, isolation=isolation, series=8, own_process=True)
    assert 0 < before_s <= started["wall_s"] - 0.3
    assert started["wall_s"] <= probe.age_s()
    assert alone["wall_s"] < started["wall_s"]
    assert all(before_s <= at <= started["wall_s"] for at, _ in started["series"])
    assert started["series"]


def test_without_a_folder_of_its_own_a_call_has_that_of_its_worker(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def where() -> tuple[str | None, str]:
        return os.environ.get("TMPDIR"), tempfile.gettempdir()

    def write() -> int:
        Path(tempfile.gettempdir(), "note").write_text("one")
        return os.getpid()

    own = where()
    monkeypatch.setattr(supervisor, "Sandbox", Full)
    runner = run(write)["result"]
    assert run(where)["result"] == own
    assert run(os.getpid)["result"] == runner


class Full(Sandbox):
    """A sandbox whose disk is full once it has made one folder."""

    def __init__(self) -> None:
        self._home, self._lock = None, None
        self._made = self._empty_since = 0
        self.path = tempfile.mkdtemp()

    def settle(self, *, stays: bool) -> int | None:
        return super().settle(stays=False)
