"""Two groups of unequal nodes: each task where it fits, and no node promised twice."""

from __future__ import annotations

from pathlib import Path

import pytest
import sizer_tasks as tasks
from sizer_groups import NODES, SIZES, done_by, most_by_node, recorded, two_groups
from sizer_runs import htex, running

from parsl_sizer import SizedExecutor, sizing_of
from parsl_sizer.engines import CannotWrap
from parsl_sizer.engines.several import group_of
from parsl_sizer.executor.arguments import BadArgument

LIMIT_S = 100


def test_both_groups_are_used_and_no_node_is_over_committed(tmp_path: Path) -> None:
    archive = tmp_path / "archive.sqlite"
    made = two_groups(archive=archive)
    with running(made, tmp_path):
        small = {"memory": "450MB", "fixed": True}
        large = {"memory": "1500MB", "fixed": True}
        futures = [tasks.hold(1, 0.6, parsl_resource_specification=small) for _ in range(12)]
        futures += [tasks.hold(2, 0.6, parsl_resource_specification=large) for _ in range(6)]
        assert [future.result(LIMIT_S) for future in futures] == [1] * 12 + [2] * 6
    outcomes = recorded(archive)
    assert len(outcomes) == len(futures)  # none was tried twice
    done = done_by(outcomes)
    assert done["standard"] > 0
    assert done["big"] >= 6
    for outcome in outcomes:
        if outcome.usage.peak and outcome.attempt.task.requested:
            requested = max(outcome.attempt.task.requested.values())
            assert requested < 1e9 or group_of(outcome.attempt.node) == "big"
    for node, most in most_by_node(outcomes).items():
        assert most <= SIZES[group_of(node)]


def test_a_task_grows_into_the_group_with_larger_nodes(tmp_path: Path) -> None:
    archive = tmp_path / "archive.sqlite"
    with running(two_groups(archive=archive, grow=False), tmp_path):
        spec = {"memory": "200MB"}
        future = tasks.hold(1300, 0.5, parsl_resource_specification=spec)
        assert future.result(LIMIT_S) == 1300
        assert len(sizing_of(future).attempts) > 1
    assert group_of(recorded(archive)[-1].attempt.node) == "big"


def test_a_run_that_is_observed_uses_both_groups(tmp_path: Path) -> None:
    archive = tmp_path / "archive.sqlite"
    with running(two_groups(archive=archive, observe=True), tmp_path):
        futures = [tasks.hold(1, 0.3) for _ in range(16)]
        assert [future.result(LIMIT_S) for future in futures] == [1] * 16
    done = done_by(recorded(archive))
    assert done["standard"] > 2
    assert done["big"] > 2


def test_without_sizing_groups_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARSL_SIZER", "off")
    made = two_groups()
    with running(made, tmp_path):
        futures = [tasks.add(number, 1) for number in range(10)]
        assert [future.result(LIMIT_S) for future in futures] == list(range(1, 11))
        assert [member._task_counter for member in made.inner.members] == [5, 5]


def test_one_executor_in_a_list_is_a_group_like_any_other(tmp_path: Path) -> None:
    made = two_groups(inner=[htex(2, label="alone")], node="cores=2,memory=1GB")
    with running(made, tmp_path):
        assert made.label == "alone"
        assert tasks.add(1, 2).result(LIMIT_S) == 3


@pytest.mark.parametrize(
    ("inner", "node", "said"),
    [
        ([], None, "no executor"),
        (["big", "big"], None, "Two of the inner executors have the label 'big'"),
        (["a/b", "c"], None, "'a/b'"),
        (["big", "standard"], {"huge": "cores=2"}, "'huge'"),
        (["big", "standard"], {"big": "cores=many"}, "cores=many"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    inner: list[str], node: object, said: str
) -> None:
    with pytest.raises(BadArgument, match=said):
        SizedExecutor([htex(label=label) for label in inner], node=node)


def test_threads_are_refused_beside_others() -> None:
    from parsl.executors import ThreadPoolExecutor

    with pytest.raises(CannotWrap, match="'threads' together with others"):
        SizedExecutor([htex(label="big"), ThreadPoolExecutor(label="threads")], node=NODES["big"])
