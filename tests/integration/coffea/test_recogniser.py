"""What is seen of Coffea's calls, without running any."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

pytest.importorskip("coffea", reason="Coffea is not installed here: make test-coffea")

from coffea.processor.executor import FileMeta, Runner, WorkItem, _compression_wrapper, _reduce
from coffea.util import load
from parsl.app.errors import wrap_error

from parsl_sizer import Exhaustion
from parsl_sizer.executor import intake
from parsl_sizer.executor.recognisers import Recognisers
from parsl_sizer.executor.recognisers.catalog import claimed_by
from parsl_sizer.executor.recognisers.coffea import Coffea

WORK = partial(Runner.automatic_retries, 3, False, partial(Runner._work_function, "root"))
FILE = FileMeta("ttbar", "file.root", "Events")
CHUNK = WorkItem("ttbar", "file.root", "Events", 1000, 4001, b"id", {"xs": 2}, frozenset({"pt"}))


def task_of(function: Any, *args: Any, **kwargs: Any) -> tuple[str, dict[str, float]]:
    said: list[str] = []
    task = intake.task_info(
        *(1, wrap_error(function), (args, kwargs), {}),
        now=0.0,
        recognisers=Recognisers(said.append),
    ).task
    assert not said
    return task.category, dict(task.features)


@pytest.mark.parametrize("function", [WORK, _compression_wrapper(1, WORK)], ids=["plain", "lz4"])
def test_functions_are_told_apart_by_what_they_are_given(function: Any) -> None:
    assert task_of(function, FILE) == ("preprocessing", {})
    assert task_of(function, CHUNK) == ("processing:ttbar", {"entries": 3001.0})
    assert task_of(function, item=FILE) == ("preprocessing", {})
    assert task_of(function, timeout=3, item=CHUNK) == ("processing:ttbar", {"entries": 3001.0})


@pytest.mark.parametrize("compression", [None, 1])
def test_what_accumulates_is_known_by_itself(compression: int | None) -> None:
    assert task_of(_reduce(compression), [b"", b""]) == ("accumulating", {})
    assert task_of(_reduce(compression), items=[{}, {}]) == ("accumulating", {})


def test_others_have_the_names_of_their_functions() -> None:
    def mine(item: Any) -> None: ...

    assert task_of(mine, CHUNK) == ("mine", {})
    assert claimed_by(mine) is None
    assert task_of(load, "file.coffea") == ("load", {})
    assert task_of(WORK, "something else") == ("automatic_retries", {})


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("Failed processing file: WorkItem(…). The error was: MemoryError().", True),
        ("Failed processing file: … The error was: _ArrayMemoryError((1024,), dtype('u1')).", True),
        ("Failed to open file: … The error was: RuntimeError('std::bad_alloc').", True),
        ("Failed processing file: … The error was: ValueError('memory').", False),
        ("Failed: WorkItem(dataset='MemoryError'). The error was: ValueError().", False),
    ],
)
def test_an_error_about_memory_is_known_by_its_text(text: str, is_so: bool) -> None:
    assert Coffea().is_memory_error(Exception(text)) is is_so
    assert Coffea().is_memory_error(MemoryError())


def exhaustion(function: Any, *args: Any, larger: Any = None, **kwargs: Any) -> Exhaustion:
    return Exhaustion("processing:ttbar", function, args, kwargs, (), larger)


@pytest.mark.parametrize("compression", [None, 3])
def test_a_chunk_is_halved_with_all_that_is_known_of_it(compression: int | None) -> None:
    function = WORK.func if compression is None else _compression_wrapper(compression, WORK)
    split = Coffea().split(exhaustion(function, CHUNK))
    assert split is not None
    halves = [part.args[0] for part in split.parts]
    assert [(half.entrystart, half.entrystop) for half in halves] == [(1000, 2500), (2500, 4001)]
    for half in halves:
        assert half == WorkItem(
            "ttbar", "file.root", "Events", half.entrystart, half.entrystop, b"id"
        )
        assert (half.usermeta, half.preload) == ({"xs": 2}, frozenset({"pt"}))
    assert isinstance(split.combine, _reduce)
    assert split.combine.compression == compression


def test_a_chunk_may_be_given_by_name_among_others() -> None:
    split = Coffea().split(exhaustion(WORK.func, timeout=3, item=CHUNK))
    assert split is not None
    assert [part.kwargs["timeout"] for part in split.parts] == [3, 3]
    assert sum(len(part.kwargs["item"]) for part in split.parts) == len(CHUNK)


def test_nothing_is_split_that_need_not_or_cannot_be() -> None:
    one = WorkItem("ttbar", "file.root", "Events", 7, 8, b"id")
    for asked in (
        exhaustion(WORK.func, CHUNK, larger={}),
        exhaustion(WORK.func, one),
        exhaustion(WORK.func, FILE),
        exhaustion(_reduce(1), [b"", b""]),
    ):
        assert Coffea().split(asked) is None
