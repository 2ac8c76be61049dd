"""The probes on this machine: what they measure, what they say of it, what they leave behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsl_sizer.profiling import FEATURES, STEPS, measure
from parsl_sizer.profiling.probes import IO, in_memory

LITTLE_S = 1.0


def test_every_feature_is_measured_and_says_how(tmp_path: Path) -> None:
    told = measure(LITTLE_S, folder=str(tmp_path), use_tools=False)
    assert set(FEATURES) <= set(told["features"])
    assert all(amount > 0 for name, amount in told["features"].items() if name in FEATURES)
    assert set(told["methods"]) == set(FEATURES)
    assert all(str(how).startswith("built-in") for how in told["methods"].values())
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_measured_is_absent_and_says_why(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    told = measure(LITTLE_S, folder=str(nowhere), use_tools=False)
    assert not set(IO) & set(told["features"])
    assert {str(told["methods"][name])[:12] for name in IO} == {"not measured"}
    assert "cpu_single" in told["features"]


def test_progress_is_told_before_each_step(tmp_path: Path) -> None:
    ticks: list[str] = []
    measure(LITTLE_S, folder=str(tmp_path), use_tools=False, tick=ticks.append)
    assert tuple(ticks) == FEATURES
    assert len(ticks) == STEPS


def test_a_program_that_is_broken_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("sysbench", "events per second: many"), ("fio", '{"jobs": []}')):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho '{text}'\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    told = measure(LITTLE_S, folder=str(tmp_path))
    assert set(FEATURES) <= set(told["features"])
    assert all(str(how).startswith("built-in") for how in told["methods"].values())


def test_a_disk_in_memory_is_told(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n")
    assert in_memory(Path("/dev/shm/a/file"), mounts)
    assert not in_memory(Path("/data/file"), mounts)
    assert not in_memory(Path("/dev/shm/a/file"), tmp_path / "none")


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no /dev/shm here")
def test_a_profile_on_a_disk_in_memory_says_so() -> None:
    told = measure(LITTLE_S, folder="/dev/shm", use_tools=False)
    assert all("in memory" in str(told["methods"][name]) for name in IO)
