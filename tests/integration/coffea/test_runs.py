"""Real analyses with Coffea's Runner and ParslExecutor, sized: the histograms are the same."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("coffea", reason="Coffea is not installed here: make test-coffea")

import sizer_analyses as analyses
from coffea.processor import IterativeExecutor, ParslExecutor
from sizer_recorded import Run
from sizer_runs import htex, running, sized

from parsl_sizer import Exhaustion, Kind, ResourcesExhausted, Split
from parsl_sizer.model import Ending

DONE, EXHAUSTED, RAISED, LOST = Ending.DONE, Ending.EXHAUSTED, Ending.RAISED, Ending.LOST
CHUNKS = {"light": 4, "heavy": 4}
"""Of 3000 entries."""
NODE_GB = 1.0
LARGE = {"light": 4, "heavy": 90}
"""Of these, all entries of a heavy file are too many for 400 MB, and half of them are not."""
LARGER = {"light": 4, "heavy": 180}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def files(folder: Path) -> dict[str, Any]:
    return analyses.fileset(folder)


@pytest.fixture(scope="module")
def expected(files: dict[str, Any]) -> Any:
    """What it is without Parsl; what the processor holds does not change it."""
    found = analyses.analysed(files, IterativeExecutor(status=False))
    assert found["events"] == dict.fromkeys(files, analyses.EVENTS * analyses.FILES)
    return found


@contextmanager
def sized_run(folder: Path, gb: float = NODE_GB, **options: Any) -> Iterator[Run]:
    """Parsl with a sized executor; at the end no more was given out than there is."""
    run = Run(folder / "archive.sqlite3")
    made = sized(htex(2), node=f"cores=2,memory={gb}GB", archive=run.archive, grow=False, **options)
    with running(made, folder):
        yield run
    assert run.most_given_out() <= gb * 1e9
    for outcome in run.outcomes:
        if outcome.ending is DONE and not outcome.overran:
            peak = outcome.usage.peak[Kind.MEMORY]
            assert 0 < peak <= outcome.attempt.allocation[Kind.MEMORY]


def unmerged(chunks: Mapping[str, int] = CHUNKS) -> Counter[tuple[str, float | None]]:
    """The tasks that there are without merging."""
    found = Counter({("preprocessing", None): len(chunks) * analyses.FILES})
    for dataset, count in chunks.items():
        each = analyses.EVENTS * analyses.FILES / count
        found[f"processing:{dataset}", each] = count
    return found


def test_the_plain_run_is_the_same_as_without_parsl(
    tmp_path: Path, files: Any, expected: Any
) -> None:
    with running(htex(2), tmp_path):
        assert analyses.is_same(analyses.analysed(files, ParslExecutor()), expected)


@pytest.mark.parametrize("compression", [1, None])
def test_a_sized_run_is_the_same_and_all_tasks_are_known(
    tmp_path: Path, files: Any, expected: Any, compression: int | None
) -> None:
    with sized_run(tmp_path) as run:
        how = ParslExecutor(compression=compression)
        assert analyses.is_same(analyses.analysed(files, how), expected)
    assert run.tasks() == unmerged()
    peaks = {
        outcome.attempt.task.category: outcome.usage.peak[Kind.MEMORY]
        for outcome in run.outcomes
        if outcome.ending is DONE
    }
    assert peaks["processing:heavy"] > peaks["processing:light"] + 80e6


@pytest.mark.parametrize("compression", [1, None])
def test_merging_is_known_too(
    tmp_path: Path, files: Any, expected: Any, compression: int | None
) -> None:
    with sized_run(tmp_path) as run:
        how = ParslExecutor(compression=compression, merging=(2, 2, 3))
        assert analyses.is_same(analyses.analysed(files, how), expected)
    found = run.tasks()
    assert found.pop(("accumulating", None)) >= 2
    assert found == unmerged()


def test_what_the_user_calls_tasks_is_what_they_are_called(
    tmp_path: Path, files: Any, expected: Any
) -> None:
    def category(function: Any, args: Any, kwargs: Any) -> str | None:
        dataset = getattr(args[0], "dataset", None)
        return f"all of {dataset}" if dataset == "heavy" else None

    with sized_run(tmp_path, category=category) as run:
        assert analyses.is_same(analyses.analysed(files, ParslExecutor()), expected)
    chunks = analyses.EVENTS * analyses.FILES / CHUNKS["light"]
    assert run.tasks() == {
        ("all of heavy", None): 2,
        ("all of heavy", chunks): 4,
        ("preprocessing", None): 2,
        ("processing:light", chunks): 4,
    }


def test_a_category_function_that_raises_is_done_without(
    tmp_path: Path, files: Any, expected: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(function: Any, args: Any, kwargs: Any) -> str:
        raise KeyError("no such thing")

    with caplog.at_level(logging.WARNING), sized_run(tmp_path, category=broken) as run:
        assert analyses.is_same(analyses.analysed(files, ParslExecutor()), expected)
    assert run.tasks() == unmerged()
    assert sum("no such thing" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize(("compression", "kb"), [(1, LARGE), (None, LARGER)], ids=["lz4", "plain"])
def test_chunks_that_are_too_large_for_any_node_are_split(
    tmp_path: Path, folder: Path, expected: Any, compression: int | None, kb: dict[str, float]
) -> None:
    files = analyses.fileset(folder, kb)
    with sized_run(tmp_path, gb=0.4, on_exhausted="split") as run:
        how = ParslExecutor(compression=compression)
        assert analyses.is_same(analyses.analysed(files, how, chunksize=analyses.EVENTS), expected)
    halvings = 1 if kb is LARGE else 2
    wanted = unmerged({"light": 2, "heavy": 2})
    for depth in range(1, halvings + 1):
        wanted["processing:heavy", analyses.EVENTS / 2**depth] = 2 * 2**depth
    wanted["accumulating", None] = 2 * (2**halvings - 1)
    assert run.tasks() == wanted
    for endings in run.endings().values():
        assert endings in ([DONE], [*[EXHAUSTED] * (len(endings) - 1), DONE]) or set(endings) == {
            EXHAUSTED
        }


def test_chunks_that_are_too_large_for_any_node_are_told_of(tmp_path: Path, folder: Path) -> None:
    files = analyses.fileset(folder, LARGE)
    with (
        sized_run(tmp_path, gb=0.4, strategy="whole-machine"),
        pytest.raises(ResourcesExhausted, match="processing:heavy"),
    ):
        analyses.analysed(files, ParslExecutor(), chunksize=analyses.EVENTS)


def test_a_function_for_what_runs_out_that_raises_is_done_without(
    tmp_path: Path, folder: Path, expected: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(exhaustion: Exhaustion) -> Split:
        raise KeyError("no such thing")

    files = analyses.fileset(folder, LARGE)
    with caplog.at_level(logging.WARNING), sized_run(tmp_path, on_exhausted=broken) as run:
        how = ParslExecutor()
        assert analyses.is_same(analyses.analysed(files, how, chunksize=analyses.EVENTS), expected)
    assert run.tasks() == unmerged({"light": 2, "heavy": 2})
    ran_out = any(EXHAUSTED in endings for endings in run.endings().values())
    said = [record for record in caplog.records if "no such thing" in record.message]
    assert len(said) == ran_out


@pytest.mark.parametrize("retries", [0, 3])
def test_memory_that_is_refused_is_given_at_the_next_attempt(
    tmp_path: Path, files: Any, expected: Any, retries: int
) -> None:
    """Coffea tries 3 times again by itself, where nothing has changed."""
    notes = tmp_path / "notes"
    what = analyses.Refused(str(notes), times=retries + 1)
    with sized_run(tmp_path, gb=2.0, strategy="doubling") as run:
        how = ParslExecutor(retries=retries)
        assert analyses.is_same(analyses.analysed(files, how, what), expected)
    assert len(notes.read_text()) == retries + 2
    [task] = [task for task, endings in run.endings().items() if endings != [DONE]]
    first, second = [o for o in run.outcomes if o.attempt.task.task_id == task]
    assert (first.ending, second.ending) == (EXHAUSTED, DONE)
    limit = first.attempt.allocation[Kind.MEMORY]
    assert first.usage.peak[Kind.MEMORY] < limit < second.attempt.allocation[Kind.MEMORY]


@pytest.mark.parametrize("whom", ["me", "worker"])
def test_a_worker_that_is_killed_costs_an_attempt(
    tmp_path: Path, files: Any, expected: Any, whom: str
) -> None:
    notes = tmp_path / "notes"
    with sized_run(tmp_path) as run:
        what = analyses.Killer(str(notes), whom)
        assert analyses.is_same(analyses.analysed(files, ParslExecutor(), what), expected)
    assert run.tasks() == unmerged()
    assert sorted(ending for endings in run.endings().values() for ending in endings).count(LOST)
    assert len(notes.read_text()) == 2


def test_an_exception_of_the_processor_is_the_users(tmp_path: Path, files: Any) -> None:
    notes = tmp_path / "notes"
    what = analyses.Wrong(str(notes), times=1000)
    with (
        sized_run(tmp_path) as run,
        pytest.raises(Exception, match=r"heavy0\.root.*this event is not to be looked at"),
    ):
        analyses.analysed(files, ParslExecutor(), what)
    assert len(notes.read_text()) == 4, "Coffea's own attempts, and none of ours"
    assert sum(RAISED in endings for endings in run.endings().values()) == 1
