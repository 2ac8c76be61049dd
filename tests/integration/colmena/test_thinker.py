"""A thinker that is as it was, with the executor wrapped: the same results, and each known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("colmena", reason="Colmena is not installed here")

import colmena_methods as methods
from colmena_runs import campaign, recorded
from colmena_thinker import GENERATIONS, TOPICS, Search, size
from sizer_runs import LIMIT_S, htex, most_given_out, sized

from parsl_sizer.model import Ending

NODE = 250e6
"""Two of the largest at once would not fit."""


def searched(executor: Any, folder: Path, *, tags: bool = False) -> Search:
    """A whole search with this executor."""
    with campaign(executor, [methods.simulate, methods.infer], folder, topics=TOPICS) as made:
        thinker = Search(made.queues, tags=tags)
        thinker.start()
        thinker.join(LIMIT_S)
        assert not thinker.is_alive()
    return thinker


@pytest.mark.parametrize("tags", [False, True], ids=["untagged", "tagged"])
def test_the_same_results_and_every_task_is_known_for_what_it_is(
    tmp_path: Path, tags: bool
) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "sized").mkdir()
    plain = searched(htex(), tmp_path / "plain", tags=tags)
    archive = tmp_path / "archive.sqlite3"
    executor = sized(node=f"cores=2,memory={NODE / 1e6:g}MB", archive=archive, grow=False)
    thinker = searched(executor, tmp_path / "sized", tags=tags)

    assert thinker.energies == plain.energies
    assert thinker.scores == plain.scores
    count = sum(len(set(generation)) for generation in GENERATIONS) + len(GENERATIONS)
    assert len(thinker.results) == len(plain.results) == count
    assert all("sizing" not in result.task_info for result in plain.results)

    for result in thinker.results:
        atoms = result.args[0]
        tag = size(atoms) if result.method == "simulate" else "scoring"
        sizing = result.task_info["sizing"]
        assert sizing["category"] == (tag if tags else result.method)
        assert sizing["attempts"][-1]["ending"] == "done"
        assert sizing["allocation"]["memory"] <= NODE
        if result.method == "simulate":
            assert sizing["peak"]["memory"] >= 0.98 * methods.GRID * atoms * 1e6

    outcomes = recorded(archive)
    done = [outcome for outcome in outcomes if outcome.ending is Ending.DONE]
    assert len(done) == count
    expected = sorted(
        (
            result.task_info["sizing"]["category"],
            result.message_sizes["inputs"],
            result.task_info.get("atoms"),
        )
        for result in thinker.results
        if result.method == "simulate"
    )
    found = sorted(
        (task.category, task.features["input_size"], task.features.get("atoms"))
        for task in (outcome.attempt.task for outcome in done)
        if "infer" not in task.command
    )
    assert found == expected
    assert most_given_out(outcomes) <= NODE
    assert not (tmp_path / "sized" / "warnings.txt").read_text()


def test_the_hint_of_a_method_and_the_category_function_are_heard(tmp_path: Path) -> None:
    def by_size(function: Any, args: Any, kwargs: Any) -> str | None:
        (result,) = args
        return f"{function.__name__} of {result.method}" if result.method == "simulate" else None

    executor = sized(category=by_size)
    with campaign(executor, [methods.simulate, methods.infer, methods.grown], tmp_path) as made:
        first = made.asked("simulate", 5)
        assert first.task_info["sizing"]["category"] == "simulate of simulate"
        second = made.asked("infer", [1.0], task_info={"category": "scoring"})
        assert second.task_info["sizing"]["category"] == "scoring"
        notes = tmp_path / "notes"
        notes.write_text("not the first")
        third = made.asked("grown", 1, str(notes))
        assert third.task_info["sizing"]["allocation"] == {"memory": 100e6}
