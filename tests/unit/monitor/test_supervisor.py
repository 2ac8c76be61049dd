"""Calls in a process of their own: how they end, and that nothing is left of them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.monitor import claims, node_ledger, probe, supervisor

Run = Callable[..., dict[str, Any]]
Eventually = Callable[..., Any]

MB = 1_000_000


def pid() -> int:
    return os.getpid()


def hold(size: int, seconds: float) -> int:
    data = b"x" * size
    time.sleep(seconds)
    return len(data)


def test_a_runner_serves_one_call_after_the_other(run: Run) -> None:
    assert run(pid)["result"] == run(pid)["result"] != os.getpid()


def test_a_fork_serves_one_call(run: Run) -> None:
    assert run(pid, isolation="fork")["result"] != run(pid, isolation="fork")["result"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGUSR1, signal.SIGTERM])
def test_a_call_that_is_killed_has_died(run: Run, supervised: str, number: int) -> None:
    def die() -> None:
        os.kill(os.getpid(), number)

    report = run(die, isolation=supervised)
    assert (report["ending"], report["signal"], report["exit_code"]) == ("died", number, None)
    assert "out_of_memory" not in report
    assert report["payload"] is None
    assert run(pid, isolation=supervised)["ending"] == "returned"


def test_a_call_that_leaves_without_a_word_has_died(run: Run, supervised: str) -> None:
    report = run(os._exit, 7, isolation=supervised)
    assert (report["ending"], report["signal"], report["exit_code"]) == ("died", None, 7)


def test_a_call_that_lasts_and_is_killed_has_a_peak(run: Run, supervised: str) -> None:
    def die() -> None:
        data = b"x" * 50 * MB
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
        print(len(data))

    report = run(die, isolation=supervised)
    assert report["ending"] == "died"
    assert report["peak"]["memory"] == pytest.approx(50 * MB, rel=0.02, abs=5 * MB)


def test_a_runner_whose_children_hold_its_socket_is_seen_to_die(run: Run, supervised: str) -> None:
    def die() -> None:
        if ctypes.PyDLL(None).fork() == 0:  # after a fork by Python the child closes it
            time.sleep(1000)
        os._exit(5)

    report = run(die, isolation=supervised)
    assert (report["ending"], report["exit_code"]) == ("died", 5)


def test_a_call_that_closes_everything_is_ended(run: Run, supervised: str) -> None:
    def close() -> None:
        os.closerange(3, 1000)
        time.sleep(1000)

    report = run(close, isolation=supervised)
    assert (report["ending"], report["signal"], report["exit_code"]) == ("died", None, None)


def test_a_breach_of_memory_is_stopped(run: Run, supervised: str) -> None:
    before = run(pid, isolation=supervised)["result"]
    report = run(hold, 150 * MB, 1000, isolation=supervised, limits={"memory": 100 * MB})
    assert report["ending"] == "stopped"
    assert report["exhausted"] == ["memory"]
    assert report["peak"]["memory"] == pytest.approx(150 * MB, rel=0.02, abs=5 * MB)
    assert report["wall_s"] < 500
    assert run(pid, isolation=supervised)["result"] != before


def room(capacity: float, growth: str | None = "fitting") -> dict[str, object]:
    """A claim of 50 MB on a node that has so much."""
    return {
        "ledger": uuid.uuid4().hex,
        "capacity": {"memory": capacity},
        "amounts": {"memory": 50 * MB},
        "growth": growth,
    }


SMALL = {"memory": 50 * MB}


def test_a_call_that_needs_more_grows_where_its_node_has_room(run: Run, supervised: str) -> None:
    report = run(hold, 150 * MB, 1.0, isolation=supervised, limits=SMALL, claim=room(200 * MB))
    assert report["ending"] == "returned"
    assert report["exhausted"] == []
    assert 150 * MB <= report["grown"]["memory"] <= 1.2 * 150 * MB
    following = run(hold, 150 * MB, 1000, isolation=supervised, limits=SMALL)
    assert following["ending"] == "stopped"


@pytest.mark.parametrize("claim", [room(140 * MB), room(200 * MB, None), None])
def test_a_call_that_may_not_grow_that_much_is_stopped(
    run: Run, supervised: str, claim: dict[str, object] | None
) -> None:
    report = run(hold, 150 * MB, 1000, isolation=supervised, limits=SMALL, claim=claim)
    assert (report["ending"], report["exhausted"]) == ("stopped", ["memory"])
    grown = report.get("grown", SMALL)["memory"]
    assert grown <= (140 * MB if claim and claim["growth"] else 50 * MB)


def test_what_is_never_stopped_has_what_it_takes(
    run: Run, supervised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ledger, "folder", lambda name: tmp_path)

    def takes() -> float:
        data = b"x" * 150 * MB
        until = time.monotonic() + 30
        while time.monotonic() < until and len(data):
            [held] = claims.Ledger(tmp_path).table().held.values()
            if held["memory"] > 150 * MB:
                break
            time.sleep(0.01)
        return held["memory"]

    claim = room(60 * MB, "any")
    report = run(takes, isolation=supervised, limits=SMALL, claim=claim, enforce=False)
    assert report["result"] > 150 * MB
    assert "grown" not in report


def test_what_is_never_stopped_is_not_where_the_ledger_is_lost(
    run: Run, supervised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ledger, "folder", lambda name: tmp_path)

    def takes() -> int:
        for path in tmp_path.iterdir():
            path.unlink()
        tmp_path.rmdir()
        data = b"x" * 150 * MB
        time.sleep(1.0)
        return len(data)

    claim = room(200 * MB, "any")
    report = run(takes, isolation=supervised, limits=SMALL, claim=claim, enforce=False)
    assert (report["ending"], report["exhausted"]) == ("returned", [])


def test_a_breach_of_disk_is_stopped(run: Run, supervised: str) -> None:
    def write() -> None:
        Path(os.environ["TMPDIR"], "large").write_bytes(b"0" * 30 * MB)
        time.sleep(1000)

    report = run(write, isolation=supervised, limits={"disk": 10 * MB})
    assert report["ending"] == "stopped"
    assert report["exhausted"] == ["disk"]
    assert report["peak"]["disk"] >= 30 * MB


def test_a_breach_in_a_child_is_stopped(run: Run, supervised: str) -> None:
    def start() -> None:
        code = "data = b'x' * 150_000_000; import time; time.sleep(1000)"
        subprocess.run([sys.executable, "-S", "-c", code], check=True)

    report = run(start, isolation=supervised, limits={"memory": 100 * MB})
    assert (report["ending"], report["exhausted"]) == ("stopped", ["memory"])


def test_what_is_only_to_be_measured_is_not_stopped(run: Run, supervised: str) -> None:
    limits = {"memory": 20 * MB, "disk": 1}
    report = run(hold, 60 * MB, 0.5, isolation=supervised, limits=limits, enforce=False)
    assert report["ending"] == "returned"
    assert report["peak"]["memory"] == pytest.approx(60 * MB, rel=0.02, abs=5 * MB)


def test_cores_never_stop_a_call(run: Run, supervised: str) -> None:
    def work() -> None:
        began = time.monotonic()
        while time.monotonic() - began < 0.4:
            pass

    assert run(work, isolation=supervised, limits={"cores": 0.1})["ending"] == "returned"


def test_a_short_spike_above_the_limit_is_forgiven_and_told(run: Run, supervised: str) -> None:
    report = run(hold, 150 * MB, 0.0, isolation=supervised, limits={"memory": 100 * MB})
    assert report["ending"] == "returned"
    assert report["peak"]["memory"] == pytest.approx(150 * MB, rel=0.02, abs=5 * MB)


def test_processes_that_a_call_leaves_are_ended(run: Run, supervised: str) -> None:
    def start() -> int:
        code = "import time; time.sleep(1000)"
        return subprocess.Popen([sys.executable, "-S", "-c", code]).pid

    report = run(start, isolation=supervised)
    assert not probe.is_alive(report["result"])
    assert report["ended_processes"] is True
    following = run(pid, isolation=supervised)
    assert following["ending"] == "returned"
    assert "ended_processes" not in following


def test_a_fork_that_is_to_keep_caches_keeps_no_process_and_says_so(run: Run) -> None:
    def start() -> int:
        return subprocess.Popen(["sleep", "1000"]).pid

    report = run(start, isolation="fork", keep_caches=True)
    assert not probe.is_alive(report["result"])
    assert report["ended_processes"] is True


def test_a_child_that_has_ended_is_not_told_of(run: Run, supervised: str) -> None:
    def start() -> None:
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # nobody has asked for its status

    assert "ended_processes" not in run(start, isolation=supervised)


def test_a_child_that_escapes_its_session_and_its_parent_is_ended(
    run: Run, supervised: str, tmp_path: Path, eventually: Eventually
) -> None:
    note = tmp_path / "pid"

    def escape() -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                note.write_text(str(os.getpid()))
                data = b"x" * 150 * MB
                time.sleep(1000)
                print(len(data))
            os._exit(0)
        time.sleep(1000)

    report = run(escape, isolation=supervised, limits={"memory": 100 * MB})
    assert (report["ending"], report["exhausted"]) == ("stopped", ["memory"])
    assert not probe.is_alive(int(note.read_text()))


def test_a_runner_without_its_keeper_ends_nothing_but_itself(
    run: Run, tmp_path: Path, eventually: Eventually
) -> None:
    def orphan() -> None:
        def note(victims: Any) -> None:
            (tmp_path / "killed").write_text(str(victims))

        probe.kill = note  # it would be the processes of all
        keeper = os.getppid()
        ctypes.CDLL(None).prctl(probe.PR_SET_PDEATHSIG, 0, 0, 0, 0)
        os.kill(keeper, signal.SIGKILL)
        while os.getppid() == keeper:
            time.sleep(0.001)
        (tmp_path / "pid").write_text(str(os.getpid()))

    assert run(orphan)["ending"] == "died"
    runner = int((tmp_path / "pid").read_text())
    eventually(lambda: not probe.is_alive(runner))
    assert not (tmp_path / "killed").exists()


def test_caches_that_are_kept_keep_their_processes(run: Run, eventually: Eventually) -> None:
    def start() -> int:
        code = "import time; time.sleep(1000)"
        return subprocess.Popen([sys.executable, "-S", "-c", code]).pid

    report = run(start, keep_caches=True)
    assert probe.is_alive(report["result"])
    supervisor.close()
    assert not probe.is_alive(report["result"])


def test_large_arguments_and_results_come_through(run: Run, supervised: str) -> None:
    def double(data: bytes) -> bytes:
        return data + data

    report = run(double, b"x" * 60 * MB, isolation=supervised)
    assert len(report["result"]) == 120 * MB
    assert run(pid, isolation=supervised)["ending"] == "returned"


def test_a_runner_that_was_started_beside_a_large_argument_is_given_up(run: Run) -> None:
    run(len, b"x" * 30 * MB)
    held = run(pid)["base"]
    supervisor.close()
    assert run(pid)["base"] == pytest.approx(held, abs=5 * MB)


def test_a_call_finds_the_signal_handlers_of_its_worker(run: Run, supervised: str) -> None:
    def handlers() -> list[str]:
        return [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as under nohup
    try:
        report = run(handlers, isolation=supervised)
    finally:
        signal.signal(signal.SIGINT, before)
    assert report["result"] == [str(signal.SIG_IGN), str(signal.SIG_DFL)]


def test_a_keeper_that_was_killed_is_replaced(run: Run, eventually: Any) -> None:
    run(pid)
    runner = probe.stat(run(pid)["result"])
    assert runner is not None
    os.kill(runner.ppid, signal.SIGKILL)
    eventually(lambda: not probe.is_alive(runner.ppid))
    report = run(pid)
    assert report["ending"] in ("returned", "died")
    assert run(pid)["ending"] == "returned"


WORKER = """
    import os, signal, subprocess, sys, time
    from parsl.serialize import pack_apply_message
    from parsl_sizer.monitor import travel

    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored, inherited

    def task(path):
        code = "import time; time.sleep(1000)"
        child = subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
        with open(path + ".new", "w") as file:
            file.write(f"{os.getpid()} {os.getppid()} {child.pid} {os.environ['TMPDIR']}")
        os.rename(path + ".new", path)
        time.sleep(1000)

    order = {"isolation": sys.argv[1], "sandbox": "tmp", "codec": (
        "parsl.serialize:unpack_apply_message",
        "parsl.serialize:serialize",
        "parsl.app.errors:RemoteExceptionWrapper",
    )}
    if sys.argv[1] == "runner":
        travel.run_packed(order, pack_apply_message(task, (sys.argv[2],), {}))
    else:
        travel.wrapped(task)(order, sys.argv[2])
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_all_that_a_worker_started_dies_with_it(
    supervised: str, number: int, tmp_path: Path, eventually: Eventually
) -> None:
    note = tmp_path / "note"
    command = [sys.executable, "-c", textwrap.dedent(WORKER), supervised, str(note)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as worker:
        eventually(note.exists)
        *pids, folder = note.read_text().split()
        assert all(probe.is_alive(int(one)) for one in pids)
        worker.send_signal(number)
    eventually(lambda: not any(probe.is_alive(int(one)) for one in pids))
    eventually(lambda: not Path(folder).exists())


def test_threads_have_a_runner_each(run: Run) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def meet(path: str) -> int:
        Path(path, str(os.getpid())).touch()
        while len(list(Path(path).iterdir())) < 2:
            time.sleep(0.001)
        return os.getpid()

    import tempfile

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: run(meet, folder), range(2))
    assert first["result"] != second["result"]


