from __future__ import annotations

import pytest

from parsl_sizer.archive.importers import trace_csv
from parsl_sizer.archive.importers.base import ImportFailed, Notes
from parsl_sizer.archive.importers.cells import LONGEST, RAGGED, USELESS
from parsl_sizer.model import Ending, Kind
from parsl_sizer.simulator import trace


def test_every_row_of_a_real_trace_is_taken_as_the_simulator_reads_it(imported, data):
    path = data / "traces" / "nfcore_eager.csv"
    entries, notes = imported(trace_csv, path)
    rows = list(trace.read(path))
    assert not notes.skipped
    assert len(entries) == len(rows)
    for entry, row in zip(entries, rows, strict=True):
        outcome = entry.outcome
        assert outcome.attempt.task == row.task
        assert outcome.usage.peak == pytest.approx(dict(row.peak))
        assert outcome.usage.wall_s == row.time_s


def test_columns_come_in_any_order_and_unknown_ones_are_ignored(imported):
    [entry], _ = imported(
        trace_csv, "time_s,colour,Memory_MB,category,user_memory_mb\n60,red,1500,align,2000\n"
    )
    outcome = entry.outcome
    assert outcome.attempt.task.category == "align"
    assert outcome.usage.peak == {Kind.MEMORY: 1.5e9}
    assert outcome.attempt.allocation == outcome.attempt.task.requested == {Kind.MEMORY: 2e9}
    assert (outcome.ending, outcome.usage.wall_s) == (Ending.DONE, 60.0)


@pytest.mark.parametrize("cell", ["", "-1", "nan", "inf", "1e300", "much"])
def test_a_cell_that_is_no_amount_is_unknown(imported, cell):
    [entry], _ = imported(trace_csv, f"category,time_s,memory_mb,cores\nalign,60,{cell},2\n")
    assert entry.outcome.usage.peak == {Kind.CORES: 2.0}


def test_bad_rows_are_left_out_with_their_reasons(imported):
    text = (
        'category,time_s,memory_mb\nalign,60,10\nalign,60\n"align,60,10\n,60,10\nalign,,\n'
        '"a,b",1,2\n\n'
    )
    entries, notes = imported(trace_csv, text)
    assert [entry.outcome.attempt.task.category for entry in entries] == ["align", "a,b"]
    assert notes.skipped == {RAGGED: 2, trace_csv.NO_CATEGORY: 1, USELESS: 1}


def test_who_used_more_than_requested_was_not_held_to_it(imported):
    [entry], _ = imported(trace_csv, "category,time_s,memory_mb,user_memory_mb\na,1,20,10\n")
    assert not entry.outcome.attempt.enforced


def test_the_same_file_makes_the_same_run(imported, tmp_path):
    text = "category,time_s,memory_mb\nalign,60,10\n"
    (tmp_path / "copy").write_text(text)
    [one], _ = imported(trace_csv, text)
    [other], _ = imported(trace_csv, tmp_path / "copy")
    assert one.run.run_id == other.run.run_id


def test_what_is_no_trace_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("category,time_s\nalign,60\n")
    assert not trace_csv.recognises(path, path.read_bytes())
    with pytest.raises(ImportFailed, match=r"t\.csv, line 1: found no column cores or memory_mb"):
        list(trace_csv.read(path, Notes()))
    with pytest.raises(ImportFailed, match="cannot be read"):
        list(trace_csv.read(tmp_path / "absent", Notes()))
    path.write_text("category,time_s,cores\nalign,60,1\n" + "x" * (LONGEST + 1))
    with pytest.raises(ImportFailed, match="line 3: found more than"):
        list(trace_csv.read(path, Notes()))
