"""Claims on a node: never more than it has, and none that outlives its process."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from parsl_sizer.monitor import node, node_ledger
from parsl_sizer.monitor.node_ledger import Claim, Full, Ledger, Table

Eventually = Callable[..., Any]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path)


def waiting(ledger: Ledger, capacity: dict[str, float], amounts: dict[str, float]) -> list[Claim]:
    """Waits for a claim in a thread; the list has it when it is there."""
    found: list[Claim] = []
    thread = threading.Thread(
        target=lambda: found.append(ledger.wait(capacity, amounts)), daemon=True
    )
    thread.start()
    return found


def test_claims_fit_beside_each_other(ledger: Ledger) -> None:
    claims = [ledger.wait({"memory": 1.0}, {"memory": 0.1}) for _ in range(10)]
    assert len(ledger.table().held) == 10
    for claim in claims:
        claim.release()
    assert ledger.table().held == {}
    assert ledger.living() == set()


def test_a_claim_waits_until_there_is_room(ledger: Ledger, eventually: Eventually) -> None:
    first = ledger.wait({"memory": 10, "cores": 4}, {"memory": 6, "cores": 1})
    found = waiting(ledger, {"memory": 10, "cores": 4}, {"memory": 5, "cores": 1})
    eventually(lambda: len(ledger.living()) == 2)
    assert found == []
    first.release()
    eventually(lambda: found)[0].release()


def test_what_never_fits_is_let_in_alone(ledger: Ledger, eventually: Eventually) -> None:
    first = ledger.wait({"memory": 10}, {"memory": 1})
    found = waiting(ledger, {"memory": 10}, {"memory": 11})
    eventually(lambda: len(ledger.living()) == 2)
    first.release()
    large = eventually(lambda: found)[0]
    assert not ledger.table().has_room("other", {"memory": 10}, {"memory": 1})
    large.release()


def test_a_kind_without_capacity_does_not_bind(ledger: Ledger) -> None:
    claims = [ledger.wait({"memory": 10}, {"memory": 1, "gpus": 5}) for _ in range(2)]
    for claim in claims:
        claim.release()


def test_who_was_overtaken_often_is_next(
    ledger: Ledger, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ledger, "ROUNDS", -1)
    first = ledger.wait({"memory": 10}, {"memory": 5})
    large = waiting(ledger, {"memory": 10}, {"memory": 10})
    eventually(lambda: ledger.table().next)
    small = waiting(ledger, {"memory": 10}, {"memory": 1})
    eventually(lambda: len(ledger.living()) == 3)
    assert small == []
    first.release()
    eventually(lambda: large)[0].release()
    eventually(lambda: small)[0].release()


def test_until_then_others_go_first(ledger: Ledger, eventually: Eventually) -> None:
    first = ledger.wait({"memory": 10}, {"memory": 5})
    large = waiting(ledger, {"memory": 10}, {"memory": 10})
    eventually(lambda: len(ledger.living()) == 2)
    for _ in range(2 * 1 + 1):  # two for each that is there, and one
        assert ledger.table().next is None
        ledger.wait({"memory": 10}, {"memory": 1}).release()
    eventually(lambda: ledger.table().next)
    first.release()
    eventually(lambda: large)[0].release()


def test_who_does_not_want_to_wait_is_told(ledger: Ledger) -> None:
    first = ledger.wait({"memory": 10}, {"memory": 10})
    with pytest.raises(Full):
        ledger.wait({"memory": 10}, {"memory": 1}, patience_s=0.0)
    assert len(ledger.living()) == 1
    first.release()
    ledger.wait({"memory": 10}, {"memory": 1}, patience_s=0.0).release()


@pytest.mark.parametrize("mode", ["runner", "fork", "inline"])
def test_a_call_without_room_is_refused(run: Any, mode: str) -> None:
    claim = {"ledger": "full", "capacity": {"memory": 10}, "amounts": {"memory": 10}}
    with node_ledger.claimed(claim):
        report = run(os.getpid, isolation=mode, claim={**claim, "patience_s": 0.0})
        assert report["ending"] == "refused"
        assert report["host"]
    assert run(os.getpid, isolation=mode, claim=claim)["ending"] == "returned"


def claim_and_sleep(path: Path) -> None:
    Ledger(path).wait({"memory": 10}, {"memory": 10})
    time.sleep(1000)


def test_a_claim_dies_with_its_process(
    ledger: Ledger, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ledger, "DEAD_EVERY_S", 0.0)
    pid = os.fork()
    if pid == 0:
        claim_and_sleep(ledger.path)
    eventually(lambda: ledger.table().held)
    found = waiting(ledger, {"memory": 10}, {"memory": 1})
    eventually(lambda: len(ledger.living()) == 2)
    assert found == []
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    eventually(lambda: found)[0].release()


def test_who_is_next_and_dies_does_not_block(
    ledger: Ledger, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ledger, "DEAD_EVERY_S", 0.0)
    with ledger.changing() as table:
        table.next = "claim-of-the-dead"
    found = waiting(ledger, {"memory": 10}, {"memory": 1})
    eventually(lambda: found)[0].release()


def hammer(path: str, log: str, capacity: float, seed: int) -> None:
    """Claims again and again, and notes what is held while it is held."""
    import random

    draw = random.Random(seed)
    ledger = Ledger(Path(path))
    for _ in range(25):
        amount = draw.choice([0.1, 0.2, 0.3, 0.5, 0.7])
        claim = ledger.wait({"memory": capacity}, {"memory": amount})
        mine = Path(log, claim.name)
        mine.write_text(str(amount))
        seen = 0.0
        for one in Path(log).iterdir():
            try:
                seen += float(one.read_text() or 0)
            except FileNotFoundError:
                continue
        if seen > capacity + 1e-6:
            os._exit(1)
        mine.unlink()
        claim.release()


def test_many_processes_never_hold_more_than_there_is(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    (tmp_path / "log").mkdir()
    context = multiprocessing.get_context("fork")
    given = (str(tmp_path / "ledger"), str(tmp_path / "log"), 1.0)
    workers = [context.Process(target=hammer, args=(*given, seed)) for seed in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
        worker.close()


def test_an_order_with_a_claim_waits_for_it(
    run: Callable[..., dict[str, Any]],
    isolation: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_ledger, "folder", lambda name: tmp_path)

    def look(path: Path) -> int:
        return len(Ledger(path).table().held)

    claim = {"ledger": "a run", "capacity": {"memory": 10}, "amounts": {"memory": 10}}
    report = run(look, tmp_path, isolation=isolation, claim=claim)
    assert report["result"] == 1
    assert report["waited_s"] >= 0
    assert Ledger(tmp_path).table().held == {}


def test_a_ledger_has_a_folder_per_user_and_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ledger.tempfile, "gettempdir", lambda: str(tmp_path))
    node_ledger.folder.cache_clear()
    try:
        found = node_ledger.folder("run/7")
        assert found.is_dir()
        assert found.name == "run_7"
        assert os.uname().nodename in found.parent.name
        old = found.parent / "old"
        old.mkdir()
        os.utime(old, (0, 0))
        node_ledger.folder("another")
        assert not old.exists()
        assert found.exists()
    finally:
        node_ledger.folder.cache_clear()


def test_without_a_folder_calls_run_all_the_same(
    run: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(node_ledger, "folder", refuse)
    claim = {"ledger": "a run", "capacity": {"memory": 10}, "amounts": {"memory": 10}}
    assert run(os.getpid, claim=claim)["ending"] == "returned"


def test_a_claim_grows_into_what_is_free(ledger: Ledger) -> None:
    claim = ledger.wait({"memory": 10}, {"memory": 2})
    other = ledger.wait({"memory": 10}, {"memory": 5})
    assert claim.grown("memory", 5, 5)
    assert not claim.grown("memory", 6, 6)
    assert sorted(held["memory"] for held in ledger.table().held.values()) == [5, 5]
    with pytest.raises(Full):
        ledger.wait({"memory": 10}, {"memory": 1}, patience_s=0.0)
    other.release()
    assert claim.grown("memory", 10, 10)
    claim.release()
    assert not claim.grown("memory", 1, 1)
    assert ledger.table().held == {}


def test_a_claim_grows_by_what_is_left_of_what_it_asks_for(ledger: Ledger) -> None:
    claim = ledger.wait({"memory": 10}, {"memory": 2})
    other = ledger.wait({"memory": 10}, {"memory": 5})
    assert claim.grown("memory", 3, 4) == 4
    assert claim.grown("memory", 4.5, 9) == pytest.approx(5)
    assert claim.grown("memory", 5.5, 9) is None
    other.release()
    assert claim.grown("memory", 5.5, 9, must_fit=False) == 9
    claim.release()


def test_what_a_process_forks_holds_none_of_its_locks(ledger: Ledger) -> None:
    claim = ledger.wait({"memory": 10}, {"memory": 10})
    done, say = os.pipe()
    pid = os.fork()
    if pid == 0:  # it outlives the claim, and ends when it is told to
        claim.release()  # which is not its own to give back
        os.write(say, b"x")
        time.sleep(1000)
    try:
        os.read(done, 1)
        assert ledger.living() == {claim.name}
        assert ledger.table().held
        os.close(claim._descriptor)  # as its process's end would
        node_ledger._own.discard(claim._descriptor)
        assert ledger.bury()
        assert ledger.table().held == {}
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_where_nothing_can_be_locked_nothing_is_left_behind(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(node_ledger.fcntl, "flock", refuse)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(OSError, match="not implemented"):
            ledger.wait({"memory": 10}, {"memory": 1})
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert list(ledger.path.iterdir()) == []


def test_nobody_grows_while_the_machine_is_short_of_memory(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = ledger.wait({"memory": 10}, {"memory": 2})
    monkeypatch.setattr(node, "SPARE", 1.1)  # as if others had taken all of it
    assert not claim.grown("memory", 3, 3)
    assert claim.grown("memory", 3, 3, must_fit=False)  # it has it already
    monkeypatch.setattr(node, "SPARE", 0.0)
    assert claim.grown("memory", 4, 4)
    claim.release()


def test_what_runs_grows_before_others_begin(
    ledger: Ledger, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ledger, "ROUNDS", -1)
    claim = ledger.wait({"memory": 10}, {"memory": 5})
    found = waiting(ledger, {"memory": 10}, {"memory": 6})
    eventually(lambda: ledger.table().next)
    assert claim.grown("memory", 8, 8)
    assert found == []
    claim.release()
    eventually(lambda: found)[0].release()


def test_a_claim_grows_into_what_the_dead_held(ledger: Ledger, eventually: Eventually) -> None:
    pid = os.fork()
    if pid == 0:
        Ledger(ledger.path).wait({"memory": 10}, {"memory": 5})
        time.sleep(1000)
    try:
        eventually(lambda: ledger.table().held)
        claim = ledger.wait({"memory": 10}, {"memory": 5})
        assert not claim.grown("memory", 6, 6)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert claim.grown("memory", 10, 10)
    claim.release()


@pytest.mark.parametrize(
    ("growth", "fitting", "too_much"),
    [(None, False, False), ("fitting", True, False), ("any", True, True)],
)
def test_a_call_grows_as_far_as_it_may(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    growth: str | None,
    fitting: bool,
    too_much: bool,
) -> None:
    monkeypatch.setattr(node_ledger, "folder", lambda name: tmp_path)
    claim = {"ledger": "run", "capacity": {"memory": 10}, "amounts": {"memory": 1}}
    with node_ledger.claimed({**claim, "growth": growth}) as place:
        assert (place.grown("memory", 2, 2) is not None) == fitting
        assert (place.grown("memory", 11, 11) is not None) == too_much
    assert not node_ledger.UNCLAIMED.grown("memory", 0, 0)


def test_who_watches_does_not_wait_for_a_ledger_that_others_keep(
    ledger: Ledger, tmp_path: Path
) -> None:
    claim = ledger.wait({"memory": 10}, {"memory": 1})
    place = node_ledger.Place(claim, growth="fitting")
    with Ledger(tmp_path).changing():
        assert not place.grown("memory", 2, 2)
    assert place.grown("memory", 2, 2)
    claim.release()


def test_outside_of_a_worker_nothing_is_claimed_on_it() -> None:
    claim = {"ledger": "run", "capacity": {"memory": 10}, "amounts": {"memory": 1}}
    with node_ledger.claimed({**claim, "of_worker": True, "growth": "fitting"}) as place:
        assert place.claim is None
        assert not place.grown("memory", 2, 2)


@pytest.mark.parametrize(
    ("command", "memory"),
    [
        (b"work_queue_worker\0--memory=500\0host\x009123\0", 500e6),
        (b"work_queue_worker\0--memory\x00500\0host\x009123\0", 500e6),
        (b"vine_worker\0--cores=4\0--memory=\0host\0", None),
        (b"vine_worker\0--memory-threshold=5\0host\0", None),
        (b"", None),
    ],
)
def test_what_a_worker_promised_is_on_its_command_line(
    command: bytes, memory: float | None
) -> None:
    assert node_ledger.promised_memory(command) == memory


WORKER = """
    import subprocess, sys
    for _ in range(2):
        subprocess.Popen(sys.argv[2:])
    input()
