from __future__ import annotations

from pathlib import Path

import pytest

from parsl_sizer.archive.importers import catalog
from parsl_sizer.archive.importers.base import HEAD, ImportFailed

PAGES, FIGURES = ".md", "reference.csv"


def is_log(path: Path) -> bool:
    return path.suffix != PAGES and path.name != FIGURES


def readers(path: Path) -> list[str]:
    with path.open("rb") as file:
        head = file.read(HEAD)
    return [name for name in catalog.names() if catalog.importer(name).recognises(path, head)]


def test_the_names_are_those_that_runs_say_they_are_from() -> None:
    for name in catalog.names():
        assert name == catalog.importer(name).NAME


def test_a_format_without_a_module_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog.MODULES, "makeflow", "not_written_yet")
    assert "makeflow" not in catalog.names()
    with pytest.raises(ImportFailed, match="No format is called 'makeflow'; there are nextflow,"):
        catalog.importer("makeflow")


def test_every_sample_is_recognised_by_exactly_one(samples: Path) -> None:
    paths = [path for path in samples.rglob("*") if path.is_file() and is_log(path)]
    assert paths
    for path in paths:
        assert len(readers(path)) == 1, path
        assert readers(path)[0] == catalog.recognise(path).NAME


def test_every_public_file_is_recognised_by_exactly_one(data: Path) -> None:
    paths = [path for path in data.rglob("*.*") if path.is_file() and is_log(path)]
    found = {path.parent.name: set[str]() for path in paths}
    for path in paths:
        [name] = readers(path)
        found[path.parent.name].add(name)
    assert found["traces"] == {"trace_csv"}
    assert found["workflows"] == {"wfcommons"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"# A page\n\nwith words\n", "none of the formats that can be imported: nextflow"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "none of the formats"),
        (b'{"a": 1}', "none of the formats"),
    ],
)
def test_what_nobody_knows_is_told(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ImportFailed, match=sentence):
        catalog.recognise(path)


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="cannot be read: no such file"):
        catalog.recognise(tmp_path / "absent")
    with pytest.raises(ImportFailed, match="cannot be read: is a directory"):
        catalog.recognise(tmp_path)
