from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest

from parsl_sizer.model import (
    Amounts,
    Attempt,
    Ending,
    Kind,
    Outcome,
    Resources,
    TaskInfo,
    UnknownStrategy,
    Usage,
    format_amount,
)
from parsl_sizer.strategies import Setting, Strategy
from parsl_sizer.strategies.catalog import family
from parsl_sizer.strategies.cold_start import Pool
from parsl_sizer.strategies.optimal_ladder import HEADROOM, OptimalLadder, level_reached

GB = 1e9
NODE = Resources(cores=16, memory=64 * GB, disk=64 * GB)
OURS = ["optimal-ladder", "conditioned-ladder", "auto"]
NEXT = TaskInfo("next", "align")


def ladder_of(peaks: Sequence[float], wall_s: float = 60.0) -> OptimalLadder:
    ladder = OptimalLadder(Kind.MEMORY, Pool(Kind.MEMORY))
    for number, peak in enumerate(peaks):
        ladder.observe(TaskInfo(number, "align"), peak, wall_s)
    return ladder


def climb(ladder: OptimalLadder, task: TaskInfo, largest: float) -> list[float]:
    amounts = [ladder.predict(task, largest)]
    while (following := ladder.grow(task, amounts, largest)) and amounts[-1] < largest:
        amounts.append(following)
    return amounts


def strategy_of(name: str, objective: str, peaks: Sequence[Amounts], **options: float) -> Strategy:
    kinds = tuple(peaks[0]) if peaks else (Kind.MEMORY,)
    text = ",".join(f"{option}={value}" for option, value in options.items())
    strategy = family(f"{name}:{text}", Setting(kinds, objective))("align")
    for number, peak in enumerate(peaks):
        strategy.learn(done(number, peak))
    return strategy


def done(number: int | str, peak: Amounts, **features: float) -> Outcome:
    attempt = Attempt(TaskInfo(number, "align", features=features), 1, dict(peak))
    return Outcome(attempt, Ending.DONE, usage=Usage(peak, wall_s=60.0))


def ran_out(number: int | str, memory: float, wall_s: float = 60.0) -> Outcome:
    attempt = Attempt(TaskInfo(number, "align"), 1, {Kind.MEMORY: memory})
    usage = Usage({Kind.MEMORY: memory}, wall_s)
    return Outcome(attempt, Ending.EXHAUSTED, usage=usage, exhausted=frozenset({Kind.MEMORY}))


def first(strategy: Strategy, task: TaskInfo = NEXT, node: Resources = NODE) -> Amounts:
    return strategy.propose(task, [], node).amounts


def test_tasks_all_alike_get_what_they_need() -> None:
    assert ladder_of([2 * GB] * 20).predict(NEXT, NODE.memory) == pytest.approx(2 * GB, rel=0.05)


def test_what_most_need_comes_first_and_what_few_need_next() -> None:
    ladder = ladder_of([1 * GB] * 90 + [10 * GB] * 10)
    assert climb(ladder, NEXT, NODE.memory)[:2] == [1 * GB, 10 * GB]


def test_a_ladder_climbs_past_the_largest_peak_seen_to_the_node() -> None:
    amounts = climb(ladder_of([2 * GB] * 50), NEXT, NODE.memory)
    assert all(low < high for low, high in pairwise(amounts))
    assert amounts[-1] == NODE.memory
    assert len(amounts) < 12


def test_a_guess_near_the_node_becomes_the_node() -> None:
    ladder = ladder_of([10 * GB] * 30)
    second = ladder.grow(NEXT, [10.5 * GB], 1e15)
    assert second is not None
    assert ladder.grow(NEXT, [10.5 * GB], second * 1.05) == second * 1.05
    assert ladder.grow(NEXT, [10.5 * GB], second * 1.2) == second


def test_a_peak_that_was_seen_near_the_node_stays_what_it_is() -> None:
    assert ladder_of([62 * GB] * 3000).predict(NEXT, NODE.memory) == 62 * GB


