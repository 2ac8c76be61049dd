from __future__ import annotations

import sys
from array import array
from collections.abc import Callable

from parsl_sizer.testing import footprint


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held


def closing_over(held: object) -> Callable[[], object]:
    return lambda: held


def test_what_an_object_leads_to_is_counted_once() -> None:
    text = "x" * 10_000
    assert footprint([text, text]) == sys.getsizeof([text, text]) + sys.getsizeof(text)


def test_arrays_count_with_their_data() -> None:
    import numpy as np

    numbers = np.zeros(10_000)
    assert footprint(array("d", range(10_000))) >= 80_000
    assert footprint(numbers) >= 80_000
    assert footprint(numbers[::2].reshape(50, 100)) >= 80_000, "a view holds what it views"


def test_attributes_slots_and_closures_are_followed() -> None:
    big = bytes(50_000)
    for holder in (Slotted(big), closing_over(big), {"key": Slotted([big])}):
        assert 50_000 < footprint(holder) < 52_000


def test_circles_end() -> None:
    circle: list[object] = []
    circle.append(circle)
    assert footprint(circle) == sys.getsizeof(circle)


def test_what_is_to_be_ignored_is_not_counted() -> None:
    shared = Slotted(bytes(50_000))
    assert footprint([shared], ignoring=[shared]) < 200
