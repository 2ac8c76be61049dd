"""Reading and writing traces."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsl_sizer.model import MB, Kind, TaskInfo, TraceError
from parsl_sizer.simulator.trace import COLUMNS, Row, known_kinds, parse, read, write

HEADER = ",".join(COLUMNS)


def rows(*lines: str, header: str = HEADER) -> list[Row]:
    return list(parse([header, *lines], "trace.csv"))


def fault(*lines: str, header: str = HEADER) -> str:
    with pytest.raises(TraceError) as caught:
        rows(*lines, header=header)
    return str(caught.value)


def test_a_row_is_read_in_bytes_with_what_was_known_before() -> None:
    [row] = rows("align,145215827,2,261.5,1000,12.25,4096")
    assert row == Row(
        2,
        TaskInfo(
            2,
            "align",
            features={"input_size": 145215827.0},
            requested={Kind.MEMORY: 4096 * MB},
        ),
        {Kind.CORES: 2.0, Kind.MEMORY: 261.5 * MB, Kind.DISK: 1000 * MB},
        12.25,
    )


def test_an_empty_cell_is_unknown_and_not_zero() -> None:
    [row] = rows("align,,,100,,,")
    assert row.peak == {Kind.MEMORY: 100 * MB}
    assert row.task.features == {}
    assert row.task.requested == {}
    assert row.time_s == 0.0


def test_zero_is_a_number() -> None:
    [row] = rows("align,0,0,0,0,0,0")
    assert row.peak == {Kind.CORES: 0.0, Kind.MEMORY: 0.0, Kind.DISK: 0.0}
    assert row.task.requested == {Kind.MEMORY: 0.0}


def test_columns_may_come_in_any_order_and_others_are_ignored() -> None:
    [row] = rows("7,ünï,what?,100", header=" time_s ,CATEGORY,remark,memory_mb")
    assert (row.task.category, row.time_s, row.peak) == ("ünï", 7.0, {Kind.MEMORY: 100 * MB})


def test_blanks_around_cells_blank_lines_and_trailing_commas_do_no_harm() -> None:
    found = rows("align, , 2 , 100, ,5,", "", "call,,2,200,,5,,,")
    assert [(row.line, row.peak[Kind.MEMORY]) for row in found] == [(2, 100 * MB), (4, 200 * MB)]


def test_a_quoted_category_may_hold_commas_and_line_breaks() -> None:
    first, second = parse([HEADER + "\n", '"a,\n', 'b",,1,1,1,1,\n', "c,,1,1,1,1,\n"])
    assert (first.task.category, first.line, second.line) == ("a,\nb", 2, 4)


@pytest.mark.parametrize("category", ["", "Ströme 流れ 🌊", "x" * 10_000])
def test_any_text_is_a_category(category: str) -> None:
    [row] = rows(f"{category},,1,1,1,1,")
    assert row.task.category == category


def test_ten_to_the_eighteen_megabytes_is_a_number() -> None:
    [row] = rows("align,,1,1000000000000000000,1,1,")
    assert row.peak[Kind.MEMORY] == 1e24


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-3", "1e101", "1e999", "4GB", "1.2.3"])
@pytest.mark.parametrize("column", COLUMNS[1:])
def test_what_is_not_an_amount_is_told_with_its_place(column: str, value: str) -> None:
    cells = dict.fromkeys(COLUMNS, "1") | {column: value}
    sentence = fault("align,1,1,1,1,1,1", ",".join(cells.values()))
    assert sentence.startswith(f"trace.csv, line 3, column {column}: found '{value}', expected a ")
    assert sentence.endswith("from 0 to 1e+100, or an empty cell for unknown.")


def test_the_message_says_the_unit() -> None:
    assert "a number of MB" in fault("a,,1,x,1,1,")
    assert "a number of seconds" in fault("a,,1,1,1,x,")
    assert "a number of bytes" in fault("a,x,1,1,1,1,")


def test_a_long_value_is_shortened() -> None:
    assert len(fault(f"a,,1,{'9x' * 5000},1,1,")) < 250


def test_a_row_that_ends_early_is_told() -> None:
    assert fault("a,,1,3") == (
        "trace.csv, line 2, column disk_mb: found the end of the line after '3', "
        "expected 7 cells, as many as the header has."
    )


def test_a_row_with_a_cell_too_many_is_told() -> None:
    assert fault("a,,1,3,1,1,,9") == (
        "trace.csv, line 2, after column user_memory_mb: found '9', expected the end of the "
        "line, as the header has 7 columns (a cell with a comma needs quotes)."
    )


@pytest.mark.parametrize(
    ("header", "missing"),
    [
        ("align,,2,100,1,5,", "column category"),
        ("category;time_s;memory_mb", "column category"),
        ("category,memory_mb", "column time_s"),
        ("category,time_s", "column cores or memory_mb or disk_mb"),
        ("category,time_s,memory_mb,Memory_MB", "column memory_mb appears twice"),
    ],
)
def test_a_header_that_will_not_do_is_told(header: str, missing: str) -> None:
    sentence = fault("a,1,2,3", header=header)
    assert sentence.startswith("trace.csv, line 1: ")
    assert missing in sentence
    assert sentence.endswith(f"expected a header like {HEADER}.")


def test_an_empty_trace_is_told(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(TraceError, match=r"empty\.csv is empty; expected a header like category"):
        list(read(empty))
    with pytest.raises(TraceError, match=r"empty\.csv is empty"):
        known_kinds(empty)


@pytest.mark.parametrize("lines", [[], ["", ""]])
def test_a_trace_without_tasks_is_told(lines: list[str]) -> None:
    assert fault(*lines) == (
        "The trace trace.csv has a header but no tasks; expected a line per task."
    )


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"cannot be read: no such file or directory\.$"):
        list(read(tmp_path / "absent.csv"))
    with pytest.raises(TraceError, match=r"cannot be read: is a directory\.$"):
        list(read(tmp_path))


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "windows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + f"{HEADER}\r\na,,1,5,1,1,\r\n".encode())
    [row] = read(path)
    assert row.peak[Kind.MEMORY] == 5 * MB


def test_what_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    good = "fine,,1,5,1,1,\n" * 3000
    path.write_bytes(f"{HEADER}\n{good}".encode() + b"caf\xe9,,1,5,1,1,\n")
    with pytest.raises(TraceError) as caught:
        list(read(path, name="latin.csv"))
    assert str(caught.value) == (
        "latin.csv, line 3002, column category: found 'caf\\xe9', expected text in UTF-8."
    )
    path.write_bytes(HEADER.encode("utf-16"))
    with pytest.raises(TraceError, match=r"line 1: .* is not UTF-8"):
        list(read(path))


def test_what_csv_refuses_is_told() -> None:
    assert "line 2: field larger than field limit" in fault("x" * 200_000 + ",,1,5,1,1,")


def test_known_kinds_are_those_of_which_a_row_has_an_amount(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("disk_mb,category,time_s,memory_mb,cores\n,a,1,1,\n1,a,1,,\n")
    assert known_kinds(path) == (Kind.MEMORY, Kind.DISK)


def test_reading_takes_no_more_memory_for_a_longer_trace(tmp_path: Path) -> None:
    def peak(tasks: int) -> int:
        path = tmp_path / f"{tasks}.csv"
        path.write_text(f"{HEADER}\n" + "align,1,2,100,1,5,\n" * tasks)
        tracemalloc.start()
        try:
            assert sum(1 for _ in read(path)) == tasks
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(20_000) < 1.5 * peak(2_000)


amounts = st.floats(0, 1e15).map(lambda mb: round(mb, 3))


@given(
    category=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")),
    memory=amounts,
    disk=st.none() | amounts,
    time_s=amounts,
    size=st.none() | amounts,
)
def test_what_is_written_is_read_again(
    category: str, memory: float, disk: float | None, time_s: float, size: float | None
) -> None:
    peak = {Kind.MEMORY: memory * MB} | ({} if disk is None else {Kind.DISK: disk * MB})
    features = {} if size is None else {"input_size": size}
    row = Row(2, TaskInfo(2, category.lstrip(" "), features=features), peak, time_s)
    file = io.StringIO(newline="")
    assert write([row], file) == 1
    [again] = parse(io.StringIO(file.getvalue(), newline=""))
    assert again.task == row.task
    assert again.time_s == time_s
    assert again.peak == pytest.approx(peak)