def test_failures_before_any_task_finished_raise_the_next_first_attempt() -> None:
    strategy = strategy_of("optimal-ladder", "waste", [])
    start = first(strategy)[Kind.MEMORY]
    strategy.learn(ran_out("a", start))
    assert first(strategy)[Kind.MEMORY] == start  # one may be an odd one
    strategy.learn(ran_out("b", start))
    assert first(strategy)[Kind.MEMORY] > start


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("requested", [{}, {Kind.MEMORY: 3 * GB}])
def test_tasks_in_flight_that_ran_out_teach_those_that_follow(
    name: str, requested: dict[Kind, float]
) -> None:
    strategy = strategy_of(name, "waste", [])
    task = TaskInfo("new", "align", requested=requested)
    amounts = [first(strategy, task)[Kind.MEMORY]]
    for step in range(12):
        for number in range(5):
            strategy.learn(ran_out(number, amounts[-1], 10.0 + step))
        amounts.append(first(strategy, task)[Kind.MEMORY])
        assert amounts[-1] > amounts[-2] or amounts[-1] == NODE.memory
    assert amounts[-1] == NODE.memory


def test_of_tasks_in_flight_that_ran_out_the_median_counts() -> None:
    strategy = strategy_of("optimal-ladder", "waste", [])
    start = first(strategy)[Kind.MEMORY]
    for number in range(9):
        strategy.learn(ran_out(number, start))
    after_most = first(strategy)[Kind.MEMORY]
    strategy.learn(ran_out(0, 20 * GB))
    assert first(strategy)[Kind.MEMORY] == after_most < 20 * GB


def test_many_tasks_that_ran_out_outweigh_the_few_that_finished() -> None:
    strategy = strategy_of("optimal-ladder", "waste", [{Kind.MEMORY: GB}] * 5)
    before = strategy.propose(NEXT, [], NODE)
    assert before.amounts[Kind.MEMORY] < 1.5 * GB
    for number in range(40):
        strategy.learn(ran_out(f"failing {number}", before.amounts[Kind.MEMORY]))
    assert first(strategy)[Kind.MEMORY] > before.amounts[Kind.MEMORY]


def test_tasks_that_ran_out_and_finished_count_once() -> None:
    slow = strategy_of("optimal-ladder", "waste", [{Kind.MEMORY: GB}] * 5)
    quick = strategy_of("optimal-ladder", "waste", [{Kind.MEMORY: GB}] * 5)
    for number in range(40):
        slow.learn(ran_out(f"failing {number}", GB))
    for number in range(40):
        slow.learn(done(f"failing {number}", {Kind.MEMORY: 4 * GB}))
        quick.learn(done(f"failing {number}", {Kind.MEMORY: 4 * GB}))
    assert first(slow) == first(quick)


def test_where_failing_attempts_die_early_more_is_tried() -> None:
    random = Random(1)
    peaks = [random.uniform(1, 20) * GB for _ in range(200)]
    early, late = ladder_of([]), ladder_of([])
    for ladder, wall_s in ((early, 0.6), (late, 60.0)):
        for number, peak in enumerate(peaks):
            task = TaskInfo(number, "align")
            ladder.observe_failure(task, peak / 2, wall_s)
            ladder.observe(task, peak, 60.0)
    assert early.predict(NEXT, NODE.memory) < 0.7 * late.predict(NEXT, NODE.memory)


def test_a_higher_price_makes_for_fewer_retries() -> None:
    random = Random(1)
    peaks = [{Kind.MEMORY: random.uniform(1, 20) * GB} for _ in range(200)]
    cheap = first(strategy_of("optimal-ladder", "waste", peaks, price=0.0))
    dear = first(strategy_of("optimal-ladder", "waste", peaks, price=1.0))
    assert cheap[Kind.MEMORY] < dear[Kind.MEMORY]


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("price", ["-0.1", "much", "nan", "inf"])
def test_a_price_is_a_number(name: str, price: str) -> None:
    with pytest.raises(UnknownStrategy, match="price is a share"):
        family(f"{name}:price={price}", Setting((Kind.MEMORY,)))


