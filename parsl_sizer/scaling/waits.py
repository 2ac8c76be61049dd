"""How long will a block wait in the batch queue? Algorithm 1 of ASA.

A `Learner` has a probability for each of a fixed set of waits. The losses of a round are
summed until one of them passes 1; then every alternative is weighed down by the
exponential of its loss, and a new round begins. `WaitEstimator` keeps one for each
geometry of blocks, for as many workflows as share it.

As printed, an iteration learns the loss of the one alternative that it sampled. But once
a wait is seen, the loss of all of them is known: `information="full"`, which is the default,
uses that. Ours is also `share`: how much of its probability each alternative gives to all
of them after a wait, so that none is ruled out for ever. `PRINTED` has neither.

A. Souza et al., "ASA - The Adaptive Scheduling Algorithm", 2024; the share is that of
M. Herbster and M. Warmuth, "Tracking the Best Expert", Machine Learning 32, 1998.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from .alternatives import ALTERNATIVES, LOSSES, Loss, zero_one
from .geometry import Geometry

State = dict[str, object]
"""What a learner knows, as plain values: numbers, and lists of numbers."""
REPETITION = 50
"""How often the tuned policy uses each wait, in section 4.5 of the paper."""


@dataclass(frozen=True)
class Rule:
    """How waits are learned and estimated.

    `policy` is `greedy` (the alternative with the lowest mean loss so far), `default` (one
    sampled by its probability) or `tuned` (the same, and each wait counts `repetition` times).
    The rate of round t is `rate / t**decay`, which never increases.
    """

    policy: str = "tuned"
    information: str = "full"
    loss: Loss | str = zero_one
    alternatives: tuple[float, ...] = ALTERNATIVES
    repetition: int = REPETITION
    rate: float = 1.0
    decay: float = 0.0
    share: float = 1e-3

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"{self.policy!r} is no policy; there is {', '.join(POLICIES)}.")
        if self.information not in ("full", "sampled"):
            raise ValueError(f"information is 'full' or 'sampled', not {self.information!r}.")
        if isinstance(self.loss, str):
            if self.loss not in LOSSES:
                raise ValueError(f"{self.loss!r} is no loss; there is {', '.join(LOSSES)}.")
            object.__setattr__(self, "loss", LOSSES[self.loss])
        waits = self.alternatives
        if not waits or list(waits) != sorted(set(waits)) or waits[0] < 0 or waits[-1] == math.inf:
            raise ValueError(f"alternatives are rising waits in seconds, not {waits!r}.")
        if self.repetition < 1 or self.rate <= 0 or self.decay < 0 or not 0 <= self.share < 1:
            raise ValueError(
                "repetition is 1 or more, rate above 0, decay 0 or more, share in [0, 1), not "
                f"{self.repetition!r}, {self.rate!r}, {self.decay!r}, {self.share!r}."
            )

    def losses(self, wait_s: float) -> list[float]:
        """Of each alternative, how wrong it was."""
        assert callable(self.loss)
        return self.loss(self.alternatives, wait_s)


POLICIES = ("greedy", "default", "tuned")
DEFAULT = Rule()
PRINTED = Rule(information="sampled", share=0.0)
"""Algorithm 1 to the letter."""


class Learner:
    """Algorithm 1 for one geometry.

    >>> learner, random = Learner(), Random(1)
    >>> for _ in range(3):
    ...     learner.observe(240.0, random)
    >>> learner.estimate(random), learner.rounds, learner.waits
    (250.0, 75, 3)
    """

    def __init__(self, rule: Rule = DEFAULT) -> None:
        self.rule = rule
        many = len(rule.alternatives)
        self.rounds = 0
        self.waits = 0
        self._log_weights = [0.0] * many
        self._round = [0.0] * many
        self._losses = [0.0] * many
        self._tried = [0] * many
        self._heights: list[float] | None = None  # of the probabilities, until these change

    @property
    def probabilities(self) -> list[float]:
        """Of each alternative, how likely it is to be sampled."""
        weights = [math.exp(log_weight) for log_weight in self._log_weights]
        total = math.fsum(weights)
        return [weight / total for weight in weights]

    def estimate(self, random: Random) -> float:
        """How long the next block is thought to wait, in seconds."""
        return self.rule.alternatives[self._choice(random)]

    def observe(
        self, wait_s: float, random: Random, *, estimate: float | None = None, at_most: bool = False
    ) -> None:
        """A block has waited so long, after this was estimated for it, if anything was.

        `at_most` if it would have started earlier, but for the block that it was to follow:
        then all that is known is that longer alternatives are wrong.
        """
        if not 0 <= wait_s < math.inf:
            raise ValueError(f"a wait is 0 s or more, not {wait_s!r}")
        self.waits += 1
        losses = self.rule.losses(wait_s)
        if at_most:
            nearest = min(range(len(losses)), key=losses.__getitem__)
            losses = [0.0] * (nearest + 1) + losses[nearest + 1 :]
        times = self.rule.repetition if self.rule.policy == "tuned" else 1
        if self.rule.information == "full":
            self._suffer(losses, times)
        else:
            known = self.rule.alternatives
            chosen = known.index(estimate) if estimate in known else self._choice(random)
            for _ in range(times):
                self._suffer_at(chosen, losses[chosen])
                chosen = self._choice(random)
        if self.rule.share:
            self._give_share()

    def state(self) -> State:
        """All that it knows, as plain values; `Learner.of` makes another of it."""
        return {
            "alternatives": list(self.rule.alternatives),
            "rounds": self.rounds,
            "waits": self.waits,
            "log_weights": list(self._log_weights),
            "round": list(self._round),
            "losses": list(self._losses),
            "tried": list(self._tried),
        }

    @classmethod
    def of(cls, state: Mapping[str, object], rule: Rule = DEFAULT) -> Learner:
        """One that knows what another knew."""
        made = cls(rule)
        columns = {
            name: _numbers(state, name, len(rule.alternatives))
            for name in ("alternatives", "log_weights", "round", "losses", "tried")
        }
        if tuple(columns["alternatives"]) != rule.alternatives:
            raise ValueError("What was learned of other alternatives cannot be used for these.")
        made._log_weights, made._round = columns["log_weights"], columns["round"]
        made._losses, made._tried = columns["losses"], [int(tries) for tries in columns["tried"]]
        made.rounds, made.waits = (
            int(_numbers({name: [state.get(name)]}, name, 1)[0]) for name in ("rounds", "waits")
        )
        return made

    def _choice(self, random: Random) -> int:
        if self.rule.policy == "greedy":
            means = [
                loss / max(tries, 1) for loss, tries in zip(self._losses, self._tried, strict=True)
            ]
            return means.index(min(means))
        if self._heights is None:
            self._heights = list(accumulate(self.probabilities))
        heights = self._heights
        return min(bisect_right(heights, random.random() * heights[-1]), len(heights) - 1)

    def _suffer(self, losses: Sequence[float], times: int) -> None:
        """So many iterations in which the loss of every alternative is known."""
        self._tried = [tries + times for tries in self._tried]
        self._losses = [
            total + times * loss for total, loss in zip(self._losses, losses, strict=True)
        ]
        while times:
            left = (
                (1.0 - total) // loss + 1 if loss else math.inf
                for total, loss in zip(self._round, losses, strict=True)
            )
            now = int(max(1, min(times, *left)))  # as many as the round lasts
            self._round = [
                total + now * loss for total, loss in zip(self._round, losses, strict=True)
            ]
            times -= now
            self._end_round()

    def _suffer_at(self, at: int, loss: float) -> None:
        """An iteration in which that of the sampled one is: line 5."""
        self._tried[at] += 1
        self._losses[at] += loss
        self._round[at] += loss
        self._end_round()

    def _end_round(self) -> None:
        """Line 7, unless the round goes on as line 3 has it."""
        if max(self._round) <= 1.0:
            return
        self.rounds += 1
        rate = self.rule.rate / self.rounds**self.rule.decay
        lowered = [
            weight - rate * loss
            for weight, loss in zip(self._log_weights, self._round, strict=True)
        ]
        highest = max(lowered)
        self._log_weights = [weight - highest for weight in lowered]
        self._heights = None
        self._round = [0.0] * len(lowered)

    def _give_share(self) -> None:
        even = self.rule.share / len(self._log_weights)
        self._heights = None
        self._log_weights = [
            math.log((1.0 - self.rule.share) * probability + even)
            for probability in self.probabilities
        ]


def _numbers(state: Mapping[str, object], name: str, many: int) -> list[float]:
    found = state.get(name)
    if isinstance(found, list) and len(found) == many:
        numbers = [float(one) for one in found if isinstance(one, int | float)]
        if len(numbers) == many and all(map(math.isfinite, numbers)):
            return numbers
    raise ValueError(f"What was learned of waits has no {many} numbers under {name!r}: {found!r}.")


class WaitEstimator:
    """A learner for each geometry. Workflows that share one learn from each other's waits.

    >>> waits, block = WaitEstimator(), Geometry(nodes=4, cores_per_node=28)
    >>> waits.observe(block, 3600.0, Random(1))
    >>> waits.estimate(block, Random(1)), waits.known
    (4000.0, {'4 x 28 cores': 1})
    """

    def __init__(self, rule: Rule = DEFAULT, state: Mapping[str, State] | None = None) -> None:
        self.rule = rule
        self._learners: dict[str, Learner] = {}
        self.restore(state or {})

    @property
    def known(self) -> Mapping[str, int]:
        """How many waits were seen of each geometry."""
        return {name: learner.waits for name, learner in self._learners.items()}

    def estimate(self, geometry: Geometry, random: Random) -> float:
        """How long a block of this geometry is thought to wait, in seconds."""
        return self.learner(geometry).estimate(random)

    def observe(
        self,
        geometry: Geometry,
        wait_s: float,
        random: Random,
        *,
        estimate: float | None = None,
        at_most: bool = False,
    ) -> None:
        """A block of this geometry has waited so long, or `at_most` so long."""
        self.learner(geometry).observe(wait_s, random, estimate=estimate, at_most=at_most)

    def learner(self, geometry: Geometry) -> Learner:
        """What is known of this geometry; nothing yet, if it is new."""
        name = str(geometry)
        if name not in self._learners:
            self._learners[name] = Learner(self.rule)
        return self._learners[name]

    def state(self) -> dict[str, State]:
        """All that is known, as plain values by the geometry's name."""
        return {name: learner.state() for name, learner in self._learners.items()}

    def restore(self, state: Mapping[str, State]) -> None:
        """Know this instead of what was known of the same geometries."""
        made = {name: Learner.of(one, self.rule) for name, one in state.items()}
        self._learners |= made
