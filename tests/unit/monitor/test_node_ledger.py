"""Where the claims on a node are, and what a call holds of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from parsl_sizer.monitor import inline, keeper, node, node_ledger, watch
from parsl_sizer.monitor.claims import Full, Ledger
from parsl_sizer.monitor.grant import Grant
from parsl_sizer.monitor.sandbox import Sandbox

Eventually = Callable[..., Any]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path)


@pytest.mark.parametrize("mode", ["runner", "fork", "inline"])
def test_a_call_without_room_is_refused(run: Any, mode: str) -> None:
    claim = {"ledger": "full", "capacity": {"memory": 10}, "amounts": {"memory": 10}}
    with node_ledger.claimed(claim):
        report = run(os.getpid, isolation=mode, claim={**claim, "patience_s": 0.0})
        assert report["ending"] == "refused"
        assert report["host"]
    assert run(os.getpid, isolation=mode, claim=claim)["ending"] == "returned"


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


@pytest.fixture
def late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger: Ledger
) -> tuple[dict[str, Any], Ledger]:
    """A claim for a call that may begin without it, and the ledger that it is made in."""
    monkeypatch.setattr(node_ledger, "folder", lambda name: tmp_path)
    monkeypatch.setattr(node_ledger, "is_one_program", lambda: True)
    claim = {"ledger": "run", "capacity": {"memory": 10}, "amounts": {"memory": 10}}
    return {**claim, "is_late": True}, ledger


def wait_for_claim(path: Path) -> dict[str, Any]:
    """In a call: last until something is held."""
    until = time.monotonic() + 30
    while not (held := Ledger(path).table().held) and time.monotonic() < until:
        time.sleep(0.001)
    return held


def test_a_call_that_is_over_in_a_moment_claims_nothing(
    run: Any, isolation: str, late: tuple[dict[str, Any], Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, ledger = late
    monkeypatch.setattr(watch, "FIRST_S", 30.0)  # also on a machine that is busy
    monkeypatch.setattr(inline, "LONG_S", 30.0)
    assert run(os.getpid, isolation=isolation, claim=claim)["ending"] == "returned"
    assert list(ledger.path.iterdir()) == []


def test_a_call_that_lasts_holds_its_claim_until_its_end(
    run: Any, isolation: str, late: tuple[dict[str, Any], Ledger]
) -> None:
    claim, ledger = late
    report = run(wait_for_claim, ledger.path, isolation=isolation, claim=claim)
    assert list(report["result"].values()) == [{"memory": 10}]
    assert ledger.table().held == {}
    assert ledger.living() == set()


def test_a_call_for_which_there_is_no_process_left_holds_its_claim_at_once(
    run: Any, isolation: str, late: tuple[dict[str, Any], Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    claim, ledger = late
    monkeypatch.setattr(keeper.Keeper, "start", refuse)
    monkeypatch.setattr(inline, "LONG_S", 30.0)
    monkeypatch.setattr(inline.probe, "memory", lambda pid="self": None)
    monkeypatch.setattr(inline, "_known", None)
    report = run(wait_for_claim, ledger.path, isolation=isolation, claim=claim)
    assert list(report["result"].values()) == [{"memory": 10}]
    assert ledger.table().held == {}


def test_a_task_that_runs_a_program_of_its_own_shares_the_ledger_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", os.environ["TMPDIR"])
    node_ledger.folder.cache_clear()
    try:
        outer = node_ledger.folder("machine")
        made = Sandbox()
        assert made.path is not None
        monkeypatch.setattr(tempfile, "tempdir", made.path)
        node_ledger.folder.cache_clear()
        assert node_ledger.folder("machine") == outer
        made.remove()
    finally:
        node_ledger.folder.cache_clear()


def test_what_runs_already_is_counted_though_it_has_no_room(
    late: tuple[dict[str, Any], Ledger],
) -> None:
    claim, ledger = late
    with node_ledger.claimed(claim) as first, node_ledger.claimed(claim) as second:
        assert first.hold()
        assert second.hold()
        assert not second.hold(), "it is held already"
        assert list(ledger.table().held.values()) == [{"memory": 10}] * 2
        assert not second.grown("memory", 11, 11)
    assert ledger.table().held == {}


def test_a_call_does_not_begin_where_others_have_grown_into_its_room(
    run: Any, isolation: str, late: tuple[dict[str, Any], Ledger]
) -> None:
    claim, ledger = late
    grown = ledger.wait({"memory": 10}, {"memory": 5})
    report = run(os.getpid, isolation=isolation, claim={**claim, "patience_s": 0.0})
    assert report["ending"] == "refused"
    grown.release()


def test_while_others_keep_the_ledger_a_claim_is_made_with_the_next_look(
    late: tuple[dict[str, Any], Ledger],
) -> None:
    claim, ledger = late
    with node_ledger.claimed({**claim, "growth": "any"}) as place:
        with Ledger(ledger.path).changing():
            assert not place.hold()
            assert not place.grown("memory", 11, 11)
        assert place.hold()
        assert place.grown("memory", 11, 11)
    assert ledger.table().held == {}


def test_programs_on_one_host_know_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_ledger, "folder", lambda name: tmp_path / name)
    (tmp_path / "programs").mkdir()
    first = node_ledger.Presence()
    assert node_ledger.is_one_program()
    second = node_ledger.Presence()
    assert not node_ledger.is_one_program()
    second.end()
    assert node_ledger.is_one_program()
    (tmp_path / "programs" / "claim-of-the-dead").touch()
    assert node_ledger.is_one_program()
    first.end()
    assert not node_ledger.is_one_program()


def test_a_worker_whose_program_is_elsewhere_is_seen_by_programs_of_its_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They let calls begin without a claim, beside those of such workers."""
    (tmp_path / "programs").mkdir()
    (tmp_path / "machine").mkdir()
    monkeypatch.setattr(node_ledger, "folder", lambda name: tmp_path / name)
    monkeypatch.setattr(node, "grant_here", Grant)
    monkeypatch.setattr(node_ledger, "_signs", {})
    own = node_ledger.Presence()
    claim = {"ledger": "a", "shared": True, "capacity": {"memory": 10}, "amounts": {"memory": 1}}
    for late in (True, False):  # those of the program itself
        with node_ledger.claimed({**claim, "is_late": late}):
            assert node_ledger.is_one_program()
    with node_ledger.claimed(claim):
        assert not node_ledger.is_one_program()
    assert not node_ledger.is_one_program()  # the worker is still there
    own.end()
    node_ledger._signs[os.getpid()].end()


