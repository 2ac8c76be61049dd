"""What /proc says of processes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.monitor import probe
from parsl_sizer.monitor.sampler import Sampler

MB = 1_000_000
GONE = 2**22 + 1
"""Above the highest pid that there can be."""


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts processes that are gone after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def starting(*command: str, **more: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(command, **more))
        return started[-1]

    yield starting
    for process in started:
        process.kill()
        process.wait()


def test_memory_that_is_taken_is_held() -> None:
    before = probe.memory()
    data = b"x" * 50 * MB
    after = probe.memory(os.getpid())
    assert before is not None
    assert after is not None
    assert after.held - before.held == pytest.approx(len(data), abs=2 * MB)
    assert after.highest >= after.held + after.file - 2 * MB


def test_the_highest_can_be_forgotten() -> None:
    data = b"x" * 50 * MB
    del data
    before = probe.memory()
    assert probe.forget_highest()
    after = probe.memory()
    assert before is not None
    assert after is not None
    assert after.highest < before.highest - 40 * MB


def test_shared_memory_is_held_and_told_apart() -> None:
    from multiprocessing.shared_memory import SharedMemory

    before = probe.memory()
    memory = SharedMemory(create=True, size=20 * MB)
    try:
        memory.buf[:] = bytes(20 * MB)
        after = probe.memory()
        assert before is not None
        assert after is not None
        assert after.shared - before.shared == pytest.approx(20 * MB, abs=MB)
        assert after.held - before.held >= 19 * MB
    finally:
        memory.close()
        memory.unlink()


def test_a_process_that_is_alone_has_all_its_pages(start: Any, eventually: Any) -> None:
    code = "data = b'x' * 50_000_000; print(flush=True); input()"
    child = start(sys.executable, "-S", "-c", code, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child.stdin, child.stdout:
        child.stdout.readline()
        held = probe.memory(child.pid)
        assert held is not None
        shares = probe.shares(child.pid)
        assert shares is not None
        assert shares.anonymous == pytest.approx(held.held, abs=MB)
        assert shares.of_anonymous == pytest.approx(held.held, abs=MB)


def test_what_is_not_there_is_none() -> None:
    assert probe.memory(GONE) is None
    assert probe.stat(GONE) is None
    assert probe.shares(GONE) is None
    assert not probe.forget_highest(GONE)
    assert not probe.is_alive(GONE)
    probe.kill([GONE])


def test_a_process_that_has_ended_has_no_memory() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    try:
        found = probe.stat(pid)
        assert found is not None
        assert found.state == "Z"
        assert probe.memory(pid) is None
        assert not probe.is_alive(pid)
    finally:
        os.waitpid(pid, 0)


def test_a_name_with_brackets_does_not_confuse(start: Any, tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    program.symlink_to(sys.executable)
    child = start(str(program), "-S", "-c", "import time; time.sleep(1000)")
    found = probe.stat(child.pid)
    assert found is not None
    assert found.ppid == os.getpid()


def test_a_tree_has_what_came_out_of_its_root(start: Any, eventually: Any) -> None:
    code = "import subprocess, sys; subprocess.run(['sleep', '1000'])"
    child = start(sys.executable, "-S", "-c", code)
    tree = probe.Tree(child.pid)
    grandchildren = eventually(lambda: (tree.scan(), tree.members - {child.pid})[1])
    assert os.getpid() not in tree.members
    assert grandchildren <= set(probe.descendants(os.getpid()))
    probe.kill(grandchildren)


def test_a_tree_forgets_who_is_gone_and_can_do_without_some(start: Any) -> None:
    one, other = start("sleep", "1000"), start("sleep", "1000")
    tree = probe.Tree(os.getpid(), without=[other.pid])
    tree.scan()
    assert one.pid in tree.members
    assert other.pid not in tree.members
    one.kill()
    one.wait()
    tree.scan()
    assert one.pid not in tree.members


def test_a_pid_that_has_a_new_owner_is_read_again(start: Any) -> None:
    child = start("sleep", "1000")
    tree = probe.Tree(os.getpid())
    tree._strangers = {child.pid}
    for _ in range(probe.SCANS_OF_A_STRANGER):
        tree.scan()
    assert child.pid in tree.members


def test_the_cpu_time_of_children_stays_when_they_were_waited_for() -> None:
    tree = probe.Tree(os.getpid())
    before = tree.cpu_s()
    code = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-S", "-c", code], check=True)
    assert tree.cpu_s() - before >= 0.15


def test_orphans_are_adopted(tmp_path: Path, eventually: Any) -> None:
    note = tmp_path / "note"
    pid = os.fork()
    if pid == 0:
        probe.adopt_orphans()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                note.write_text(str(os.getpid()))
                time.sleep(1000)
            os._exit(0)
        os.wait()
        time.sleep(1000)
    try:
        eventually(lambda: note.exists() and note.read_text())
        orphan = int(note.read_text())
        eventually(lambda: orphan in probe.descendants(pid))
    finally:
        probe.kill([orphan, pid])
        os.waitpid(pid, 0)
    assert probe.can_adopt_orphans()


def test_the_children_of_a_process_are_listed(start: Any) -> None:
    child = start("sleep", "1000")
    assert child.pid in (probe.children(os.getpid()) or ())
    assert probe.children(child.pid) == []


def test_a_tree_has_what_another_process_has_adopted(start: Any) -> None:
    """The adopter itself is no part of it."""
    child, orphan = start("sleep", "1000"), start("sleep", "1000")
    tree = probe.Tree(child.pid, adopter=os.getpid())
    tree.scan()
    assert {child.pid, orphan.pid} <= tree.members
    assert os.getpid() not in tree.members


def test_nothing_is_read_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(probe.os, "open", refuse)
    monkeypatch.setattr(probe.os, "listdir", refuse)
    assert probe.memory() is None
    assert probe.pids() == []
    assert not probe.write("/proc/self/clear_refs", b"5")


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_process_that_cannot_be_read_is_not_gone(
    number: int, monkeypatch: pytest.MonkeyPatch, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start("sleep", "1000")
    known = probe.stat(process.pid)
    assert known
    sampler = Sampler(process.pid, fresh=0)
    sampler.sample()
    peak = sampler.peak

    def refuse(*_: Any) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        patched.setattr(os, "listdir", refuse)
        assert probe.is_alive(process.pid)
        assert probe.is_same(process.pid, known)
        assert not probe.is_alive(GONE)
        sampler._next_scan = 0.0
        sampler.sample()
    assert sampler.is_root_alive
    sampler.sample()
    assert (sampler.tree.members, sampler.peak > 0) == ({process.pid}, peak > 0)
    process.kill()
    process.wait()
    assert not probe.is_alive(process.pid)
    sampler.sample()
    assert not sampler.is_root_alive