@pytest.mark.parametrize("name", OURS)
def test_there_is_no_third_objective(name: str) -> None:
    with pytest.raises(UnknownStrategy, match="'makespan'"):
        family(name, Setting((Kind.MEMORY,), "makespan"))


def lessons(tasks: int, seed: int = 1) -> list[dict[Kind, float]]:
    """Memory with two modes, a share of the node that is below the cores' or above."""
    random = Random(seed)
    return [
        {
            Kind.CORES: random.choice([1.0, 4.0, 4.0]),
            Kind.MEMORY: random.choice([1.0, 1.0, 1.0, 9.0]) * random.uniform(0.8, 1.0) * GB,
            Kind.DISK: random.uniform(0.1, 1.0) * GB,
        }
        for _ in range(tasks)
    ]


@pytest.mark.parametrize("name", OURS)
def test_for_throughput_a_kind_is_raised_to_the_dominant_share_for_free(name: str) -> None:
    peaks = [{Kind.CORES: 4.0, Kind.MEMORY: GB if number % 3 else 9 * GB} for number in range(60)]
    thrifty = first(strategy_of(name, "waste", peaks))
    quick = first(strategy_of(name, "throughput", peaks))
    assert thrifty[Kind.MEMORY] == GB
    # 4 of 16 cores: up to a quarter of the memory nothing else could have used.
    assert quick[Kind.MEMORY] == pytest.approx(NODE.memory / 4, rel=0.02)
    assert quick[Kind.CORES] == thrifty[Kind.CORES]


@pytest.mark.parametrize("name", OURS)
def test_a_task_that_used_one_core_fills_half_of_a_node_of_two(name: str) -> None:
    strategy = strategy_of(name, "throughput", [{Kind.CORES: 1.0, Kind.MEMORY: GB}])
    node = Resources(cores=2, memory=64 * GB)
    assert first(strategy, node=node)[Kind.MEMORY] <= node.memory / 2


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("tasks", [1, 2, 6, 60])
def test_for_throughput_nothing_is_lower_and_the_dominant_share_the_same(
    name: str, tasks: int
) -> None:
    for seed in range(3):
        thrifty = first(strategy_of(name, "waste", lessons(tasks, seed)))
        quick = first(strategy_of(name, "throughput", lessons(tasks, seed)))
        assert all(thrifty[kind] <= quick[kind] <= NODE[kind] for kind in thrifty)
        dominant = max(thrifty, key=lambda kind: thrifty[kind] / NODE[kind])
        assert quick[dominant] == thrifty[dominant]


@pytest.mark.parametrize("objective", ["waste", "throughput"])
@pytest.mark.parametrize("name", OURS)
def test_nothing_is_ever_above_the_node_or_below_zero(name: str, objective: str) -> None:
    nodes = [NODE, Resources(cores=1, memory=GB / 2), Resources(cores=1, memory=1e15, disk=1e15)]
    for tasks in (1, 3, 100):
        strategy = strategy_of(name, objective, lessons(tasks))
        for node in nodes:
            amounts = first(strategy, node=node)
            assert all(0 <= amount <= node[kind] for kind, amount in amounts.items())


def test_for_throughput_a_start_above_the_floor_is_taken_where_it_is_cheaper() -> None:
    # A tenth of the tasks need 49 GB: with 48 GB free, a retry costs more than 1 GB more.
    peaks = [{Kind.CORES: 12.0, Kind.MEMORY: (1 if n % 10 else 49) * GB} for n in range(100)]
    strategy = strategy_of("optimal-ladder", "throughput", peaks)
    assert first(strategy)[Kind.MEMORY] == pytest.approx(49 * GB, rel=0.02)