def test_where_nothing_can_be_supervised_calls_run_in_place(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parsl_sizer.monitor import fork

    monkeypatch.setattr(supervisor, "can_be_supervised", lambda: False)
    monkeypatch.setattr(fork.node, "can_be_supervised", lambda: False)
    for mode in ("runner", "fork"):
        report = run(pid, isolation=mode)
        assert (report["result"], report["isolation"]) == (os.getpid(), "inline")


def test_without_a_process_to_be_had_calls_run_in_place(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(supervisor, "Keeper", refuse)
    assert run(pid)["result"] == os.getpid()
    assert run(pid, isolation="fork")["result"] == os.getpid()


PATRON = """
    import subprocess, sys
    subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL)
"""


@pytest.mark.parametrize("kind", ["work_queue_worker", "process_worker_pool"])
def test_a_task_that_nobody_waits_for_any_more_is_ended(
    kind: str, tmp_path: Path, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under Work Queue, whose worker was killed, or HTEX, whose manager was."""
    note, program = tmp_path / "note", tmp_path / kind
    program.symlink_to(sys.executable)
    if kind == "process_worker_pool":
        monkeypatch.setenv("PARSL_WORKER_POOL_ID", "pool")
    task = [sys.executable, "-c", textwrap.dedent(WORKER), "fork", str(note)]
    with subprocess.Popen([program, "-S", "-c", textwrap.dedent(PATRON), *task]) as patron:
        eventually(note.exists)
        *pids, _ = note.read_text().split()
        patron.kill()
    eventually(lambda: not any(probe.is_alive(int(one)) for one in pids))


def test_a_call_may_run_calls_of_its_own(run: Run, supervised: str) -> None:
    def outer() -> tuple[int, int]:
        inner: int = run(pid, isolation=supervised)["result"]
        return os.getpid(), inner

    outer_pid, inner_pid = run(outer, isolation=supervised)["result"]
    assert len({os.getpid(), outer_pid, inner_pid}) == 3
    assert not probe.is_alive(inner_pid)


def test_a_runner_that_hangs_between_calls_is_replaced(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn:
        def __del__(self) -> None:
            time.sleep(1000)

    def litter() -> int:
        cycle: list[Any] = [Stubborn(), b"x" * 20 * MB]
        cycle.append(cycle)
        return os.getpid()

    first = run(litter)["result"]
    monkeypatch.setattr("parsl_sizer.monitor.supervisor.READY_S", 0.5)
    report = run(pid)
    assert report["ending"] == "returned"
    assert report["result"] != first
