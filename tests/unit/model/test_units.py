from __future__ import annotations

import pytest

from parsl_sizer.model import Kind, format_amount, is_bytes, parse_amount, parse_amounts


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("64GB", 64e9),
        ("64 gb", 64e9),
        ("1.5TB", 1.5e12),
        ("500MB", 5e8),
        ("3KB", 3e3),
        ("2GiB", 2.0 * 2**30),
        ("7B", 7.0),
        ("1e9", 1e9),
        ("0", 0.0),
        (" 12. ", 12.0),
    ],
)
def test_bytes_are_read_in_the_units_people_write(text: str, amount: float) -> None:
    assert parse_amount(Kind.MEMORY, text) == parse_amount(Kind.DISK, text) == amount


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "64XB", "1,5GB", "nan", "inf", "1 2", "٣GB"])
def test_what_is_not_an_amount_is_told_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"memory='.*' is not an amount; write it like 64GB"):
        parse_amount(Kind.MEMORY, text)


def test_an_amount_too_large_for_a_number_is_told() -> None:
    with pytest.raises(ValueError, match="memory='1e999' is not a finite amount"):
        parse_amount(Kind.MEMORY, "1e999")


def test_cores_have_no_unit() -> None:
    with pytest.raises(ValueError, match=r"cores='16GB' is not an amount; write it like 16$"):
        parse_amount(Kind.CORES, "16GB")


@pytest.mark.parametrize("text", ["ram=1GB", "memory", "=5", "memory:5"])
def test_what_is_not_a_kind_is_told_with_the_kinds_there_are(text: str) -> None:
    with pytest.raises(ValueError, match="one of cores, memory, disk, gpus"):
        parse_amounts(text)


def test_amounts_are_separated_by_commas_and_may_be_none() -> None:
    assert parse_amounts("") == {}
    assert parse_amounts("CORES=1, gpus=2,") == {Kind.CORES: 1.0, Kind.GPUS: 2.0}


@pytest.mark.parametrize(
    ("kind", "amount", "text"),
    [
        (Kind.MEMORY, 0, "0 B"),
        (Kind.MEMORY, 999.4, "999 B"),
        (Kind.MEMORY, 999.6, "1 KB"),
        (Kind.MEMORY, 1.9349e9, "1.93 GB"),
        (Kind.DISK, 64e9, "64 GB"),
        (Kind.DISK, 5e15, "5e+03 TB"),
        (Kind.CORES, 1, "1 core"),
        (Kind.CORES, 0.5, "0.5 cores"),
        (Kind.GPUS, 2, "2 gpus"),
    ],
)
def test_an_amount_is_printed_as_people_write_it(kind: Kind, amount: float, text: str) -> None:
    assert format_amount(kind, amount) == text


def test_memory_and_disk_are_bytes() -> None:
    assert [kind for kind in Kind if is_bytes(kind)] == [Kind.MEMORY, Kind.DISK]
