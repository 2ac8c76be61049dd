"""Examples; that ladders are the cheapest is in properties/."""

from __future__ import annotations

import pytest

from parsl_sizer.strategies.ladder import Point, cheapest_ladder


def alike(*peaks: float) -> list[Point]:
    """One task of each peak, all of the same time."""
    return [(peak, 1.0, 1.0) for peak in peaks]


def test_one_task_has_one_rung() -> None:
    ladder = cheapest_ladder(alike(5.0))
    assert ladder.rungs == (5.0,)
    assert list(ladder.costs) == [5.0]
    assert ladder.after(5.0) is None
    assert ladder.after(4.0) == 5.0
    assert ladder.covered(5.0) == 1.0
    assert ladder.covered(4.9) == 0.0


def test_a_few_giants_are_not_what_everybody_gets() -> None:
    ladder = cheapest_ladder(alike(*[1.0] * 90, *[10.0] * 9, 100.0))
    assert ladder.rungs == (1.0, 10.0, 100.0)
    assert ladder.after(1.0) == 10.0
    assert ladder.after(10.0) == 100.0
    assert ladder.covered(1.0) == pytest.approx(0.9)
    assert ladder.covered(50.0) == pytest.approx(0.99)


def test_more_than_two_steps_are_cheaper_than_two() -> None:
    points = alike(*[1.0] * 90, *[10.0] * 9, 100.0)
    ladder = cheapest_ladder(points)
    assert min(ladder.costs) == 100 * 1 + 10 * 10 + 100
    two_steps = min(100 * first + 100 * sum(p > first for p, _, _ in points) for first in (1, 10))
    assert min(ladder.costs) < two_steps


def test_tasks_weigh_by_their_time() -> None:
    assert cheapest_ladder([(1.0, 9.0, 1.0), (8.0, 1.0, 9.0)]).rungs == (1.0, 8.0)
    assert cheapest_ladder([(1.0, 1.0, 9.0), (8.0, 9.0, 1.0)]).rungs == (8.0,)


def test_attempts_that_die_early_make_trying_cheap() -> None:
    points = alike(3.0, 4.0, 5.0, 6.0)
    assert cheapest_ladder(points, theta=1.0).rungs == (6.0,)
    assert cheapest_ladder(points, theta=0.0).rungs == (3.0, 4.0, 5.0, 6.0)


def test_a_price_for_retries_makes_ladders_shorter() -> None:
    points = alike(*[1.0] * 90, *[10.0] * 9, 100.0)
    lengths = [len(cheapest_ladder(points, price=price).rungs) for price in (0.0, 1e3, 2e4, 1e6)]
    assert lengths == [3, 3, 2, 1]


def test_the_next_step_is_known_after_any_amount_that_failed() -> None:
    ladder = cheapest_ladder(alike(*[1.0] * 9, *[2.0] * 9, 3.0, 40.0))
    assert ladder.after(0.5) == ladder.rungs[0]
    assert ladder.after(2.5) == ladder.after(2.0)
    assert ladder.after(39.0) == 40.0
    assert ladder.after(1e9) is None


def test_a_floor_between_two_amounts_is_a_start_of_its_own() -> None:
    ladder = cheapest_ladder(alike(*[1.0] * 9, 10.0))
    assert ladder.rungs == (1.0, 10.0)
    assert ladder.first_at_least(2.0) == 2.0
    # 10 x 9.5 + 10 is more than 10 x 10: so near to it, the last one is the better start.
    assert ladder.first_at_least(9.5) == 10.0
    assert ladder.first_at_least(11.0) == 11.0


def test_a_floor_is_cheaper_to_start_at_where_attempts_die_early() -> None:
    ladder = cheapest_ladder(alike(*[1.0] * 9, *[2.0] * 9, 12.0, 12.0), theta=0.5)
    # The 18 who fit and 2 for half their time: 19 x floor + 2 x 12, against 20 x 12.
    assert ladder.first_at_least(11.3) == 11.3
    assert ladder.first_at_least(11.4) == 12.0


def test_a_task_larger_than_the_ladder_costs_at_least_a_doubling() -> None:
    ladder = cheapest_ladder(alike(*[1.0] * 9, 8.0))
    assert ladder.cost(1.0, theta=0.5) == 1.0
    assert ladder.cost(2.0, theta=0.5) == 0.5 + 8.0
    assert ladder.cost(9.0, theta=0.5) == 0.5 + 4.0 + 16.0
    assert ladder.cost(100.0, theta=0.5) == 0.5 + 4.0 + 100.0


def test_equal_peaks_are_one_candidate() -> None:
    ladder = cheapest_ladder([(2.0, 1.0, 1.0), (2.0, 3.0, 1.0), (4.0, 4.0, 2.0)])
    assert list(ladder.amounts) == [2.0, 4.0]
    assert list(ladder.share) == [0.5, 0.0]
    assert list(ladder.costs) == [2.0 * 8.0 + 4.0 * 4.0, 4.0 * 8.0]
