"""Algorithm 1: what is estimated, what is learned, and what is kept."""

from __future__ import annotations

import json
import math
from random import Random

import pytest

from parsl_sizer.scaling import PRINTED, Geometry, Learner, Rule, WaitEstimator
from parsl_sizer.scaling.alternatives import ALTERNATIVES, LOSSES, closest

FEW = (10.0, 20.0, 50.0)
BLOCK = Geometry(4, 28)


def test_there_are_53_alternatives_up_to_100_000_seconds() -> None:
    assert len(set(ALTERNATIVES)) == 53
    assert list(ALTERNATIVES) == sorted(ALTERNATIVES)
    assert (ALTERNATIVES[0], ALTERNATIVES[-1]) == (10.0, 100_000.0)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("wait_s", [0.0, 3.0, 777.0, 1e5, 1e7])
def test_a_loss_is_between_0_and_1_and_lowest_for_the_closest(name: str, wait_s: float) -> None:
    losses = LOSSES[name](ALTERNATIVES, wait_s)
    assert all(0.0 <= loss <= 1.0 for loss in losses)
    assert losses.index(min(losses)) == closest(ALTERNATIVES, wait_s)


def test_at_first_every_alternative_is_equally_likely() -> None:
    assert Learner().probabilities == pytest.approx([1 / 53] * 53)


def test_a_round_lasts_until_a_loss_is_above_1_and_then_weights_fall_by_its_exponential() -> None:
    learner = Learner(Rule(policy="default", alternatives=FEW, rate=0.5, share=0.0))
    learner.observe(20.0, Random(1))
    assert learner.rounds == 0
    assert learner.probabilities == pytest.approx([1 / 3] * 3)
    learner.observe(20.0, Random(1))
    assert learner.rounds == 1
    fallen = math.exp(-0.5 * 2)
    assert learner.probabilities == pytest.approx(
        [fallen / (1 + 2 * fallen), 1 / (1 + 2 * fallen), fallen / (1 + 2 * fallen)]
    )


def test_as_printed_only_the_alternative_that_was_sampled_loses() -> None:
    rule = Rule(policy="default", information="sampled", alternatives=FEW, share=0.0)
    learner = Learner(rule)
    for _ in range(2):
        learner.observe(20.0, Random(1), estimate=50.0)
    low = math.exp(-2.0)
    assert learner.probabilities == pytest.approx([1 / (2 + low), 1 / (2 + low), low / (2 + low)])


def test_the_rate_of_a_round_falls_as_it_is_told() -> None:
    learner = Learner(Rule(policy="default", alternatives=FEW, decay=0.5, share=0.0))
    for _ in range(4):
        learner.observe(20.0, Random(1))
    ratio = learner.probabilities[1] / learner.probabilities[0]
    assert math.log(ratio) == pytest.approx(2.0 + 2.0 / math.sqrt(2.0))


def test_the_tuned_policy_uses_a_wait_fifty_times() -> None:
    tuned, default = Learner(Rule(share=0.0)), Learner(Rule(policy="default", share=0.0))
    tuned.observe(70.0, Random(1))
    for _ in range(50):
        default.observe(70.0, Random(1))
    assert tuned.probabilities == pytest.approx(default.probabilities)
    assert (tuned.waits, default.waits) == (1, 50)


def test_a_share_keeps_every_alternative_possible() -> None:
    learner = Learner(Rule(share=0.01))
    for _ in range(100):
        learner.observe(10.0, Random(1))
    assert min(learner.probabilities) == pytest.approx(0.01 / 53, rel=1e-6)


def test_the_greedy_policy_takes_the_lowest_mean_loss_and_the_shortest_of_equals() -> None:
    learner = Learner(Rule(policy="greedy", information="sampled", alternatives=FEW))
    assert learner.estimate(Random(1)) == 10.0
    learner.observe(20.0, Random(1), estimate=10.0)
    assert learner.estimate(Random(1)) == 20.0


