"""Waits that one workflow has seen are known to the others."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from parsl_sizer.executor.shared_waits import SharedWaits
from parsl_sizer.scaling import Geometry

SMALL, LARGE = Geometry(1, 28), Geometry(4, 28)


@pytest.fixture
def said() -> list[str]:
    return []


def workflow(where: Path, name: str, said: list[str], place: str = "slurm test") -> SharedWaits:
    return SharedWaits(where, place, name, Random(name), said.append)


def test_workflows_learn_from_each_other_while_they_run(tmp_path: Path, said: list[str]) -> None:
    where = tmp_path / "archive.sqlite3"
    one, other = workflow(where, "one", said), workflow(where, "other", said)
    one.share()
    other.share()
    one.observe(LARGE, 240.0, Random(1))
    one.observe(SMALL, 30.0, Random(1), at_most=True)
    one.share()
    other.share()
    assert other.known == one.known == {str(LARGE): 1, str(SMALL): 1}
    assert other.learner(LARGE).probabilities == one.learner(LARGE).probabilities
    assert other.learner(SMALL).probabilities == one.learner(SMALL).probabilities
    other.observe(LARGE, 250.0, Random(1))
    other.share()
    one.share()
    one.share()
    assert one.known[str(LARGE)] == other.known[str(LARGE)] == 2
    assert not said


def test_the_next_workflow_begins_with_what_is_known(tmp_path: Path, said: list[str]) -> None:
    where = tmp_path / "archive.sqlite3"
    first = workflow(where, "first", said)
    for _ in range(5):
        first.observe(LARGE, 600.0, Random(1))
    first.share()
    second = workflow(where, "second", said)
    second.share()
    assert second.estimate(LARGE, Random(3)) == 600.0
    elsewhere = workflow(where, "third", said, place="slurm other")
    elsewhere.share()
    assert not elsewhere.known


def test_an_archive_that_cannot_be_used_is_said_once_and_waits_are_learned(
    tmp_path: Path, said: list[str]
) -> None:
    waits = workflow(tmp_path, "one", said)  # a folder
    waits.share()
    waits.observe(LARGE, 240.0, Random(1))
    waits.share()
    assert len(said) == 1
    assert "not shared" in said[0]
    assert waits.known == {str(LARGE): 1}
