"""Tasks that fork: only the process that began a call answers it, however its copies end."""

from __future__ import annotations

import atexit
import ctypes
import marshal
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from parsl.app.errors import wrap_error

from parsl_sizer.monitor import claims, node_ledger, probe, supervisor, wire
from parsl_sizer.monitor.node_ledger import UNCLAIMED
from parsl_sizer.monitor.supervisor import Supervisor

Run = Callable[..., dict[str, Any]]
Leave = Callable[[], Any]

MB = 1_000_000
RETURNED_INTO_THE_WORKER = 99


@pytest.fixture
def run(run: Run) -> Run:
    """Run a call; a copy of this process that comes back from it ends before it runs tests."""

    def run_here(*args: Any, **options: Any) -> dict[str, Any]:
        pid = os.getpid()
        try:
            return run(*args, **options)
        finally:
            if os.getpid() != pid:
                os._exit(RETURNED_INTO_THE_WORKER)

    return run_here


def raise_error() -> None:
    raise ValueError("in the child")


def fork_in_c() -> int:
    """Fork as a library does, which Python does not notice."""
    return int(ctypes.PyDLL(None).fork())


def wait_for(child: int) -> int:
    """Wait for a child; return its exit status as `subprocess` does."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def fork_and(leave: Leave, fork: Callable[[], int] = os.fork) -> tuple[str, int]:
    """Fork a child that leaves the function in its own way, and wait for it."""
    child = fork()
    if child == 0:
        print("said by the child")
        leave()
        return "child", 0
    return "parent", wait_for(child)


WAYS: list[tuple[Leave, int]] = [
    (lambda: None, 0),
    (lambda: raise_error(), 1),
    (lambda: sys.exit(), 0),
    (lambda: sys.exit(0), 0),
    (lambda: sys.exit(7), 7),
    (lambda: sys.exit(-1), 255),
    (lambda: sys.exit("a message"), 1),
    (lambda: os._exit(3), 3),
]
NAMES = ["return", "raise", "exit", "exit 0", "exit 7", "exit -1", "exit message", "_exit 3"]


@pytest.mark.parametrize("keep_caches", [False, True])
@pytest.mark.parametrize(("leave", "status"), WAYS, ids=NAMES)
def test_only_the_process_that_began_a_call_answers_it(
    run: Run, isolation: str, leave: Leave, status: int, keep_caches: bool
) -> None:
    report = run(fork_and, leave, isolation=isolation, keep_caches=keep_caches)
    assert (report["ending"], report["result"]) == ("returned", ("parent", status))
    for number in range(3):
        following = run(abs, number, isolation=isolation, keep_caches=keep_caches)
        assert following["result"] == number


def test_an_attempt_whose_child_fails_may_fail_by_itself(run: Run, isolation: str) -> None:
    def fail_after_child() -> None:
        _, status = fork_and(lambda: sys.exit(7))
        raise ValueError(status)

    report = run(fail_after_child, isolation=isolation)
    assert (report["ending"], report["error"].args) == ("raised", (7,))


def test_what_a_copy_prints_appears(
    run: Run, isolation: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run(fork_and, raise_error, isolation=isolation)
    run(fork_and, lambda: sys.exit("a message"), isolation=isolation)
    out, err = capfd.readouterr()
    assert out.splitlines() == ["said by the child"] * 2
    assert err.count("ValueError: in the child") == 1
    assert err.splitlines()[-1] == "a message"


def test_a_copy_of_an_app_that_raises_fails_as_any_other(
    run: Run, isolation: str, capfd: pytest.CaptureFixture[str]
) -> None:
    app = wrap_error(fork_and)
    assert run(app, raise_error, isolation=isolation)["result"] == ("parent", 1)
    assert "ValueError: in the child" in capfd.readouterr().err


def test_what_a_copy_has_written_to_a_file_is_there(
    run: Run, isolation: str, tmp_path: Path
) -> None:
    def write() -> str:
        child = os.fork()
        if child == 0:
            file = (tmp_path / "file").open("w")
            file.write("text")
            sys.exit(0)
        wait_for(child)
        return (tmp_path / "file").read_text()

    assert run(write, isolation=isolation)["result"] == "text"


@pytest.mark.parametrize(("leave", "status"), WAYS, ids=NAMES)
def test_a_copy_runs_what_its_task_registered_with_atexit(
    run: Run, supervised: str, tmp_path: Path, leave: Leave, status: int
) -> None:
    def register() -> tuple[list[str], str]:
        note = tmp_path / "note"
        note.touch()

        def say(text: str) -> None:
            with note.open("a") as file:
                file.write(f"{text} in {os.getpid()}\n")

        def leave_after_registering() -> Any:
            atexit.register(say, "child's")
            return leave()

        atexit.register(say, "parent's")
        child = os.fork()
        if child == 0:
            return leave_after_registering()
        assert wait_for(child) == status
        atexit.unregister(say)
        return note.read_text().splitlines(), str(child)

    said, child = run(register, isolation=supervised)["result"]
    expected = [] if status == 3 else [f"child's in {child}", f"parent's in {child}"]
    assert said == expected


def test_a_copy_does_not_run_what_the_worker_registered_with_atexit(
    run: Run, isolation: str, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    atexit.register(note.touch)
    try:
        report = run(fork_and, lambda: sys.exit(0), isolation=isolation)
    finally:
        atexit.unregister(note.touch)
    assert report["result"] == ("parent", 0)
    assert not note.exists()


def test_a_copy_that_was_forked_in_c_does_not_answer(run: Run, supervised: str) -> None:
    # Inline there are threads, and a copy that Python does not notice may wait for them for ever.
    report = run(fork_and, lambda: None, fork_in_c, isolation=supervised)
    assert report["result"] == ("parent", 0)
    assert run(abs, -1, isolation=supervised)["result"] == 1


def test_copies_of_copies_do_not_answer(run: Run, isolation: str) -> None:
    def fork_twice() -> Any:
        child = os.fork()
        if child == 0:
            name, status = fork_and(lambda: sys.exit(5))
            return sys.exit(20 + status) if name == "parent" else None
        return wait_for(child)

    assert run(fork_twice, isolation=isolation)["result"] == 25
    assert run(abs, -1, isolation=isolation)["result"] == 1


def test_a_thread_of_a_task_may_fork(run: Run, isolation: str) -> None:
    def fork_in_thread() -> list[Any]:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(fork_and(lambda: None)))
        thread.start()
        thread.join()
        return found

    assert run(fork_in_thread, isolation=isolation)["result"] == [("parent", 0)]
    assert run(abs, -1, isolation=isolation)["result"] == 1


def test_a_task_in_a_thread_of_a_shared_process_may_fork(run: Run) -> None:
    reports: list[dict[str, Any]] = []

    def work() -> None:
        for leave, _ in WAYS:
            reports.append(run(fork_and, leave, isolation="inline", shared_process=True))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [report["result"] for report in reports] == [("parent", status) for _, status in WAYS]


def square(number: int) -> int:
    return number * number


def test_multiprocessing_works_in_a_task(run: Run, isolation: str) -> None:
    def use() -> tuple[list[int], int | None]:
        context = multiprocessing.get_context("fork")
        with context.Pool(2) as pool:
            squares = pool.map(square, range(10))
        process = context.Process(target=sys.exit, args=(4,))
        process.start()
        process.join()
        return squares, process.exitcode

    expected = [number**2 for number in range(10)], 4
    assert run(use, isolation=isolation)["result"] == expected
    assert run(abs, -1, isolation=isolation)["result"] == 1


def test_a_copy_that_comes_back_after_the_task_answers_nothing(
    run: Run, isolation: str, tmp_path: Path, eventually: Any
) -> None:
    go = tmp_path / "go"

    def leave_behind() -> Any:
        child = os.fork()
        if child == 0:
            while not go.exists():
                time.sleep(0.001)
            return "late"
        return child

    child = run(leave_behind, isolation=isolation, keep_caches=True)["result"]
    assert run(abs, -1, isolation=isolation, keep_caches=True)["result"] == 1
    assert probe.is_alive(child) == (isolation != "fork")
    go.touch()
    eventually(lambda: not probe.is_alive(child))
    for number in range(3):
        assert run(abs, number, isolation=isolation, keep_caches=True)["result"] == number
    if isolation == "inline":
        assert wait_for(child) == 0


def test_a_copy_does_not_clean_up(
    run: Run, isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ledger, "folder", lambda name: tmp_path)

    def look() -> tuple[bool, bool, int]:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            code = "import time; time.sleep(1000)"
            other = subprocess.Popen([sys.executable, "-S", "-c", code])
            name, _ = fork_and(lambda: None)
            found = Path(file.name).exists(), other.poll() is None
            if name == "parent":
                other.kill()
                other.wait()
            return *found, len(claims.Ledger(tmp_path).table().held)

    claim = {"ledger": "one", "capacity": {"memory": 200 * MB}, "amounts": {"memory": 50 * MB}}
    report = run(look, isolation=isolation, claim=claim)
    assert report["result"] == (True, True, 1)
    assert not claims.Ledger(tmp_path).table().held


def own_socket() -> socket.socket:
    """Return the socket of the runner that runs the calling task."""
    frame: Any = sys._getframe()
    while "sock" not in frame.f_locals:
        frame = frame.f_back
    found: socket.socket = frame.f_locals["sock"]
    return found


@pytest.mark.parametrize("size", [1, 24, 100])
def test_an_attempt_whose_runner_sends_garbage_is_lost(
    run: Run, supervised: str, size: int
) -> None:
    def write() -> str:
        os.write(own_socket().fileno(), b"x" * size)
        return "done"

    before = run(os.getpid, isolation=supervised)["result"]
    report = run(write, isolation=supervised)
    assert (report["ending"], report.get("signal")) == ("died", None)
    assert "of this call, and was replaced" in report["reason"]
    assert run(os.getpid, isolation=supervised)["result"] != before
    assert not probe.is_alive(before)


def test_an_attempt_is_lost_whose_runner_has_a_stray_copy_that_writes_to_its_socket(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "READY_S", 2)
    go = tmp_path / "go"

    def leave_behind() -> int:
        sock = own_socket()
        child = fork_in_c()
        if child == 0:
            while not go.exists():
                time.sleep(0.001)
            os.write(sock.fileno(), b"x" * (wire.HEADER.size - 1))
            time.sleep(1000)
        return child

    child = run(leave_behind, keep_caches=True)["result"]
    go.touch()
    report = run(time.sleep, 1000, keep_caches=True)
    assert report["ending"] == "died"
    assert report["reason"] == "sent a part of a frame and not the rest, and was replaced"
    assert not probe.is_alive(child)
    assert run(abs, -1, keep_caches=True)["result"] == 1


def lived(main: Callable[[socket.socket], None], order: dict[str, Any]) -> dict[str, Any]:
    """Return the report of a call that is run in a runner with this life."""
    with Supervisor(main).prepared(order, UNCLAIMED) as made:
        return made.run(order, b"", "runner", UNCLAIMED)


@pytest.mark.parametrize("number", [wire.READY, 2, 2**60])
def test_an_answer_to_another_call_is_no_answer(order: Any, number: int) -> None:
    def main(sock: socket.socket) -> None:
        wire.send(sock, wire.READY, {"ready": 0})
        wire.receive(sock, 1)
        wire.send(sock, number, {"ending": "returned", "result": 7, "has_payload": False})
        time.sleep(1000)

    report = lived(main, order())
    assert report["ending"] == "died"
    assert report["reason"] == (
        f"sent a frame with the number {number} instead of 1, the number of this call, "
        "and was replaced"
    )
    assert "result" not in report


def test_a_runner_that_begins_with_another_call_is_not_used(order: Any) -> None:
    def main(sock: socket.socket) -> None:
        wire.send(sock, 1, {"ready": 0})
        time.sleep(1000)

    with pytest.raises(ConnectionResetError):
        lived(main, order())


@pytest.mark.parametrize("sent", [1, wire.HEADER.size - 1, wire.HEADER.size, 10_000_000])
def test_the_rest_of_an_answer_is_not_waited_for_for_ever(
    order: Any, monkeypatch: pytest.MonkeyPatch, sent: int
) -> None:
    monkeypatch.setattr(supervisor, "READY_S", 1)

    def main(sock: socket.socket) -> None:
        wire.send(sock, wire.READY, {"ready": 0})
        wire.receive(sock, 1)
        sock.sendall(wire.HEADER.pack(1, 100, 20_000_000).ljust(sent)[:sent])
        time.sleep(1000)

    report = lived(main, order())
    assert (report["ending"], report["reason"]) == (
        "died",
        "sent a part of a frame and not the rest, and was replaced",
    )


def test_an_answer_that_takes_long_is_waited_for_while_more_of_it_comes(
    order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "READY_S", 1)

    def main(sock: socket.socket) -> None:
        wire.send(sock, wire.READY, {"ready": 0})
        wire.receive(sock, 1)
        head = marshal.dumps({"ending": "returned", "has_payload": True, "wall_s": 1, "cpu_s": 1})
        sock.sendall(wire.HEADER.pack(1, len(head), 200_000) + head)
        for _ in range(20):
            time.sleep(0.1)
            sock.sendall(b"x" * 10_000)
        wire.receive(sock, 2)

    report = lived(main, order())
    assert (report["ending"], report["payload"]) == ("returned", b"x" * 200_000)


def test_a_runner_that_dies_in_its_answer_is_seen_though_a_child_lives(order: Any) -> None:
    def main(sock: socket.socket) -> None:
        wire.send(sock, wire.READY, {"ready": 0})
        wire.receive(sock, 1)
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        sock.sendall(wire.HEADER.pack(1, 100, 100))
        os._exit(5)

    began = time.monotonic()
    report = lived(main, order())
    assert (report["ending"], report["exit_code"]) == ("died", 5)
    assert time.monotonic() - began < 10


def test_a_runner_that_dies_between_calls_is_replaced_though_a_child_lives(
    run: Run, eventually: Any
) -> None:
    def leave_behind() -> int:
        child = os.fork()
        if child == 0:
            time.sleep(1000)
        return os.getpid()

    before = run(leave_behind, keep_caches=True)["result"]
    os.kill(before, signal.SIGKILL)
    eventually(lambda: not probe.is_alive(before))
    began = time.monotonic()
    report = run(os.getpid, keep_caches=True)
    assert report["ending"] in ("returned", "died")
    assert run(os.getpid, keep_caches=True)["result"] != before
    assert time.monotonic() - began < 10