def test_for_throughput_the_node_is_the_limit_even_where_more_was_once_used() -> None:
    peaks = [{Kind.CORES: 4.0, Kind.MEMORY: (1 if n % 20 else 30) * GB} for n in range(100)]
    small = Resources(cores=4, memory=20 * GB)
    found = first(strategy_of("optimal-ladder", "throughput", peaks), node=small)
    assert found == {Kind.CORES: 4.0, Kind.MEMORY: 20 * GB}


def test_for_throughput_the_reason_is_that_of_the_larger_amount() -> None:
    peaks = [{Kind.CORES: 15.0, Kind.MEMORY: (1 if n % 3 else 9) * GB} for n in range(60)]
    thrifty = strategy_of("optimal-ladder", "waste", peaks).propose(NEXT, [], NODE)
    quick = strategy_of("optimal-ladder", "throughput", peaks).propose(NEXT, [], NODE)
    assert re.search(r" 6\d%", str(thrifty.why).split("memory")[1])
    said = str(quick.why).split("memory")[1]
    assert re.search(r" (9\d|100)%.*, where 1 GB would do: more would lie idle beside", said)


def test_for_throughput_a_retry_still_grows_only_what_ran_out() -> None:
    peaks = [{Kind.CORES: 4.0, Kind.MEMORY: GB if number % 3 else 30 * GB} for number in range(60)]
    strategy = strategy_of("optimal-ladder", "throughput", peaks)
    allocation = dict(first(strategy))
    ran = frozenset({Kind.MEMORY})
    failure = Outcome(Attempt(NEXT, 1, allocation), Ending.EXHAUSTED, exhausted=ran)
    again = strategy.propose(NEXT, [failure], NODE).amounts
    assert again[Kind.CORES] == allocation[Kind.CORES]
    assert allocation[Kind.MEMORY] < 17 * GB
    assert again[Kind.MEMORY] == pytest.approx(30 * GB, rel=0.02)


@pytest.mark.parametrize("objective", ["waste", "throughput"])
@pytest.mark.parametrize("name", OURS)
def test_the_reason_names_the_amounts_that_are_proposed(name: str, objective: str) -> None:
    for tasks in (1, 50):
        proposal = strategy_of(name, objective, lessons(tasks)).propose(NEXT, [], NODE)
        parts = str(proposal.why).split("; ")
        assert len(parts) == len(proposal.amounts)
        for part, (kind, amount) in zip(parts, proposal.amounts.items(), strict=True):
            assert part.startswith(f"{kind.value} {format_amount(kind, amount)}: ")


@pytest.mark.parametrize("name", OURS)
def test_the_reason_names_rung_share_and_number_of_tasks(name: str) -> None:
    peaks = [{Kind.MEMORY: (2 if number % 10 else 8) * GB} for number in range(100)]
    said = str(strategy_of(name, "waste", peaks).propose(NEXT, [], NODE).why)
    # 90 of 100 tasks and of what may come above them.
    assert re.fullmatch(r"memory 2 GB: rung 1 of 2\b.* 89%.*\b100 tasks", said), said


def test_after_a_failure_the_reason_is_what_was_too_small() -> None:
    strategy = strategy_of("optimal-ladder", "waste", [{Kind.MEMORY: 2 * GB}] * 10)
    said = str(strategy.propose(NEXT, [ran_out("next", GB)], NODE).why)
    assert "1 GB was too small" in said


def test_the_first_of_a_category_says_that_it_is_a_guess() -> None:
    said = str(strategy_of("optimal-ladder", "waste", []).propose(NEXT, [], NODE).why)
    assert "first" in said
    assert "other categories" not in said  # there are none yet


@pytest.mark.parametrize("name", OURS)
def test_a_reason_does_not_change_when_more_is_learned(name: str) -> None:
    strategy = strategy_of(name, "waste", [])
    captured = []
    for number in range(120):
        if number in (0, 1, 10, 60):
            proposal = strategy.propose(NEXT, [], NODE)
            captured.append((proposal, str(proposal.why)))
        strategy.learn(done(number, {Kind.MEMORY: (1 + number % 13) * GB}, input_size=number))
    assert len({said for _, said in captured}) == len(captured)
    assert all(str(proposal.why) == said for proposal, said in captured)


