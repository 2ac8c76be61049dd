"""Traces with known distributions."""

from __future__ import annotations

import statistics
from collections import defaultdict

import pytest

from parsl_sizer.model import MB, Kind
from parsl_sizer.simulator.generate import KINDS, generate, nearest_power
from parsl_sizer.simulator.trace import Row


def memories(rows: list[Row]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        found[row.task.category].append(row.peak[Kind.MEMORY] / MB)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_trace_and_another_another(kind: str) -> None:
    assert list(generate(kind, 50, 3)) == list(generate(kind, 50, 3))
    assert list(generate(kind, 50, 3)) != list(generate(kind, 50, 4))


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_fits_the_default_node_and_takes_time(kind: str) -> None:
    rows = list(generate(kind, 2000))
    assert len(rows) == 2000
    assert len({row.task.task_id for row in rows}) == 2000
    assert all(0 < row.peak[Kind.MEMORY] <= 64e9 and row.time_s > 0 for row in rows)


@pytest.mark.parametrize(
    ("kind", "mean", "deviation"),
    [
        ("uniform", 25_000, 30_000 / 12**0.5),
        ("normal", 8_000, 2_000),
        ("exponential", 10_000, 10_000),
    ],
)
def test_one_category_has_the_mean_and_deviation_of_the_paper(
    kind: str, mean: float, deviation: float
) -> None:
    [found] = memories(list(generate(kind, 5000))).values()
    assert statistics.fmean(found) == pytest.approx(mean, rel=0.05)
    assert statistics.pstdev(found) == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize(
    ("kind", "modes"),
    [
        ("bimodal", {"c1": (32_000, 500), "c2": (8_000, 200)}),
        ("trimodal", {"c1": (32_000, 4_000), "c2": (11_000, 1_000), "c3": (16_000, 4_000)}),
    ],
)
def test_modes_are_categories_mixed_evenly(
    kind: str, modes: dict[str, tuple[float, float]]
) -> None:
    rows = list(generate(kind, 3000))
    found = memories(rows)
    assert {name: len(values) for name, values in found.items()} == dict.fromkeys(
        modes, 3000 // len(modes)
    )
    for name, (mean, deviation) in modes.items():
        assert statistics.fmean(found[name]) == pytest.approx(mean, rel=0.03)
        assert statistics.pstdev(found[name]) == pytest.approx(deviation, rel=0.1)
    first_half = [row.task.category for row in rows[:1500]].count("c1")
    assert first_half == pytest.approx(1500 / len(modes), rel=0.1)


def test_phases_change_the_mode_of_one_category_half_way() -> None:
    rows = list(generate("phases", 101))
    [found] = memories(rows).values()
    assert min(found[:51]) > 28_000
    assert max(found[51:]) < 10_000


def test_linear_memory_follows_the_input_in_every_other_category() -> None:
    rows = list(generate("linear", 20_000, categories=6))
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        found[row.task.category].append((row.task.features["input_size"], row.peak[Kind.MEMORY]))
    assert len(found) == 6
    for number in range(6):
        sizes, peaks = zip(*found[f"t{number + 1}"], strict=True)
        correlation = statistics.correlation(sizes, peaks)
        spread = statistics.pstdev(peaks) / statistics.fmean(peaks)
        assert 0.025 < spread < 0.11
        if number % 2:
            assert abs(correlation) < 0.1
        else:
            # The error is at most 75 % of the variance, so at least 25 % is explained.
            assert correlation > 0.45
            slope = statistics.linear_regression(sizes, peaks).slope
            assert 0.9 < slope < 11


def test_linear_means_are_those_of_table_two_times_the_scale() -> None:
    means = [
        statistics.fmean(values)
        for values in memories(list(generate("linear", 9000, categories=300, scale=1))).values()
    ]
    assert 1_000 < min(means) < 100_000
    assert 900_000 < max(means) < 1_100_000


def estimates(how: str | None, kind: str = "linear") -> list[tuple[float, float | None]]:
    rows = list(generate(kind, 500, estimate=how))
    largest = {name: max(values) for name, values in memories(rows).items()}
    asked = {row.task.category: row.task.requested.get(Kind.MEMORY) for row in rows}
    for row in rows:
        assert row.task.requested.get(Kind.MEMORY) == asked[row.task.category]
    return [(largest[name], None if ask is None else ask / MB) for name, ask in asked.items()]


def test_users_estimate_a_category_by_the_nearest_power_of_its_largest_peak() -> None:
    for base, how in ((2, "power2"), (10, "power10")):
        for largest, asked in estimates(how):
            assert asked == 1000 * nearest_power(base, largest / 1000)
    assert estimates(None) == estimates("power2")


def test_users_estimate_the_largest_peak_times_a_factor() -> None:
    for largest, asked in estimates("max:1.2"):
        assert asked == pytest.approx(1.2 * largest)


def test_users_estimate_nothing_unless_asked_where_the_paper_has_none() -> None:
    assert [asked for _, asked in estimates("none")] == [None] * 5
    assert [asked for _, asked in estimates(None, "bimodal")] == [None] * 2
    assert [asked for _, asked in estimates("max:1", "bimodal")] != [None] * 2


@pytest.mark.parametrize(
    ("base", "value", "power"), [(2, 1.2, 1), (2, 1.6, 2), (2, 96.1, 128), (10, 5.6, 10)]
)
def test_the_nearest_power_is_by_distance(base: float, value: float, power: float) -> None:
    assert nearest_power(base, value) == power


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kind": "zipf"}, "no kind of trace is called 'zipf'"),
        ({"tasks": 0}, "tasks must be 1 or more, not 0"),
        ({"categories": 0}, "categories must be 1 or more"),
        ({"scale": 0.0}, "scale must be above 0"),
        ({"estimate": "power3"}, "estimate must be none, power2, power10 or max:FACTOR"),
        ({"estimate": "max:x"}, "not 'max:x'"),
        ({"estimate": "max:-1"}, "not 'max:-1'"),
    ],
)
def test_what_cannot_be_generated_is_told_at_once(
    options: dict[str, object], sentence: str
) -> None:
    asked: dict[str, object] = {"kind": "linear", "tasks": 10} | options
    with pytest.raises(ValueError, match=sentence):
        generate(**asked)  # type: ignore[arg-type]