def test_a_wait_that_was_at_most_so_long_rules_out_only_what_is_longer() -> None:
    learner = Learner(Rule(alternatives=FEW))
    learner.observe(22.0, Random(1), at_most=True)
    shorter, same, longer = learner.probabilities
    assert shorter == pytest.approx(same)
    assert longer < 0.001


def iterations_after(rule: Rule, before: float, after: float, seed: int) -> float:
    """How many waits of the new length it takes until 8 of 10 estimates are right."""
    learner, random = Learner(rule), Random(seed)
    for _ in range(200):
        learner.observe(before, random, estimate=learner.estimate(random))
    right: list[bool] = []
    for count in range(1, 201):
        estimate = learner.estimate(random)
        right.append(estimate == after)
        learner.observe(after, random, estimate=estimate)
        if sum(right[-10:]) >= 8:
            return count
    return math.inf


@pytest.mark.parametrize("printed", [False, True], ids=["full information", "as printed"])
@pytest.mark.parametrize(("before", "after"), [(50.0, 4000.0), (4000.0, 50.0)])
def test_the_tuned_policy_follows_a_change_within_50_waits_and_faster_than_the_default(
    before: float, after: float, printed: bool
) -> None:
    how = {"information": "sampled", "share": 0.0} if printed else {}
    for seed in range(5):
        tuned = iterations_after(Rule(policy="tuned", **how), before, after, seed)  # type: ignore[arg-type]
        default = iterations_after(Rule(policy="default", **how), before, after, seed)  # type: ignore[arg-type]
        assert tuned <= 50
        assert tuned < default


@pytest.mark.parametrize("information", ["full", "sampled"])
def test_the_greedy_policy_is_stuck_after_a_drop(information: str) -> None:
    rule = Rule(policy="greedy", information=information)
    assert iterations_after(rule, 4000.0, 50.0, 1) == math.inf


@pytest.mark.parametrize("rule", [Rule(), PRINTED, Rule(policy="greedy")])
def test_what_was_learned_survives_as_json(rule: Rule) -> None:
    waits = WaitEstimator(rule)
    for wait_s in (100.0, 7.0, 3000.0):
        waits.observe(BLOCK, wait_s, Random(1))
    kept = json.loads(json.dumps(waits.state()))
    again = WaitEstimator(rule, kept)
    assert again.state() == waits.state()
    assert again.estimate(BLOCK, Random(2)) == waits.estimate(BLOCK, Random(2))


def test_what_is_known_of_one_geometry_says_nothing_of_another() -> None:
    waits = WaitEstimator()
    waits.observe(BLOCK, 500.0, Random(1))
    assert waits.learner(Geometry(1, 28)).probabilities == pytest.approx([1 / 53] * 53)
    assert waits.known == {"4 x 28 cores": 1, "1 x 28 cores": 0}


@pytest.mark.parametrize(
    ("state", "complaint"),
    [
        ({}, "no 53 numbers under 'alternatives': None"),
        (Learner(Rule(alternatives=FEW)).state(), "no 53 numbers"),
        (Learner().state() | {"log_weights": [math.nan] * 53}, "under 'log_weights'"),
        (Learner().state() | {"rounds": "many"}, "under 'rounds'"),
        (
            Learner().state() | {"alternatives": [float(n) for n in range(53)]},
            "other alternatives",
        ),
    ],
)
def test_a_state_that_is_none_is_refused(state: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        WaitEstimator(state={"4 x 28 cores": state})


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"policy": "lucky"}, "'lucky' is no policy; there is greedy, default, tuned."),
        ({"information": "some"}, "'full' or 'sampled', not 'some'"),
        ({"loss": "squared"}, "'squared' is no loss; there is zero-one, absolute."),
        ({"alternatives": (2.0, 1.0)}, "rising waits"),
        ({"alternatives": ()}, "rising waits"),
        ({"share": 1.0}, "share in"),
        ({"decay": -0.1}, "decay 0 or more"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(wrong: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Rule(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wait_s", [-1.0, math.nan, math.inf])
def test_a_wait_that_is_none_is_refused(wait_s: float) -> None:
    with pytest.raises(ValueError, match="a wait is 0 s or more"):
        Learner().observe(wait_s, Random(1))
