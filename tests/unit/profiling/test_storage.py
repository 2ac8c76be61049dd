"""A file is measured in each of the two ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsl_sizer.profiling import storage
from parsl_sizer.profiling.storage import PlainFile

SIZE, MOMENT_S = 2**24, 0.05


@pytest.mark.parametrize("direct", [True, False])
def test_a_file_is_written_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direct: bool
) -> None:
    if not direct:
        monkeypatch.setattr(storage, "DIRECT", 0)
    file = PlainFile(tmp_path / "file", SIZE)
    if direct and not file.is_direct:
        pytest.skip("the file system here takes no O_DIRECT")
    way = "O_DIRECT" if direct else "synced"
    for measured in (file.write, file.read, file.random_read, file.random_write):
        amount, how = measured(MOMENT_S)
        assert amount > 1
        assert way in how
    assert 0 < (tmp_path / "file").stat().st_size <= SIZE


def test_a_file_that_was_never_written_is_not_read(tmp_path: Path) -> None:
    file = PlainFile(tmp_path / "file", SIZE)
    for measured in (file.read, file.random_read, file.random_write):
        with pytest.raises(OSError, match=r"nothing could be written|No such file"):
            measured(MOMENT_S)