@pytest.mark.parametrize("name", OURS)
def test_a_reason_travels_as_its_sentence(name: str) -> None:
    random = Random(1)
    peaks = [{Kind.MEMORY: random.uniform(1, 20) * GB} for _ in range(300)]
    why = strategy_of(name, "waste", peaks).propose(NEXT, [], NODE).why
    travelled = pickle.dumps(why)
    assert str(pickle.loads(travelled)) == str(why)
    assert len(travelled) < 1000


def test_categories_of_a_family_share_what_they_know_and_families_share_nothing() -> None:
    setting = Setting((Kind.MEMORY,), "waste")
    one, other = family("optimal-ladder", setting), family("optimal-ladder", setting)
    before = first(one("new"))
    for category in range(60):
        strategy = one(f"seen {category}")
        for number in range(3):
            strategy.learn(done(number, {Kind.MEMORY: 40 * GB}))
    assert first(one("new"))[Kind.MEMORY] == 40 * GB
    assert first(other("new")) == before != first(one("new"))


def stopped(series: Sequence[tuple[float, float]], allocation: float) -> Outcome:
    attempt = Attempt(TaskInfo(1, "align"), 1, {Kind.MEMORY: allocation})
    usage = Usage(
        {Kind.MEMORY: max(used for _, used in series)}, series[-1][0], None, tuple(series)
    )
    return Outcome(attempt, Ending.EXHAUSTED, usage=usage, exhausted=frozenset({Kind.MEMORY}))


def rising(rate: float, until_s: float, rests_s: float = 0.0) -> list[tuple[float, float]]:
    """Growth at this rate, seen every 50 ms, and then none."""
    steps = round((until_s + rests_s) / 0.05)
    return [(step * 0.05, rate * min(step * 0.05, until_s)) for step in range(1, steps + 1)]


def test_a_task_that_rests_is_level() -> None:
    failure = stopped(rising(2 * GB, 1.0, rests_s=0.3), GB)
    assert level_reached([failure]) == 2 * GB


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0, 4.0])
def test_a_task_that_grows_however_slowly_is_not_level(rate: float) -> None:
    assert level_reached([stopped(rising(rate * GB, 8.0), 7 * rate * GB)]) is None


def test_a_task_that_was_taken_for_level_wrongly_is_not_taken_for_it_again() -> None:
    first = stopped(rising(2 * GB, 1.0, rests_s=0.3), GB)
    second = stopped(rising(2.1 * GB, 1.0, rests_s=0.3), 2 * GB * HEADROOM)
    assert level_reached([first, second]) is None
    elsewhere = stopped(rising(6 * GB, 1.0, rests_s=0.3), 5 * GB)
    assert level_reached([first, elsewhere]) == 6 * GB
    assert level_reached([first, second, elsewhere]) is None
    grown = elsewhere.attempt._replace(grown_from=2 * GB)
    assert level_reached([first, elsewhere._replace(attempt=grown)]) is None


def test_where_tasks_grow_the_first_allocation_is_lower() -> None:
    """A task that grows costs no retry, so that little is lost by giving it too little."""

    def learned(*, grown: bool) -> float:
        strategy = family("optimal-ladder", Setting((Kind.MEMORY,), "waste"))("align")
        draw = Random(1)
        for number in range(60):
            peak = GB * draw.lognormvariate(0, 0.4)
            given = 0.5 * GB if grown and peak > 0.5 * GB else None
            task = TaskInfo(number, "align")
            attempt = Attempt(task, 1, {Kind.MEMORY: max(peak, GB)}, grown_from=given)
            usage = Usage({Kind.MEMORY: peak}, 30.0, None, ((0.5, peak), (30.0, peak)))
            strategy.learn(Outcome(attempt, Ending.DONE, usage=usage))
        return first(strategy)[Kind.MEMORY]

    assert learned(grown=True) < 0.9 * learned(grown=False)
