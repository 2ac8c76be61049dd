"""What is promised of Algorithm 1, for any waits."""

from __future__ import annotations

import math
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from parsl_sizer.scaling import Learner, Rule
from parsl_sizer.scaling.alternatives import ALTERNATIVES

DELTA = 1e-6
"""How likely Theorem 1 may fail: one of a million examples."""


@st.composite
def waits(draw: st.DrawFn) -> list[float]:
    """Waits that stay, change now and then, or are different each time."""
    random = Random(draw(st.integers(0, 2**32)))
    stays = draw(st.sampled_from([0.0, 0.9, 0.99, 1.0]))
    found = [random.choice(ALTERNATIVES)]
    for _ in range(draw(st.integers(0, 400))):
        same = random.random() < stays
        found.append(found[-1] if same else random.lognormvariate(6.0, 2.0))
    return found


RULES = st.builds(
    Rule,
    policy=st.just("default"),
    loss=st.sampled_from(["zero-one", "absolute"]),
    share=st.just(0.0),
    rate=st.sampled_from([0.1, 1.0, 2.0]),
    decay=st.sampled_from([0.0, 0.5]),
)


@given(waits(), st.integers(0, 2**32), st.sampled_from(["zero-one", "absolute"]))
@settings(max_examples=50, deadline=None)
def test_theorem_1_holds_where_the_loss_of_every_alternative_is_known(
    seen: list[float], seed: int, loss: str
) -> None:
    rule = Rule(policy="default", loss=loss, share=0.0)
    learner, random = Learner(rule), Random(seed)
    many = len(rule.alternatives)
    mine, theirs = 0.0, [0.0] * many
    for count, wait_s in enumerate(seen, start=1):
        losses = rule.losses(wait_s)
        mine += losses[rule.alternatives.index(learner.estimate(random))]
        theirs = [sum(pair) for pair in zip(theirs, losses, strict=True)]
        learner.observe(wait_s, random)
        bound = 4 * learner.rounds + math.log(many) + math.sqrt(2 * count * math.log(many / DELTA))
        assert mine - min(theirs) <= bound


@given(waits(), RULES)
@settings(max_examples=50, deadline=None)
def test_what_is_lost_by_rounds_is_bounded_more_tightly(seen: list[float], rule: Rule) -> None:
    """Sum of rate x (expected loss - loss of the best) <= ln m + sum of rate^2 / 2.

    By Hoeffding's lemma, since what an alternative loses in a round is between 0 and 2.
    """
    learner, random = Learner(rule), Random(1)
    many = len(rule.alternatives)
    allowed, mine, theirs = math.log(many), 0.0, [0.0] * many
    expected, lost = 0.0, [0.0] * many
    for wait_s in seen:
        losses = rule.losses(wait_s)
        pairs = zip(learner.probabilities, losses, strict=True)
        expected += math.fsum(share * loss for share, loss in pairs)
        lost = [sum(pair) for pair in zip(lost, losses, strict=True)]
        before = learner.rounds
        learner.observe(wait_s, random)
        if learner.rounds > before:
            rate = rule.rate / learner.rounds**rule.decay
            allowed += rate**2 / 2
            mine += rate * expected
            theirs = [one + rate * loss for one, loss in zip(theirs, lost, strict=True)]
            expected, lost = 0.0, [0.0] * many
            assert mine - min(theirs) <= allowed + 1e-9


@given(waits(), st.sampled_from(["greedy", "default", "tuned"]), st.booleans())
@settings(max_examples=30, deadline=None)
def test_probabilities_stay_probabilities_and_estimates_alternatives(
    seen: list[float], policy: str, full: bool
) -> None:
    learner = Learner(Rule(policy=policy, information="full" if full else "sampled"))
    random = Random(1)
    for wait_s in seen[:60]:
        assert learner.estimate(random) in ALTERNATIVES
        learner.observe(wait_s, random)
        assert min(learner.probabilities) >= 0.0
        assert math.isclose(math.fsum(learner.probabilities), 1.0)
