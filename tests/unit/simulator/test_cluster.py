"""The replay on a cluster, on cases small enough to be worked out by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsl_sizer.model import Amounts, Ending, Kind, Outcome, Resources, TaskInfo
from parsl_sizer.simulator.cluster import replay_cluster
from parsl_sizer.simulator.replay import Replayed
from parsl_sizer.simulator.trace import Row
from parsl_sizer.sizing import Categories
from parsl_sizer.strategies import Proposal

GB = 1e9
NODE = Resources(cores=4, memory=8 * GB)


class Fixed:
    """The same for every task, then the largest node."""

    def __init__(self, amounts: Amounts) -> None:
        self.amounts = amounts

    def propose(self, task: TaskInfo, failures: Sequence[Outcome], largest: Resources) -> Proposal:
        if failures:
            return Proposal({kind: largest[kind] for kind in self.amounts}, "the largest")
        return Proposal(self.amounts, "fixed")

    def learn(self, outcome: Outcome) -> None:
        pass


def fixed(**amounts: float) -> Categories:
    strategy = Fixed({Kind(kind): amount for kind, amount in amounts.items()})
    return Categories(lambda category: strategy)


def row(number: int, memory: float, time_s: float = 10.0, submitted_at: float = 0.0) -> Row:
    task = TaskInfo(number, "align", submitted_at=submitted_at)
    return Row(number, task, {Kind.MEMORY: memory}, time_s)


def test_tasks_that_fit_together_run_together() -> None:
    rows = [row(number, 2 * GB) for number in range(4)]
    result = replay_cluster(rows, fixed(memory=4 * GB), NODE, nodes=1)
    assert result.makespan_s == 20.0
    assert result.done == result.attempts == 4
    assert result.tasks_per_hour == 4 * 3600 / 20
    assert result.utilisation == {Kind.MEMORY: 0.5}
    assert result.occupancy == {Kind.MEMORY: 1.0}


def test_more_nodes_take_less_time() -> None:
    rows = [row(number, 2 * GB) for number in range(4)]
    result = replay_cluster(rows, fixed(memory=4 * GB), NODE, nodes=2)
    assert result.makespan_s == 10.0


def test_a_failed_attempt_takes_its_share_of_the_time_and_is_repeated() -> None:
    settled: list[Replayed] = []
    result = replay_cluster(
        [row(1, 6 * GB)],
        fixed(memory=4 * GB),
        NODE,
        nodes=1,
        ttf=0.5,
        settled=settled.append,
    )
    assert result.makespan_s == 15.0
    assert result.attempts == 2
    assert result.allocated == {Kind.MEMORY: 4 * GB * 5 + 8 * GB * 10}
    assert result.used == {Kind.MEMORY: 6 * GB * 10}
    [replayed] = settled
    assert [o.ending for o in replayed.outcomes] == [Ending.EXHAUSTED, Ending.DONE]
    assert [o.ended_at for o in replayed.outcomes] == [5.0, 15.0]
    assert [o.host for o in replayed.outcomes] == ["node0", "node0"]


def test_a_task_that_no_node_holds_is_counted_and_not_run() -> None:
    settled: list[Replayed] = []
    rows = [row(1, 9 * GB), row(2, GB)]
    result = replay_cluster(rows, fixed(memory=GB), NODE, nodes=1, settled=settled.append)
    assert (result.impossible, result.done, result.attempts) == (1, 1, 1)
    assert [replayed.impossible for replayed in settled] == [{Kind.MEMORY}, set()]


def test_time_begins_with_the_first_task_submitted() -> None:
    rows = [row(1, GB, submitted_at=100.0), row(2, GB, submitted_at=150.0)]
    result = replay_cluster(rows, fixed(memory=8 * GB), NODE, nodes=1)
    assert result.makespan_s == 60.0


def test_no_rows_and_no_time_are_no_division_by_zero() -> None:
    for rows in ([], [row(1, GB, time_s=0.0)]):
        result = replay_cluster(rows, fixed(memory=GB), NODE, nodes=1)
        assert result.makespan_s == result.tasks_per_hour == 0.0
        assert result.utilisation == {}
        assert result.done == len(rows)


def test_a_task_whose_peak_is_not_known_takes_its_time() -> None:
    unknown = Row(1, TaskInfo(1, "align"), {}, 10.0)
    result = replay_cluster([unknown], fixed(memory=GB), NODE, nodes=1)
    assert (result.done, result.makespan_s) == (1, 10.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": 0}, "nodes must be 1 or more, not 0"),
        ({"nodes": 1, "ttf": 1.5}, "ttf must be between 0 and 1, not 1.5"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replay_cluster([], fixed(memory=GB), NODE, **options)  # type: ignore[arg-type]


def test_two_rows_of_one_task_are_refused() -> None:
    with pytest.raises(ValueError, match="Two rows have the task id 1"):
        replay_cluster([row(1, GB), row(1, GB)], fixed(memory=GB), NODE, nodes=1)


@settings(max_examples=50)
@given(
    rows=st.lists(st.tuples(st.floats(0, 8 * GB), st.floats(0, 100)), max_size=60),
    first=st.floats(0, 8 * GB),
    nodes=st.integers(1, 3),
    ttf=st.floats(0, 1),
)
def test_at_no_time_does_a_node_hold_more_than_it_has(
    rows: list[tuple[float, float]], first: float, nodes: int, ttf: float
) -> None:
    settled: list[Replayed] = []
    trace = [row(number, memory, time_s) for number, (memory, time_s) in enumerate(rows)]
    result = replay_cluster(
        trace, fixed(memory=first), NODE, nodes=nodes, ttf=ttf, settled=settled.append
    )
    assert Counter(replayed.row.line for replayed in settled) == Counter(range(len(rows)))
    assert result.done == len(rows)
    held: dict[str | None, list[tuple[float, int, Fraction]]] = defaultdict(list)
    for replayed in settled:
        for outcome in replayed.outcomes:
            amount = Fraction(outcome.attempt.allocation[Kind.MEMORY])
            if outcome.ended_at > outcome.attempt.launched_at:
                held[outcome.host].append((outcome.attempt.launched_at, 1, amount))
                held[outcome.host].append((outcome.ended_at, 0, -amount))
    for changes in held.values():
        level = Fraction(0)
        for _, _, change in sorted(changes):
            level += change
            assert level <= NODE.memory
