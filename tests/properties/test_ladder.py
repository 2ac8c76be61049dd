"""The cheapest ladder is the cheapest, for any tasks, theta, price and floor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parsl_sizer.strategies.ladder import HEADROOM, Ladder, Point, cheapest_ladder

CLOSE = 1e-9
"""Relative: no sum of positive terms loses more than a few bits per rung."""

# Few values make ties, whole ones exact sums; the wide ones span what traces may hold.
AMOUNTS = st.one_of(
    st.integers(1, 9).map(float), st.floats(1e-3, 1e24), st.floats(1.0, 10.0), st.just(1e18)
)
WEIGHTS = st.one_of(st.just(0.0), st.integers(1, 5).map(float), st.floats(1e-9, 1e12))
THETAS = st.one_of(st.just(1.0), st.just(0.0), st.floats(0.0, 1.0))
PRICES = st.one_of(st.just(0.0), st.floats(1e-6, 1e3), st.floats(1.0, 1e24))


def points(most: int) -> st.SearchStrategy[list[Point]]:
    tasks = st.tuples(AMOUNTS, WEIGHTS, WEIGHTS)
    return st.lists(tasks, min_size=1, max_size=most).map(lambda drawn: sorted(drawn))


@st.composite
def many_points(draw: st.DrawFn) -> list[Point]:
    """Up to 300 points of one shape; drawn one by one they would take seconds."""
    random = Random(draw(st.integers(0, 2**32)))
    spread = draw(st.sampled_from([0.01, 0.5, 2.0, 8.0]))
    digits = draw(st.sampled_from([0, 2, 15]))
    idle = draw(st.sampled_from([0.0, 0.3, 0.95]))

    def weight() -> float:
        return 0.0 if random.random() < idle else random.lognormvariate(0.0, 2.0)

    def amount() -> float:
        return max(round(10.0 * random.lognormvariate(0.0, spread), digits), 1e-3)

    return sorted((amount(), weight(), weight()) for _ in range(draw(st.integers(9, 300))))


def walked(
    climb: list[float],
    tasks: list[Point],
    theta: float,
    price: float,
    worth: Callable[[float], float] = float,
) -> float:
    """What the tasks cost, each climbing until it fits; an amount is paid at its worth."""
    everyone = sum(count for _, _, count in tasks) or 1.0
    spent = 0.0
    for peak, time, count in tasks:
        for step, amount in enumerate(climb):
            if step:
                spent += price * count / everyone
            if amount >= peak:
                spent += worth(amount) * time
                break
            spent += worth(amount) * theta * time
        else:
            raise AssertionError(f"{climb} does not hold {peak}")
    return spent


def climbs(amounts: list[float]) -> Iterator[list[float]]:
    """Every rising way to the last amount."""
    *rest, last = amounts
    for size in range(len(amounts)):
        for chosen in combinations(rest, size):
            yield [*chosen, last]


def way(ladder: Ladder, first: float) -> list[float]:
    """The way that the ladder takes from this start."""
    climb = [first]
    while (following := ladder.after(climb[-1])) is not None:
        assert following > climb[-1]
        climb.append(following)
    return climb


def distinct(tasks: list[Point]) -> list[float]:
    return sorted({peak for peak, _, _ in tasks})


def program(tasks: list[Point], theta: float, price: float) -> list[float]:
    """The cost of the best ladder from each start, trying every next step: O(m^2)."""
    amounts = distinct(tasks)
    everyone = sum(count for _, _, count in tasks) or 1.0
    late = [sum(time for peak, time, _ in tasks if peak > amount) for amount in amounts]
    share = [sum(n for peak, _, n in tasks if peak > amount) / everyone for amount in amounts]
    rest = [0.0] * len(amounts)

    def held(start: float, time: float, index: int) -> float:
        """Those who come to `start` hold it, and those who go on pay for a retry."""
        return start * (time - (1.0 - theta) * late[index]) + price * share[index] + rest[index]

    for index in range(len(amounts) - 2, -1, -1):
        following = range(index + 1, len(amounts))
        rest[index] = min(held(amounts[step], late[index], step) for step in following)
    total = sum(time for _, time, _ in tasks)
    return [held(amount, total, index) for index, amount in enumerate(amounts)]


def at_most(cost: float, least: float) -> bool:
    """Whether a cost is the least, but for rounding."""
    return cost <= least * (1.0 + CLOSE)


@settings(max_examples=250)
@given(points(8), THETAS, PRICES)
@example([(1.0, 0.0, 0.0), (2.0, 0.0, 0.0)], 1.0, 0.0)
@example([(1.0, 1.0, 1.0), (1e24, 1e-9, 1e-9)], 0.0, 0.0)
def test_no_set_of_amounts_is_a_cheaper_ladder(
    tasks: list[Point], theta: float, price: float
) -> None:
    ladder = cheapest_ladder(tasks, theta=theta, price=price)
    least = min(walked(climb, tasks, theta, price) for climb in climbs(distinct(tasks)))
    assert at_most(walked(list(ladder.rungs), tasks, theta, price), least)
    assert list(ladder.rungs) == way(ladder, ladder.rungs[0])


@settings(max_examples=80)
@given(points(8), THETAS, PRICES)
def test_costs_are_those_of_the_best_ladder_from_each_start(
    tasks: list[Point], theta: float, price: float
) -> None:
    ladder = cheapest_ladder(tasks, theta=theta, price=price)
    assert list(ladder.amounts) == distinct(tasks)
    for amount, cost in zip(ladder.amounts, ladder.costs, strict=True):
        tried = (climb for climb in climbs(distinct(tasks)) if climb[0] == amount)
        least = min(walked(climb, tasks, theta, price) for climb in tried)
        assert cost == pytest.approx(least, rel=CLOSE)


@settings(max_examples=80)
@given(many_points(), THETAS, st.one_of(st.just(0.0), st.floats(1e-3, 1e3)))
def test_a_long_ladder_costs_what_the_quadratic_program_says(
    tasks: list[Point], theta: float, price: float
) -> None:
    ladder = cheapest_ladder(tasks, theta=theta, price=price)
    expected = program(tasks, theta, price)
    assert list(ladder.costs) == pytest.approx(expected, rel=CLOSE)
    assert at_most(walked(list(ladder.rungs), tasks, theta, price), min(expected))


@settings(max_examples=80)
@given(points(6), THETAS, PRICES, AMOUNTS)
def test_after_any_failure_what_follows_is_the_cheapest(
    tasks: list[Point], theta: float, price: float, failed: float
) -> None:
    ladder = cheapest_ladder(tasks, theta=theta, price=price)
    amounts = distinct(tasks)
    between = [(low + high) / 2 for low, high in pairwise(amounts)]
    for amount in (failed, *amounts, *between):
        # Those who failed at this amount are those above it; the price of this retry is paid.
        left = [task for task in tasks if task[0] > amount]
        following = ladder.after(amount)
        if not left:
            assert following is None
            continue
        assert following is not None
        assert following > amount
        everyone = sum(count for _, _, count in tasks) or 1.0
        remaining = sum(count for _, _, count in left) or 1.0
        share = price * remaining / everyone
        least = min(walked(climb, left, theta, share) for climb in climbs(distinct(left)))
        assert at_most(walked(way(ladder, following), left, theta, share), least)


@settings(max_examples=100)
@given(points(5), THETAS, PRICES, AMOUNTS)
def test_where_all_below_a_floor_costs_the_floor_no_other_start_is_cheaper(
    tasks: list[Point], theta: float, price: float, drawn: float
) -> None:
    ladder = cheapest_ladder(tasks, theta=theta, price=price)
    amounts = distinct(tasks)
    # Near the next amount it is a close question whether to start there instead.
    between = [
        low + part * (high - low) for low, high in pairwise(amounts) for part in (0.3, 0.8, 0.95)
    ]
    for floor in (drawn, *amounts, *between):

        def worth(amount: float, floor: float = floor) -> float:
            return max(amount, floor)

        chosen = ladder.first_at_least(floor)
        assert chosen >= min(floor, ladder.rungs[0])
        found = walked(way(ladder, chosen), tasks, theta, price, worth)
        starts = sorted({*amounts, floor})
        least = min(walked(climb, tasks, theta, price, worth) for climb in climbs(starts))
        assert at_most(found, least)


@given(points(8), THETAS, PRICES)
def test_a_floor_below_the_first_rung_changes_nothing(
    tasks: list[Point], theta: float, price: float
) -> None:
    ladder = cheapest_ladder(tasks, theta=theta, price=price)
    assert ladder.first_at_least(0.0) == ladder.rungs[0]
    assert ladder.first_at_least(ladder.rungs[0]) == ladder.rungs[0]


@given(points(8), THETAS)
def test_a_retry_that_costs_more_than_anything_is_never_planned(
    tasks: list[Point], theta: float
) -> None:
    counted = [(peak, time, 1.0) for peak, time, _ in tasks]
    highest = counted[-1][0]
    everything = 2.0 * highest * sum(time for _, time, _ in counted) + 1.0
    ladder = cheapest_ladder(counted, theta=theta, price=len(counted) * everything)
    assert ladder.rungs == (highest,)


@given(points(8), THETAS, PRICES, st.integers(-20, 20))
def test_in_another_unit_of_size_or_time_the_ladder_is_the_same(
    tasks: list[Point], theta: float, price: float, doublings: int
) -> None:
    unit = 2.0**doublings  # exact, so that ties stay ties
    ladder = cheapest_ladder(tasks, theta=theta, price=price)
    larger = [(peak * unit, time, count) for peak, time, count in tasks]
    longer = [(peak, time * unit, count) for peak, time, count in tasks]
    in_unit = tuple(rung * unit for rung in ladder.rungs)
    assert cheapest_ladder(larger, theta=theta, price=price * unit).rungs == in_unit
    assert cheapest_ladder(longer, theta=theta, price=price * unit).rungs == ladder.rungs


@given(points(8), THETAS, PRICES, AMOUNTS)
def test_an_amount_covers_the_share_of_tasks_that_it_holds(
    tasks: list[Point], theta: float, price: float, amount: float
) -> None:
    ladder = cheapest_ladder(tasks, theta=theta, price=price)
    everyone = sum(count for _, _, count in tasks)
    held = sum(count for peak, _, count in tasks if peak <= amount)
    if everyone:
        assert ladder.covered(amount) == pytest.approx(held / everyone, rel=CLOSE, abs=1e-12)
    assert ladder.covered(ladder.amounts[-1]) == 1.0


@given(points(8), THETAS, PRICES, st.data())
def test_what_a_task_takes_is_what_it_pays_on_its_way(
    tasks: list[Point], theta: float, price: float, data: st.DataObject
) -> None:
    ladder = cheapest_ladder(tasks, theta=theta, price=price)
    peak = data.draw(st.floats(1e-4, ladder.amounts[-1]))
    alone = walked(list(ladder.rungs), [(peak, 1.0, 1.0)], theta, 0.0)
    assert ladder.cost(peak, theta) == pytest.approx(alone, rel=CLOSE)


@given(points(8), THETAS, PRICES)
def test_retries_are_those_of_every_task_on_its_way(
    tasks: list[Point], theta: float, price: float
) -> None:
    ladder = cheapest_ladder(tasks, theta=theta, price=price)
    everyone = sum(count for _, _, count in tasks) or 1.0
    tried = sum(count * sum(1 for rung in ladder.rungs if rung < peak) for peak, _, count in tasks)
    assert ladder.retries() == pytest.approx(tried / everyone, rel=CLOSE)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 3)), min_size=2, max_size=8), THETAS)
def test_where_a_failure_tells_the_peak_no_other_start_is_cheaper(
    drawn: list[tuple[int, int]], theta: float
) -> None:
    tasks = [(float(peak), float(time), 1.0) for peak, time in sorted(drawn)]

    def cost(first: float) -> float:
        rest = [task for task in tasks if task[0] > first]
        done = sum(time for peak, time, _ in tasks if peak <= first)
        spent = first * (done + theta * sum(time for _, time, _ in rest))
        if rest:
            exact = HEADROOM * sum(peak * time for peak, time, _ in rest)
            spent += min(exact, min(cheapest_ladder(rest, theta=theta).costs))
        return spent

    ladder = cheapest_ladder(tasks, theta=theta, known=1.0)
    for amount, found in zip(ladder.amounts, ladder.costs, strict=True):
        assert found == pytest.approx(cost(amount))
    assert cost(ladder.rungs[0]) <= min(map(cost, ladder.amounts)) * (1 + CLOSE)


def test_where_a_failure_tells_the_peak_the_start_is_lower() -> None:
    tasks = [(1.0 + number / 10, 1.0, 1.0) for number in range(20)]
    starts = [cheapest_ladder(tasks, theta=0.1, known=known).rungs[0] for known in (0, 0.5, 1)]
    assert starts[0] > starts[1] > starts[2]
