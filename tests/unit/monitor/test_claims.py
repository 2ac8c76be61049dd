"""Claims: never more than there is, and none that outlives its process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.monitor import claims, node
from parsl_sizer.monitor.claims import Claim, Full, Ledger, Table

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
    monkeypatch.setattr(claims, "ROUNDS", -1)
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


def test_of_a_claim_that_cannot_be_written_nothing_is_left(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_write", refuse)
        with pytest.raises(OSError, match="No space left"):
            ledger.take({"memory": 10}, {"memory": 1})
    assert ledger.living() == set()
    ledger.take({"memory": 10}, {"memory": 1}).release()


def claim_and_sleep(path: Path, how: str) -> None:
    getattr(Ledger(path), how)({"memory": 10}, {"memory": 10})
    time.sleep(1000)


@pytest.mark.parametrize("how", ["wait", "take"])
def test_a_claim_dies_with_its_process(
    ledger: Ledger, eventually: Eventually, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(claims, "DEAD_EVERY_S", 0.0)
    pid = os.fork()
    if pid == 0:
        claim_and_sleep(ledger.path, how)
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
    monkeypatch.setattr(claims, "DEAD_EVERY_S", 0.0)
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
    assert claim.grown("memory", 4.5, 9) == 5
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
        claims._own.discard(claim._descriptor)
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

    monkeypatch.setattr(claims.fcntl, "flock", refuse)
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
    monkeypatch.setattr(claims, "ROUNDS", -1)
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


def test_an_empty_table_has_room_for_anything() -> None:
    assert Table(b"").has_room("one", {"memory": 1}, {"memory": 2})


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
        patch.setattr(claims.os, "open", refuse)
        assert ledger.living() == {claim.name}
    claim.release()