def test_a_worker_of_a_grant_gives_no_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "programs").mkdir()
    (tmp_path / "job_12").mkdir()
    monkeypatch.setattr(node_ledger, "folder", lambda name: tmp_path / name.replace(" ", "_"))
    monkeypatch.setattr(node, "grant_here", lambda: Grant("job 12"))
    own = node_ledger.Presence()
    claim = {"ledger": "a", "shared": True, "capacity": {"memory": 10}, "amounts": {"memory": 1}}
    with node_ledger.claimed(claim):
        assert node_ledger.is_one_program()
    own.end()


def test_where_no_claim_can_be_made_a_call_runs_all_the_same(
    run: Any, supervised: str, late: tuple[dict[str, Any], Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, _ = late

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(node_ledger.Ledger, "take", fail)
    report = run(time.sleep, 0.1, isolation=supervised, claim={**claim, "growth": "fitting"})
    assert report["ending"] == "returned"


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
    from parsl_sizer.monitor import claims, node_ledger
    claim = {"ledger": "run", "of_worker": True, "capacity": {"memory": 10e6}}
    claim |= {"amounts": {"memory": 3e6}, "growth": "fitting"}
    try:
        with node_ledger.claimed(claim) as place:
            print(place.grown("memory", 6e6, 6e6), place.grown("memory", 5e6, 5e6), flush=True)
            time.sleep(1000)
    except claims.Full:
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


def test_programs_that_read_a_machine_differently_each_keep_to_their_reading(
    ledger: Ledger,
) -> None:
    claims = [ledger.wait({"memory": 10}, {"memory": 6})]
    with pytest.raises(Full):
        ledger.wait({"memory": 8}, {"memory": 3}, patience_s=0.0)
    claims.append(ledger.wait({"memory": 8}, {"memory": 2}))
    with pytest.raises(Full):
        ledger.wait({"memory": 10}, {"memory": 3}, patience_s=0.0)
    claims.append(ledger.wait({"memory": 10}, {"memory": 2}))
    assert sum(held["memory"] for held in ledger.table().held.values()) == 10
    for claim in claims:
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
