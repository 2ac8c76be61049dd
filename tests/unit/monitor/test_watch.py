"""A call above its limit, and what is made of it."""

from __future__ import annotations

import os
from time import perf_counter

import pytest

from parsl_sizer.monitor.files import Files
from parsl_sizer.monitor.limit import LASTING_S, Limit
from parsl_sizer.monitor.node_ledger import Place
from parsl_sizer.monitor.sampler import Sampler
from parsl_sizer.monitor.watch import GROWTH, Watch


class Roomy(Place):
    """A place with any amount of room."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[float, float]] = []

    def grown(self, kind: str, least: float, most: float) -> float | None:
        self.asked.append((least, most))
        return most


class Members(Sampler):
    """A tree whose members were taken to hold more than they do, once somebody looks."""

    def __init__(self, truth: int) -> None:
        super().__init__(os.getpid(), fresh=0)
        self._truth = truth

    def verify(self) -> int:
        self.now = self._truth
        return self.now


@pytest.mark.parametrize(("truth", "asked"), [(90, []), (150, [(150, GROWTH * 150)])])
def test_a_call_grows_only_by_what_it_is_known_to_use(
    truth: int, asked: list[tuple[float, float]]
) -> None:
    place = Roomy()
    given: list[float] = []
    watch = Watch(
        {"enforce": True},
        os.getpid(),
        keeper=0,
        fresh=0,
        base=0,
        files=Files(),
        folder=None,
        patron=None,
        place=place,
        at_growth=given.append,
    )
    watch._sampler = Members(truth)
    limit = watch._limits["memory"] = Limit(100, perf_counter() - 2 * LASTING_S)
    limit.first_above = perf_counter() - LASTING_S
    watch._compare("memory", 800)
    assert place.asked == asked
    assert given == [most for _, most in asked]
    assert watch.broken == []