"""
CLAIM_ON_WORKER = """
    import sys, time
    sys.path.insert(0, sys.argv[1])
    from parsl_sizer.monitor import node_ledger
    claim = {"ledger": "run", "of_worker": True, "capacity": {"memory": 10e6}}
    claim |= {"amounts": {"memory": 3e6}, "growth": "fitting"}
    try:
        with node_ledger.claimed(claim) as place:
            print(place.grown("memory", 6e6, 6e6), place.grown("memory", 5e6, 5e6), flush=True)
            time.sleep(1000)
    except node_ledger.Full:
        print("given up", flush=True)
"""


def test_what_waits_on_a_worker_that_was_killed_gives_up(
    tmp_path: Path, eventually: Eventually
) -> None:
    """Two claims of 3 MB on a worker that promised 5; the order says that it has 10."""
    program, note = tmp_path / "work_queue_worker", tmp_path / "note"
    program.symlink_to(sys.executable)
    package = str(Path(node_ledger.__file__).parents[2])
    task = [sys.executable, "-c", textwrap.dedent(CLAIM_ON_WORKER), package]
    command = [program, "-S", "-c", textwrap.dedent(WORKER), "--memory=5", *task]
    with (
        note.open("wb") as out,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, cwd=tmp_path) as worker,
    ):
        children = eventually(lambda: len(psutil.Process(worker.pid).children()) == 2) and (
            psutil.Process(worker.pid).children()
        )
        ledger = eventually(lambda: list(tmp_path.glob("parsl_sizer-ledger-run-*")))
        assert ledger[0].name.endswith(f"-{worker.pid}")
        eventually(lambda: note.read_text() == "None 5000000.0\n")
        eventually(lambda: len(Ledger(ledger[0]).living()) == 2)
        worker.kill()
        worker.wait()
    try:
        eventually(lambda: note.read_text() == "None 5000000.0\ngiven up\n")
    finally:
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


def test_an_empty_table_has_room_for_anything() -> None:
    assert Table("").has_room("one", {"memory": 1}, {"memory": 2})


def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ledger.tempfile, "gettempdir", lambda: str(tmp_path))
    node_ledger.folder.cache_clear()
    try:
        above = node_ledger.folder("run").parent
        above.chmod(0o770)
        with pytest.raises(PermissionError):
            node_ledger.folder("another")
    finally:
        node_ledger.folder.cache_clear()


def test_a_ledger_that_somebody_has_removed_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ledger.tempfile, "gettempdir", lambda: str(tmp_path))
    node_ledger.folder.cache_clear()
    claim = {"ledger": "run", "capacity": {"memory": 10}, "amounts": {"memory": 1}}
    try:
        with node_ledger.claimed(claim):
            pass
        shutil.rmtree(node_ledger.folder("run").parent)
        with node_ledger.claimed(claim) as place:
            assert place.claim is not None
            assert len(Ledger(node_ledger.folder("run")).table().held) == 1
    finally:
        node_ledger.folder.cache_clear()


@pytest.mark.parametrize("step", ["write", "unlink", "rename"])
def test_no_claim_is_forgotten_if_a_writer_dies_on_the_way(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    claim = ledger.wait({"memory": 10}, {"memory": 6})

    class Died(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        if step == "write":
            patch.setattr(Ledger, "_write", lambda self, text: self._new.write_text("{") and die())
        else:
            patch.setattr(Path, step, die)
        with pytest.raises(Died), ledger.changing() as table:
            table.held["new"] = {"memory": 1}
    assert claim.name in ledger.table().held
    with ledger.changing() as table:
        table.held["another"] = {"memory": 2}
    assert {claim.name, "another"} <= set(ledger.table().held)
    claim.release()


def test_who_cannot_look_takes_nobody_for_dead(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = ledger.wait({"memory": 10}, {"memory": 6})

    def refuse(*_: object) -> int:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(node_ledger.os, "open", refuse)
        assert ledger.living() == {claim.name}
    claim.release()


def test_what_is_free_is_what_nobody_holds(ledger: Ledger) -> None:
    claim = ledger.wait({"memory": 10}, {"memory": 2})
    other = ledger.wait({"memory": 10}, {"memory": 5})
    assert node_ledger.Place(claim, growth="fitting").free("memory") == 3
    assert node_ledger.Place(claim).free("memory") == 0
    assert claim.free("disk") == 0
    ledger.path.joinpath("table").unlink()
    ledger.path.joinpath("table").mkdir()  # it cannot be read
    assert node_ledger.Place(claim, growth="fitting").free("memory") == 0
    ledger.path.joinpath("table").rmdir()
    claim.release()
    other.release()
