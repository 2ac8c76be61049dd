"""What is looked up of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsl_sizer.profiling.facts import cpu_cache, cpu_idle, cpu_mhz, extras, flag, gpus

CPUINFO = """\
processor	: 0
cpu MHz		: 2400.5
cache size	: 512 KB
flags		: fpu avx2 sse

processor	: 1
cpu MHz		: 2600.0
cache size	: 512 KB
flags		: fpu avx2
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(CPUINFO)
    (tmp_path / "sys").mkdir()
    return tmp_path


def test_accelerators_of_both_makers_are_counted(root: Path) -> None:
    assert gpus(root) == 0
    for name in ("0000:01:00.0", "0000:02:00.0"):
        (root / "proc/driver/nvidia/gpus" / name).mkdir(parents=True)
    for number, gpu in (("0", "0"), ("1", "51234")):  # the first is the processor
        node = root / "sys/class/kfd/kfd/topology/nodes" / number
        node.mkdir(parents=True)
        (node / "gpu_id").write_text(f"{gpu}\n")
    assert gpus(root) == 3


def test_a_flag_that_one_processor_lacks_is_not_there(root: Path) -> None:
    assert (flag("avx2", root), flag("sse", root), flag("avx", root)) == (1.0, 0.0, 0.0)


def test_frequency_and_cache_come_from_where_they_are_known(root: Path) -> None:
    assert (cpu_mhz(root), cpu_cache(root)) == (2600.0, 512 * 1024)
    first = root / "sys/devices/system/cpu/cpu0"
    (first / "cpufreq").mkdir(parents=True)
    (first / "cpufreq/cpuinfo_max_freq").write_text("3900000\n")
    (first / "cache/index3").mkdir(parents=True)
    (first / "cache/index3/size").write_text("32768K\n")
    assert (cpu_mhz(root), cpu_cache(root)) == (3900.0, 32768 * 1024)


def test_what_is_beside_is_seen(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = root / "proc/stat"
    stat.write_text("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 1 1 1\n")
    passed = "cpu  120 0 60 860 60 0 0 0 0 0\n"
    monkeypatch.setattr("time.sleep", lambda seconds: stat.write_text(passed))
    assert cpu_idle(0.5, root) == pytest.approx(0.7)
    assert cpu_idle(0.5, root) is None  # nothing has passed since


def test_what_cannot_be_looked_up_is_absent(tmp_path: Path) -> None:
    assert gpus(tmp_path) is None
    assert cpu_idle(0.0, tmp_path) is None
    assert extras(["flag_avx2", "cpu_mhz", "cpu_cache"], tmp_path) == {}
