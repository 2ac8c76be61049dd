"""Control groups: version 1 as it is here, version 2 as a tree of files."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parsl_sizer.monitor import cgroup, supervisor
from parsl_sizer.monitor.cgroup import Group, Place

MB = 1_000_000
GB = 1_000_000_000


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def process(tmp_path: Path) -> Path:
    """A process of a fake /proc."""
    folder = tmp_path / "proc"
    folder.mkdir()
    return folder


@pytest.fixture
def unified(tmp_path: Path, process: Path) -> Path:
    """A fake tree of version 2, as systemd makes it, with a process in job/step."""
    root = tmp_path / "cgroup"
    write(process / "cgroup", "0::/job/step\n")
    write(root / "cgroup.controllers", "cpuset cpu io memory pids\n")
    for folder in (root, root / "job"):
        write(folder / "cgroup.subtree_control", "cpu memory\n")
    for folder in (root / "job", root / "job" / "step"):
        write(folder / "cgroup.procs", "")
        write(folder / "memory.max", "max\n")
        write(folder / "cpu.max", "max 100000\n")
    write(root / "job" / "step" / "cgroup.subtree_control", "\n")
    return root


def at(controller: str, root: Path, process: Path) -> Place:
    found = cgroup.place(controller, root, str(process))
    assert found is not None
    return found


def test_a_process_is_found_in_version_2(unified: Path, process: Path) -> None:
    found = at("memory", unified, process)
    assert found == Place(2, unified / "job" / "step", unified)
    assert found.upwards() == [unified / "job" / "step", unified / "job", unified]


def test_a_process_is_found_in_version_1(tmp_path: Path, process: Path) -> None:
    write(process / "cgroup", "5:cpu,cpuacct:/\n4:memory:/job\n0::/\n")
    folder = tmp_path / "cgroup" / "memory" / "job"
    folder.mkdir(parents=True)
    found = at("memory", tmp_path / "cgroup", process)
    assert found == Place(1, folder, folder.parent)


def test_in_a_container_the_mount_is_the_group(unified: Path, process: Path) -> None:
    write(process / "cgroup", "0::/kubepods/pod1\n")
    assert at("memory", unified, process).folder == unified


def test_a_controller_that_is_not_there_is_none(tmp_path: Path, process: Path) -> None:
    assert cgroup.place("memory", tmp_path, str(process)) is None
    write(process / "cgroup", "0::/\n")
    write(tmp_path / "cgroup.controllers", "pids\n")
    assert cgroup.place("memory", tmp_path, str(process)) is None
    assert cgroup.memory(None) is None
    assert cgroup.cores(None) is None
    assert cgroup.make(None) is None


def test_the_lowest_limit_on_the_way_up_holds(unified: Path, process: Path) -> None:
    assert cgroup.memory(at("memory", unified, process)) is None
    write(unified / "job" / "memory.max", f"{4 * GB}\n")
    write(unified / "job" / "step" / "memory.max", f"{8 * GB}\n")
    write(unified / "job" / "step" / "cpu.max", "250000 100000\n")
    assert cgroup.memory(at("memory", unified, process)) == 4 * GB
    assert cgroup.cores(at("cpu", unified, process)) == 2.5


def test_what_is_left_is_what_is_used_but_for_what_can_be_dropped(
    unified: Path, process: Path
) -> None:
    assert cgroup.memory_left(None) == 1.0
    assert cgroup.memory_left(at("memory", unified, process)) == 1.0
    write(unified / "job" / "memory.max", f"{4 * GB}\n")
    write(unified / "job" / "memory.current", f"{3 * GB}\n")
    assert cgroup.memory_left(at("memory", unified, process)) == 0.25
    write(unified / "job" / "memory.stat", f"anon {2 * GB}\ninactive_file {GB}\n")
    assert cgroup.memory_left(at("memory", unified, process)) == 0.5
    write(unified / "job" / "memory.stat", f"anon {GB}\nactive_file {GB}\ninactive_file {GB}\n")
    assert cgroup.memory_left(at("memory", unified, process)) == 0.75


def test_in_version_1_what_can_be_dropped_is_that_of_the_groups_below_too(tmp_path: Path) -> None:
    write(tmp_path / "memory.limit_in_bytes", f"{4 * GB}\n")
    write(tmp_path / "memory.usage_in_bytes", f"{3 * GB}\n")
    write(tmp_path / "memory.stat", f"inactive_file 0\ntotal_inactive_file {2 * GB}\n")
    assert cgroup.memory_left(Place(1, tmp_path, tmp_path)) == 0.75


def test_in_version_1_no_limit_is_a_huge_number(tmp_path: Path) -> None:
    write(tmp_path / "memory.limit_in_bytes", "9223372036854771712\n")
    write(tmp_path / "cpu.cfs_quota_us", "-1\n")
    write(tmp_path / "cpu.cfs_period_us", "100000\n")
    place = Place(1, tmp_path, tmp_path)
    assert cgroup.memory(place) is None
    assert cgroup.cores(place) is None
    write(tmp_path / "cpu.cfs_quota_us", "150000\n")
    assert cgroup.cores(place) == 1.5


def test_in_version_2_a_group_is_made_beside_our_own(unified: Path, process: Path) -> None:
    made = cgroup.make(at("memory", unified, process))
    assert made is not None
    assert made.folder.parent == unified / "job"
    assert made.layer == "cgroup-v2"
    write(made.folder / "cgroup.procs", "")
    write(made.folder / "memory.max", "")
    assert made.join()
    assert (made.folder / "cgroup.procs").read_text() == "0"
    made.limit(3 * GB)
    assert (made.folder / "memory.max").read_text() == str(3 * GB)
    made.limit(None)
    assert (made.folder / "memory.max").read_text().startswith("max")


def test_what_is_not_delegated_is_said_so(unified: Path, process: Path) -> None:
    write(unified / "job" / "cgroup.subtree_control", "cpu\n")
    folder, why = cgroup.room(at("memory", unified, process))
    assert folder is None
    assert "the memory controller is not enabled" in why
    assert cgroup.make(at("memory", unified, process)) is None


def test_kills_are_counted_once(tmp_path: Path) -> None:
    group = Group(tmp_path, 2)
    assert not group.has_killed()
    write(tmp_path / "memory.events", "low 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 0\n")
    assert group.has_killed()
    assert not group.has_killed()


def test_groups_of_workers_that_are_dead_are_removed(unified: Path, process: Path) -> None:
    dead = unified / "job" / f"{cgroup.PREFIX}{2**22 + 1}-1"
    living = unified / "job" / f"{cgroup.PREFIX}{os.getpid()}-1"
    dead.mkdir()
    living.mkdir()
    cgroup.make(at("memory", unified, process))
    assert not dead.exists()
    assert living.exists()


@pytest.fixture
def group() -> Iterator[Group]:
    """A real group."""
    found = cgroup.place("memory")
    made = cgroup.make(found)
    if made is None:
        pytest.skip(f"no group can be made: {cgroup.room(found)[1]}")
    yield made
    made.remove()
    assert not made.folder.exists()


def test_the_kernel_stops_what_is_above_its_limit_and_says_so(group: Group) -> None:
    group.limit(50 * MB)
    pid = os.fork()
    if pid == 0:
        group.join()
        data = b"x" * 200 * MB
        os._exit(len(data) % 2)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert group.has_killed()
    assert not group.has_killed()


def test_a_call_that_is_quicker_than_the_samples_is_stopped_by_the_kernel(
    run: Callable[..., dict[str, Any]],
    supervised: str,
    group: Group,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def burst() -> None:
        time.sleep(0.1)
        print(len(b"x" * 300 * MB))

    monkeypatch.setattr(supervisor, "BACKSTOP_MORE", 0)
    monkeypatch.setattr(supervisor, "BACKSTOP_FACTOR", 0.8)
    report = run(burst, isolation=supervised, limits={"memory": 100 * MB})
    assert (report["ending"], report["signal"]) == ("died", signal.SIGKILL)
    assert report["out_of_memory"] is True
    assert report["exhausted"] == ["memory"]
    assert group.layer in report["layers"]
    assert run(os.getpid, isolation=supervised)["ending"] == "returned"


def test_groups_are_removed_with_their_runners(
    run: Callable[..., dict[str, Any]], supervised: str, group: Group
) -> None:
    run(os.getpid, isolation=supervised)
    supervisor.close()
    ours = f"{cgroup.PREFIX}{os.getpid()}-*"
    assert list(group.folder.parent.glob(ours)) == [group.folder]
