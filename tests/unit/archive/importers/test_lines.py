from __future__ import annotations

import json
from pathlib import Path

import pytest

from parsl_sizer.archive.base import Entry
from parsl_sizer.archive.importers import lines
from parsl_sizer.archive.importers.base import ImportFailed, Notes
from parsl_sizer.archive.lines import LONGEST, line_of
from parsl_sizer.testing.archive_laws import entries


def taken(path: Path) -> tuple[list[Entry], Notes]:
    notes = Notes()
    return list(lines.read(path, notes)), notes


def written(path: Path, *texts: str | bytes) -> Path:
    raw = [text.encode() if isinstance(text, str) else text for text in texts]
    path.write_bytes(b"".join(text + b"\n" for text in raw))
    return path


def test_what_was_written_comes_back_with_its_runs(tmp_path: Path) -> None:
    path = written(tmp_path / "lines", *map(line_of, entries()))
    assert lines.recognises(path, path.read_bytes())
    found, notes = taken(path)
    assert [line_of(entry) for entry in found] == [line_of(entry) for entry in entries()]
    assert {entry.run.source for entry in found} == {"live", "nextflow"}
    assert (notes.taken, notes.skipped) == (60, {})


def test_a_bad_line_is_skipped_with_its_reason_and_the_others_are_taken(tmp_path: Path) -> None:
    good, other, *_ = map(line_of, entries())
    half = json.loads(good)
    half["category"] = "\ud800"
    path = written(
        tmp_path / "lines",
        *(good, "", "   ", good[:50], "[1]", "[2]", b"\xff\xfe", json.dumps(half), other),
    )
    found, notes = taken(path)
    assert len(found) == notes.taken == 2
    assert notes.skipped["the line is not an object in braces"] == 2
    assert notes.skipped[lines.HALF] == 1
    assert sum(notes.skipped.values()) == 5


def test_whole_characters_may_be_spelled_by_their_halves(tmp_path: Path) -> None:
    first = json.loads(line_of(entries()[0]))
    first["category"] = "𝄞"
    [entry], _ = taken(written(tmp_path / "lines", json.dumps(first)))
    assert entry.outcome.attempt.task.category == "𝄞"


def test_a_line_that_is_too_long_is_skipped_whole(tmp_path: Path) -> None:
    good = line_of(entries()[0])
    found, notes = taken(written(tmp_path / "lines", "x" * (3 * LONGEST), good))
    assert len(found) == 1
    assert sum(notes.skipped.values()) == 1


def test_any_number_of_reasons_is_told_in_a_bounded_number_of_words(tmp_path: Path) -> None:
    first = json.loads(line_of(entries()[0]))
    bad = (json.dumps(first | {"ending": f"ending {number}"}) for number in range(500))
    _, notes = taken(written(tmp_path / "lines", *bad))
    assert len(notes.skipped) == lines.MOST_REASONS + 1
    assert notes.skipped[lines.OTHER_REASONS] == 500 - lines.MOST_REASONS


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="cannot be read: no such file"):
        taken(tmp_path / "absent")


def test_other_json_is_not_recognised(tmp_path: Path) -> None:
    assert not lines.recognises(tmp_path, b'{"runs": {}}')
    assert not lines.recognises(tmp_path, b'{"workflow": {"run": {}}}')
    assert lines.recognises(tmp_path, b'{ "run" : {"run_id": "a"}}')
