"""What SizedExecutor can be told, on a real engine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import sizer_tasks as tasks
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor
from sizer_runs import htex, running, sized

from parsl_sizer import Kind, ResourcesExhausted, SizedExecutor, sizing_of
from parsl_sizer.model import Ending

LIMIT_S = 100
DONE, EXHAUSTED = Ending.DONE, Ending.EXHAUSTED


def test_switched_off_everything_passes_through_untouched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARSL_SIZER", "off")
    made = sized(node="cores=2,memory=100MB")
    with running(made, tmp_path):
        spec = {"category": "anything", "memory": 100, "fixed": True, "priority": 1}
        future = tasks.hold(300, parsl_resource_specification=spec)
        assert future.result(LIMIT_S) == 300
        assert sizing_of(future) is None
        runner, worker = tasks.processes().result(LIMIT_S)
        assert runner == worker  # nothing between the task and its worker


def test_observing_measures_everything_and_sizes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = sized(observe=True, report=True)
    with running(made, tmp_path):
        future = tasks.hold(400, 0.5)
        assert future.result(LIMIT_S) == 400
        [attempt] = sizing_of(future).attempts
        assert attempt.ending is DONE
        assert not attempt.allocation
        assert attempt.peak[Kind.MEMORY] == pytest.approx(400e6, rel=0.1)
    assert "what tasks on htex would have been given" in capsys.readouterr().err


def test_a_task_larger_than_the_node_may_be_let_run_alone(tmp_path: Path) -> None:
    made = sized(node="cores=2,memory=400MB", on_exhausted="let_run")
    with running(made, tmp_path):
        future = tasks.hold(600, 1.0)
        assert future.result(LIMIT_S) == 600
        attempts = sizing_of(future).attempts
        assert [attempt.ending for attempt in attempts] == [
            *[EXHAUSTED] * (len(attempts) - 1),
            DONE,
        ]
        assert attempts[-1].why == "the largest node, without limit"
        assert attempts[-1].allocation == {Kind.MEMORY: 4e8}


def test_a_full_disk_in_the_run_folder_stops_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system can be mounted by root only")
    try:
        with running(sized(htex()), folder):
            assert tasks.hold(10).result(LIMIT_S) == 10
            with pytest.raises(OSError, match="No space left"):
                (folder / "fill").write_bytes(b"x" * 4_000_000)
            futures = [tasks.hold(number) for number in range(5)]
            assert [future.result(LIMIT_S) for future in futures] == [0, 1, 2, 3, 4]
            exhausted = tasks.hold(3000, 60)
            with pytest.raises(ResourcesExhausted):
                exhausted.result(LIMIT_S)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_two_sized_executors_in_one_configuration(tmp_path: Path) -> None:
    one = sized(htex(1, label="one"))
    two = SizedExecutor(ThreadPoolExecutor(label="two"), report=False)
    with running([one, two], tmp_path):
        futures = [tasks.add_on_one(1, 2), tasks.add_on_two(3, 4)]
        assert [future.result(LIMIT_S) for future in futures] == [3, 7]
        for future in futures:
            assert sizing_of(future).category.startswith("add_on_")


def test_sized_executor_alone_is_a_local_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = SizedExecutor()
    with running(made, tmp_path):
        assert tasks.add(1, 2).result(LIMIT_S) == 3
        assert isinstance(made, HighThroughputExecutor)
    assert "parsl_sizer: what tasks on sized were given" in capsys.readouterr().err
