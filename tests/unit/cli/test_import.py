"""``parsl-sizer import``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from string import ascii_letters
from typing import Any

import pytest

from parsl_sizer.archive.base import Query
from parsl_sizer.archive.lines import line_of
from parsl_sizer.archive.open import Where, open_archive
from parsl_sizer.cli import import_files, main
from parsl_sizer.testing.archive_laws import entries

Printed = Callable[..., Any]
SNAKEMAKE = "s\th:m:s\tmax_rss\n1.5\t0:00:01\t20.25\n"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "data" / "archive.sqlite3"


def attempts(archive: Where, query: Query | None = None) -> int:
    opened = open_archive(archive, read_only=True)
    try:
        return len(list(opened.entries(query or Query())))
    finally:
        opened.close()


def test_a_trace_is_recognised_and_recorded_once(
    trace: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(trace), "--archive", str(archive)]) == 0
    out, error = capsys.readouterr()
    assert out.splitlines()[0] == f"{trace} (trace_csv): 120 attempts, 120 of them new."
    assert error == ""
    assert main(["import", str(trace), "--archive", str(archive)]) == 0
    assert "120 attempts, 0 of them new" in capsys.readouterr().out
    assert attempts(archive) == attempts(archive, Query(source="trace_csv")) == 120


def test_json_says_the_same(printed: Printed, trace: Path, archive: Path) -> None:
    with trace.open("a") as file:
        file.write("one,cell\n,,1,2,3,4,\n")
    found = printed("import", trace, "--archive", archive)
    assert found["archive"] == str(archive)
    [file_] = found["files"]
    assert (file_["format"], file_["taken"], file_["new"]) == ("trace_csv", 120, 120)
    assert file_["skipped"] == {
        "another number of cells than the header has": 1,
        "no category": 1,
    }
    assert file_["error"] is None


def test_what_was_skipped_is_told_with_its_reason(
    trace: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with trace.open("a") as file:
        file.write("one,cell\n" * 3)
    assert main(["import", str(trace), "--archive", str(archive)]) == 0
    assert "Skipped: 3 × another number of cells" in capsys.readouterr().out


def test_a_dry_run_adds_nothing(
    trace: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(trace), "--dry-run", "--archive", str(archive)]) == 0
    out = capsys.readouterr().out
    assert "120 attempts." in out
    assert "nothing was recorded, as this was a dry run" in out
    assert not archive.exists()


def test_files_that_fail_do_not_keep_the_others_out(
    trace: Path, tmp_path: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Words\n")
    broken = tmp_path / "instance.json"
    broken.write_text('{"schemaVersion": "1.4", "workflow": {')
    files = [str(path) for path in (page, tmp_path / "absent", broken, trace)]
    assert main(["import", *files, "--archive", str(archive)]) == 2
    out, error = capsys.readouterr()
    assert len(error.splitlines()) == 3
    assert all(line.startswith("parsl-sizer: ") for line in error.splitlines())
    assert "page.md is none of the formats" in error
    assert "absent cannot be read: no such file" in error
    assert "expected a WfCommons instance" in error
    assert "120 of them new" in out
    assert attempts(archive) == 120


def test_one_file_that_fails_is_one_sentence(
    refused: Callable[..., str], tmp_path: Path, archive: Path
) -> None:
    assert "cannot be read" in refused("import", tmp_path / "absent", "--archive", archive)
    assert "No file in the folder" in refused("import", tmp_path / "data", "--archive", archive)


def test_json_has_the_fault_of_a_file(
    tmp_path: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(tmp_path / "no"), "--archive", str(archive), "--json"]) == 2
    [found] = json.loads(capsys.readouterr().out)["files"]
    assert "no such file" in found["error"]
    assert (found["format"], found["taken"], found["new"]) == (None, 0, None)


def test_a_file_with_a_fault_at_its_end_adds_nothing(
    trace: Path, archive: Path, refused: Callable[..., str]
) -> None:
    with trace.open("a") as file:
        file.write("x" * 2_000_000)
    assert "line 122" in refused("import", trace, "--archive", archive)
    assert attempts(archive) == 0


def test_of_a_folder_every_file_in_it_that_is_recognised(
    printed: Printed, trace: Path, tmp_path: Path, archive: Path
) -> None:
    folder = tmp_path / "logs"
    (folder / "deeper").mkdir(parents=True)
    trace.rename(folder / "trace.csv")
    (folder / "align.tsv").write_text(SNAKEMAKE)
    (folder / "deeper" / "sort.tsv").write_text(SNAKEMAKE)
    (folder / "notes.txt").write_text("words\n")
    found = printed("import", folder, "--archive", archive)
    assert [Path(file["file"]).name for file in found["files"]] == ["align.tsv", "trace.csv"]
    found = printed("import", folder, "--format", "snakemake", "--archive", archive)
    assert [Path(file["file"]).name for file in found["files"]] == ["align.tsv"]


def test_a_format_that_is_named_is_not_guessed(
    refused: Callable[..., str], trace: Path, archive: Path
) -> None:
    assert "h:m:s" in refused("import", trace, "--format", "snakemake", "--archive", archive)
    assert "invalid choice: 'excel'" in refused("import", trace, "--format", "excel")


def test_what_can_be_read_only_once_is_told(refused: Callable[..., str], archive: Path) -> None:
    assert "/dev/null is no file" in refused("import", "/dev/null", "--archive", archive)


def test_what_was_set_aside_keeps_its_runs(printed: Printed, tmp_path: Path, archive: Path) -> None:
    aside = tmp_path / "run.jsonl"
    aside.write_text("".join(f"{line_of(entry)}\n" for entry in entries()) + '{"run": {')
    [file] = printed("import", aside, "--archive", archive)["files"]
    assert (file["format"], file["taken"], file["new"]) == ("lines", 60, 60)
    assert sum(file["skipped"].values()) == 1
    assert attempts(archive, Query(run_id="run-1")) == 20


def test_more_than_one_batch_is_recorded(printed: Printed, tmp_path: Path, archive: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("category,memory_mb,time_s\n" + "align,100,1\n" * 4500)
    [file] = printed("import", path, "--archive", archive)["files"]
    assert file["new"] == attempts(archive) == 4500


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """60 attempts, the first in a category whose name is longer than PostgreSQL can index, and
    one of a run whose name has a letter that it has no place for."""
    valid = json.loads(line_of(entries()[0]))
    long = "".join(Random(1).choices(ascii_letters, k=5000))
    odd = [valid | {"category": long, "task": "long"}, valid | {"run": {"run_id": "a\0b"}}]
    texts = [*map(json.dumps, odd), *map(line_of, entries()[:58])]
    path = tmp_path / "attempts.jsonl"
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


@pytest.mark.parametrize("batch", [10, import_files.BATCH])
def test_what_the_archive_refuses_is_skipped_and_told_and_the_others_are_recorded(
    printed: Printed,
    lines: Path,
    new_database: Callable[[], str],
    batch: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_files, "BATCH", batch)
    archive = new_database()
    [file] = printed("import", lines, "--archive", archive)["files"]
    assert (file["taken"], file["new"], file["error"]) == (59, 59, None)
    [(why, count)] = file["skipped"].items()
    assert why.startswith("refused (of the first: The archive ")
    assert why.endswith('for index "attempts_by_category")')
    assert count == 1
    assert attempts(archive) == 59


def test_however_many_are_refused_one_reason_is_told(
    lines: Path,
    new_database: Callable[[], str],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = json.loads(lines.read_text().partition("\n")[0])
    more = [first | {"task": f"long-{n}", "category": f"{n}{first['category']}"} for n in range(30)]
    with lines.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in more)
    assert main(["import", str(lines), "--archive", new_database()]) == 0
    told = capsys.readouterr().out.splitlines()[0]
    assert "59 attempts, 59 of them new. Skipped: 31 × refused (of the first: " in told
    assert told.count("×") == 1
    assert caplog.text == ""


def test_an_archive_that_fails_at_the_end_of_a_file_keeps_nothing_of_it(
    trace: Path,
    new_database: Callable[[], str],
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import psycopg

    archive = new_database()
    open_archive(archive).close()
    with psycopg.connect(archive, autocommit=True) as connection:
        connection.execute(FULL)
    monkeypatch.setattr(import_files, "BATCH", 50)
    assert "cannot be used: the disk is full" in refused("import", trace, "--archive", archive)
    assert attempts(archive) == 0


FULL = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT COUNT(*) FROM attempts) >= 100 THEN
        RAISE EXCEPTION 'the disk is full' USING ERRCODE = 'disk_full';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON attempts FOR EACH ROW EXECUTE FUNCTION refuse();
"""
"""After a hundred attempts the server behaves as if there were no room for more."""
