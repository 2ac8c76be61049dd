"""sysbench and fio themselves, where they are installed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from parsl_sizer.profiling import tools
from parsl_sizer.profiling.storage import PlainFile

SIZE = 2**25


@pytest.mark.skipif(shutil.which("sysbench") is None, reason="sysbench is not installed here")
def test_sysbench_measures_processors_and_memory() -> None:
    for found in (tools.speed(2, 1.0), tools.bandwidth(1.0)):
        assert found is not None
        assert found[0] > 100
        assert found[1].startswith("sysbench: ")


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed here")
def test_fio_measures_a_file_of_the_size_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    if not PlainFile(path, SIZE).is_direct:
        pytest.skip("the file system here takes no O_DIRECT")
    fio = tools.Fio(path, SIZE)
    written = fio.write(1.0)
    assert written is not None
    assert written[0] > 1e4
    assert path.stat().st_size == SIZE
    for found in (fio.read(1.0), fio.random_read(1.0), fio.random_write(1.0)):
        assert found is not None
        assert found[0] > 1
        assert found[1].startswith("fio: O_DIRECT")
    assert path.stat().st_size == SIZE


def test_without_the_programs_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    fio = tools.Fio(tmp_path / "file", SIZE)
    assert [tools.speed(1, 1.0), tools.bandwidth(1.0), fio.write(1.0)] == [None] * 3
