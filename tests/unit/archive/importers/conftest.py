"""What the tests of importers share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from parsl_sizer.archive.base import Entry
from parsl_sizer.archive.importers.base import HEAD, Notes

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of the small files that are checked in."""
    return ROOT / "tests" / "data" / "importers"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the public data; a test that needs it is skipped where it is absent."""
    folder = Path(os.environ.get("PARSL_SIZER_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "formats").is_dir():
        pytest.skip(f"there are no formats in {folder}; name the folder in PARSL_SIZER_DATA")
    return folder


@pytest.fixture
def imported(tmp_path: Path) -> Callable[..., tuple[list[Entry], Notes]]:
    """Import a file, or a text as if it were one, with a module that must recognise it."""

    def run(importer: ModuleType, source: Path | str) -> tuple[list[Entry], Notes]:
        if isinstance(source, str):
            source, text = tmp_path / "source", source
            source.write_text(text, encoding="utf-8")
        with source.open("rb") as file:
            assert importer.recognises(source, file.read(HEAD))
        notes = Notes()
        entries = list(importer.read(source, notes))
        assert notes.taken == len(entries)
        assert all(entry.run.source == importer.NAME for entry in entries)
        attempts = [entry.outcome.attempt for entry in entries]
        keys = [(attempt.task.task_id, attempt.number) for attempt in attempts]
        assert len(set(keys)) == len(keys)
        return entries, notes

    return run
