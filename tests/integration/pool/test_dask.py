"""dask on a sized pool: the same results, and each task known by its key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sizer_pool as calls
from sizer_runs import nothing_left, sized

from parsl_sizer import SizedPoolExecutor
from parsl_sizer.model import Ending

dask = pytest.importorskip("dask", reason="dask is not installed here")


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedPoolExecutor]:
    folder = tmp_path_factory.mktemp("pool")
    with nothing_left(), SizedPoolExecutor(sized(grow=False), run_dir=folder) as pool:
        yield pool


@pytest.fixture
def settled(pool: SizedPoolExecutor) -> Iterator[list]:
    """What was decided for the tasks of a test."""
    driver = pool._dfk.executors["htex"]._driver
    seen: list = []
    note, driver._observe = driver._observe, seen.append
    yield seen
    driver._observe = note


def ways(pool: SizedPoolExecutor) -> list[dict]:
    """The ways to give dask an executor."""
    return [
        {"scheduler": pool},
        {"scheduler": "processes", "pool": pool},
        {"scheduler": "threads", "pool": pool},
    ]


def graph() -> object:
    numbers = [dask.delayed(calls.double)(n) for n in range(6)]
    sums = [dask.delayed(calls.add)(a, b) for a, b in zip(numbers[::2], numbers[1::2], strict=True)]
    return dask.delayed(sum)(sums)


@pytest.mark.parametrize("way", range(3))
def test_results_are_the_same(pool: SizedPoolExecutor, way: int) -> None:
    assert graph().compute(**ways(pool)[way]) == graph().compute(scheduler="sync") == 30


def test_every_task_is_known_by_the_prefix_of_its_key(
    pool: SizedPoolExecutor, settled: list
) -> None:
    graph().compute(scheduler=pool, optimize_graph=False)
    counts = Counter(settle.task.category for settle in settled)
    assert counts == {"double": 6, "add": 3, "sum": 1}


def test_tasks_in_one_batch_are_named_together(pool: SizedPoolExecutor, settled: list) -> None:
    tasks = [dask.delayed(calls.double)(1), dask.delayed(calls.add)(1, 2)]
    assert dask.compute(*tasks, scheduler=pool, chunksize=2) == (2, 3)
    assert {settle.task.category: dict(settle.task.features) for settle in settled} == {
        "add + double": {"calls": 2.0}
    }


@pytest.mark.parametrize("way", range(3))
def test_an_error_is_the_users_own(pool: SizedPoolExecutor, settled: list, way: int) -> None:
    with pytest.raises(calls.Refusal):
        dask.delayed(calls.refuse)(3).compute(**ways(pool)[way])
    assert [settle.ending for settle in settled] == [Ending.RAISED]


@pytest.mark.parametrize("way", range(3))
def test_tasks_that_would_have_been_killed_are_completed(
    pool: SizedPoolExecutor, settled: list, tmp_path: Path, way: int
) -> None:
    hold = dask.delayed(calls.note_and_hold)
    small = [hold(str(tmp_path), n, 20, 0.05, dask_key_name=f"hold{way}-{n}") for n in range(8)]
    assert dask.compute(*small, chunksize=1, **ways(pool)[way]) == (20,) * 8
    large = [hold(str(tmp_path), n, 700, 0.4, dask_key_name=f"hold{way}-{n}") for n in (8, 9, 10)]
    assert dask.compute(*large, chunksize=1, **ways(pool)[way]) == (700,) * 3
    assert {settle.task.category for settle in settled} == {f"hold{way}"}
    assert {settle.ending for settle in settled} == {Ending.DONE}
    assert any(len(settle.outcomes) > 1 for settle in settled)
    assert calls.most_at_once(tmp_path) <= 2000


@pytest.mark.parametrize("way", range(3))
def test_a_memory_error_is_found_in_the_result_and_the_task_tried_with_more(
    pool: SizedPoolExecutor, settled: list, tmp_path: Path, way: int
) -> None:
    key = f"first{way}-0"
    task = dask.delayed(calls.no_memory_at_first)(str(tmp_path / "tried"), dask_key_name=key)
    assert task.compute(**ways(pool)[way]) == "with more"
    [settle] = settled
    assert [outcome.ending for outcome in settle.outcomes] == [Ending.EXHAUSTED, Ending.DONE]


def test_a_task_whose_worker_was_killed_is_run_again(
    pool: SizedPoolExecutor, tmp_path: Path
) -> None:
    task = dask.delayed(calls.kill_once)(str(tmp_path / "killed"), "worker")
    assert task.compute(scheduler=pool) == "survived"
