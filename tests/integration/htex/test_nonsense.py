"""Strategies and category functions that are broken, and very many categories."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import pytest
import sizer_tasks as tasks
from sizer_runs import running, sized

from parsl_sizer import Kind, Outcome, Proposal, Resources, SizedExecutor, TaskInfo, sizing_of

LIMIT_S = 100
NODE = 1e9


class Raises:
    """A strategy that is broken."""

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        raise ZeroDivisionError("propose")

    def learn(self, outcome: Outcome) -> None:
        raise ZeroDivisionError("learn")


class Proposes:
    """One that always says the same."""

    def __init__(self, amount: float) -> None:
        self.amount = amount

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        return Proposal({Kind.MEMORY: self.amount}, "always the same")

    def learn(self, outcome: Outcome) -> None:
        pass


def family(category: str) -> object:
    """Each category's strategy is broken in its own way; most are not."""
    if category == "no strategy":
        raise ZeroDivisionError("family")
    if category == "raises":
        return Raises()
    amounts = {"nan": math.nan, "negative": -1.0, "infinite": math.inf, "too much": 1e18}
    return Proposes(amounts.get(category, 1e8))


def moody(function: object, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """A category function that does what it likes: fails, lies, or leaves it to others."""
    if args[0] == 2:
        raise ZeroDivisionError("moody")
    return {1: "one", 3: 42, 4: "", 5: None}.get(args[0])


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedExecutor]:
    made = sized(strategy=family, category=moody, node="cores=2,memory=1GB")
    with running(made, tmp_path_factory.mktemp("nonsense")):
        yield made


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage() for record in caplog.records if record.name.startswith("parsl_sizer")
    ]


@pytest.mark.parametrize(
    ("category", "sentence"),
    [
        ("no strategy", "could not propose (ZeroDivisionError('family')"),
        ("raises", "could not propose (ZeroDivisionError('propose')"),
        ("nan", "proposed nan for memory"),
        ("negative", "proposed -1.0 for memory"),
        ("infinite", "proposed inf for memory"),
        ("too much", None),
    ],
)
def test_a_broken_strategy_warns_once_and_its_tasks_get_their_request_or_a_node(
    executor: SizedExecutor,
    caplog: pytest.LogCaptureFixture,
    category: str,
    sentence: str | None,
) -> None:
    futures = [tasks.hold(0, parsl_resource_specification={"category": category}) for _ in "123"]
    asked = tasks.hold(0, parsl_resource_specification={"category": category, "memory": 200})
    for future in [*futures, asked]:
        assert future.result(LIMIT_S) == 0
    given = [sizing_of(future).attempts[0].allocation[Kind.MEMORY] for future in futures]
    assert given == [NODE] * 3
    if sentence is not None:
        assert sizing_of(asked).attempts[0].allocation[Kind.MEMORY] == 2e8
        assert sum(sentence in text for text in said(caplog)) == 1


def test_a_category_function_that_fails_or_lies_is_passed_over(
    executor: SizedExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    futures = [tasks.hold(number) for number in (1, 2, 3, 4, 5, 2, 3)]
    assert [future.result(LIMIT_S) for future in futures] == [1, 2, 3, 4, 5, 2, 3]
    found = [sizing_of(future).category for future in futures]
    assert found == ["one", *["hold"] * 6]
    told = said(caplog)
    assert sum("The category function raised ZeroDivisionError" in text for text in told) == 1
    assert sum("The category function returned 42" in text for text in told) == 1
    assert sum("The category function returned ''" in text for text in told) == 1


def test_fifty_categories_at_once(executor: SizedExecutor) -> None:
    futures = [
        tasks.hold(0, parsl_resource_specification={"category": f"c{number % 50}"})
        for number in range(200)
    ]
    assert {future.result(LIMIT_S) for future in futures} == {0}
    assert len({sizing_of(future).category for future in futures}) == 50
