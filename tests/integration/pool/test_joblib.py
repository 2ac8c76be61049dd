"""joblib and scikit-learn on a sized pool, through the backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sizer_pool as calls
from sizer_runs import nothing_left, sized, wait_until

from parsl_sizer import SizedPoolExecutor, with_hints
from parsl_sizer.model import Ending, Kind

joblib = pytest.importorskip("joblib", reason="joblib is not installed here")
Parallel, delayed = joblib.Parallel, joblib.delayed


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedPoolExecutor]:
    from parsl_sizer import register_joblib

    folder = tmp_path_factory.mktemp("pool")
    with nothing_left(), SizedPoolExecutor(sized(grow=False), run_dir=folder) as pool:
        register_joblib(pool)
        yield pool


@pytest.fixture
def settled(pool: SizedPoolExecutor) -> Iterator[list]:
    """What was decided for the tasks of a test, all of whose calls go to the pool."""
    driver = pool._dfk.executors["htex"]._driver
    seen: list = []
    note, driver._observe = driver._observe, seen.append
    with joblib.parallel_config("parsl_sizer"):
        yield seen
    wait_until(lambda: not len(driver), "the end of calls that are no longer wanted")
    driver._observe = note


@pytest.mark.parametrize("n_jobs", [None, 2, -1, 5])
def test_calls_are_made_in_the_pool_and_known_by_their_function(
    settled: list, n_jobs: int | None
) -> None:
    results = Parallel(n_jobs=n_jobs)(delayed(calls.double)(n) for n in range(30))
    assert results == [2 * n for n in range(30)]
    assert {settle.task.category for settle in settled} == {"double"}
    assert sum(settle.task.features.get("calls", 1) for settle in settled) == 30


def test_one_job_is_made_right_here(settled: list) -> None:
    assert Parallel(n_jobs=1)(delayed(calls.double)(n) for n in range(3)) == [0, 2, 4]
    assert settled == []


def test_how_many_jobs_there_are_is_counted_from_the_workers(settled: list) -> None:
    assert [joblib.effective_n_jobs(n) for n in (-1, -2, -9, 7)] == [2, 1, 1, 7]
    with pytest.raises(ValueError, match="n_jobs == 0"):
        Parallel(n_jobs=0)(delayed(calls.double)(n) for n in range(3))


def test_results_come_as_a_generator(settled: list) -> None:
    results = Parallel(n_jobs=2, return_as="generator")(delayed(calls.double)(n) for n in range(9))
    assert list(results) == [2 * n for n in range(9)]


def test_an_error_is_the_users_own_and_ends_the_rest(settled: list, tmp_path: Path) -> None:
    work = [delayed(calls.refuse)(1), *(delayed(calls.double)(n) for n in range(500))]
    with pytest.raises(calls.Refusal):
        Parallel(n_jobs=2, batch_size=1)(work)
    assert len(settled) < 501
    assert Parallel(n_jobs=2)(delayed(calls.double)(n) for n in range(3)) == [0, 2, 4]


def test_calls_may_be_parallel_themselves(settled: list) -> None:
    results = Parallel(n_jobs=2)(delayed(calls.sum_in_parallel)(n) for n in range(4))
    assert results == [0, 0, 2, 6]
    assert {settle.task.category for settle in settled} == {"sum_in_parallel"}


def test_hints_reach_the_tasks(settled: list) -> None:
    fixed = with_hints(calls.double, category="hinted", memory="300MB", fixed=True)
    assert Parallel(n_jobs=2, batch_size=1)(delayed(fixed)(n) for n in range(3)) == [0, 2, 4]
    assert {settle.task.category for settle in settled} == {"hinted"}
    given = {settle.outcomes[-1].attempt.allocation[Kind.MEMORY] for settle in settled}
    assert given == {300e6}


def test_calls_that_would_have_been_killed_are_completed(settled: list, tmp_path: Path) -> None:
    amounts = [20] * 8 + [700] * 3
    work = [delayed(calls.note_and_hold)(str(tmp_path), n, mb, 0.3) for n, mb in enumerate(amounts)]
    assert Parallel(n_jobs=2, batch_size=1)(work) == amounts
    assert {settle.ending for settle in settled} == {Ending.DONE}
    assert any(len(settle.outcomes) > 1 for settle in settled)
    assert calls.most_at_once(tmp_path) <= 2000


def test_a_batch_whose_worker_was_killed_is_run_again(settled: list, tmp_path: Path) -> None:
    work = [delayed(calls.kill_once)(str(tmp_path / f"killed{n}"), "worker") for n in range(2)]
    assert Parallel(n_jobs=2, batch_size=1)(work) == ["survived"] * 2


def test_scikit_learn_searches_with_the_same_result(settled: list) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed here")
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, cross_val_score

    features, classes = load_iris(return_X_y=True)
    model, grid = LogisticRegression(max_iter=500), {"C": [0.1, 1.0]}
    scores = cross_val_score(model, features, classes, n_jobs=2)
    found = GridSearchCV(model, grid, cv=3, n_jobs=-1).fit(features, classes)
    assert {settle.task.category for settle in settled} == {"_fit_and_score"}
    with joblib.parallel_config("sequential"):
        assert list(scores) == list(cross_val_score(model, features, classes))
        here = GridSearchCV(model, grid, cv=3).fit(features, classes)
    assert (found.best_score_, found.best_params_) == (here.best_score_, here.best_params_)
